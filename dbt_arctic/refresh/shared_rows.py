"""Rows that several refreshes of one process need: computed once, and kept in Spark's cache.

What an upstream has lost is found by reading its table as it was, and that costs what reading it costs. A
project has many models over one table. So the second refresh that asks for the same rows keeps them, and
the others read these: a query over pinned snapshots gives the same rows whenever it is run.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from dbt_arctic.keyed.names import quote

Run = Callable[[str, str], int]
"""Step and SQL."""

_KEPT = 16
"""Of these the oldest are forgotten: a project's run goes from layer to layer."""


@dataclass
class SharedRows:
    """For the sessions of one Spark in this process."""

    _asked: Counter[str] = field(default_factory=Counter)
    _kept: OrderedDict[str, None] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def relation(self, sql: str, run: Run) -> str:
        """A query that gives the rows of ``sql``, from the second time on out of the cache."""
        name = f"arctic_rows_{hashlib.sha256(sql.encode()).hexdigest()[:16]}"
        # One at a time: whoever asks next waits for the rows rather than compute them beside.
        with self._lock:
            self._asked[name] += 1
            if name not in self._kept:
                if self._asked[name] < 2:
                    return sql
                self._keep(name, sql, run)
        return f"SELECT * FROM {_global(name)}"

    def _keep(self, name: str, sql: str, run: Run) -> None:
        run("name_rows", f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {quote(name)} AS\n{sql}")
        run("share_rows", f"CACHE TABLE {_global(name)}")
        self._kept[name] = None
        while len(self._kept) > _KEPT:
            old, _ = self._kept.popitem(last=False)
            run("forget_rows", f"DROP VIEW IF EXISTS {_global(old)}")


def _global(name: str) -> str:
    return f"`global_temp`.{quote(name)}"
