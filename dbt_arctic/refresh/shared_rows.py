"""Rows that several refreshes of one process need: computed once, and kept in Spark's cache.

What an upstream has lost is found by reading its table as it was, and that costs what reading it costs. A
project has many models over one table. So the second refresh that asks for the same rows keeps them, and
the others read these: a query over pinned snapshots gives the same rows whenever it is run. Kept are the
columns that were asked for by then; who needs another one has them all kept anew.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dbt_arctic.keyed.names import quote, quote_all

Run = Callable[[str, str], int]
"""Step and SQL."""

KEPT = 16
"""Of these the oldest are forgotten: a project's run goes from layer to layer."""


@dataclass
class _Asked:
    """:param columns: all that were asked for, in that order.
    :param kept: those in the cache; ``None`` while no rows are.
    """

    times: int = 0
    columns: dict[str, None] = field(default_factory=dict)
    kept: frozenset[str] | None = None


@dataclass
class SharedRows:
    """For the sessions of one Spark in this process."""

    _asked: OrderedDict[str, _Asked] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def relation(self, sql: str, columns: Sequence[str], run: Run) -> str:
        """A query of these columns of the rows of ``sql``, from the second time on out of the cache."""
        name = f"arctic_rows_{hashlib.sha256(sql.encode()).hexdigest()[:16]}"
        listed = quote_all(columns) if columns else "1"
        # One at a time: whoever asks next waits for the rows rather than compute them beside.
        with self._lock:
            asked = self._asked.setdefault(name, _Asked())
            asked.times += 1
            asked.columns.update(dict.fromkeys(columns))
            if asked.times == 1:
                return f"SELECT {listed}\nFROM (\n{sql}\n)"
            if asked.kept is None or not asked.kept.issuperset(columns):
                self._keep(name, asked, sql, run)
        return f"SELECT {listed} FROM {_global(name)}"

    def _keep(self, name: str, asked: _Asked, sql: str, run: Run) -> None:
        # Under the same name: a statement that was made for fewer columns finds them here, too.
        rows = f"SELECT {quote_all(list(asked.columns))}\nFROM (\n{sql}\n)" if asked.columns else sql
        run("name_rows", f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {quote(name)} AS\n{rows}")
        run("share_rows", f"CACHE TABLE {_global(name)}")
        asked.kept = frozenset(asked.columns)
        self._asked.move_to_end(name)
        cached = [one for one, rows_of in self._asked.items() if rows_of.kept is not None]
        for old in cached[:-KEPT]:
            run("forget_rows", f"DROP VIEW IF EXISTS {_global(old)}")
            del self._asked[old]


def _global(name: str) -> str:
    return f"`global_temp`.{quote(name)}"
