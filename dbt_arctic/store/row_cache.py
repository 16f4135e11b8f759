"""Caches changed rows in Spark that several refreshes of one process read.

What an upstream has lost is found by reading its table as it was, and that costs what reading it costs. A
project has many models over one table. Where it is known that others will ask for the same rows, the first
refresh keeps them, with all that the others will ask for; else the second does, and from then on the first
that asks for other rows. Who comes later reads what is kept: a query over pinned snapshots gives the same
rows whenever it is run. Kept are the columns that were asked for by then, and the rows of keys that were;
who needs others has them all kept anew.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import finalize

from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.value_range import ValueRange

Run = Callable[[str, str], int]
"""Step and SQL."""

KEPT = 64
"""Of more, those that were not asked for longest are forgotten: a project's run goes from layer to layer. Far
more than one statement reads, whose own must stay until it has run."""


Make = Callable[[Sequence[str], Mapping[str, ValueRange | None]], str]
"""From columns, and queries of keys with their ranges, to the SQL of rows."""


@dataclass(frozen=True)
class Foreseen:
    """What other refreshes will ask for of the same rows. Parameters as those of ``SharedRows.kept``."""

    columns: Sequence[str]
    lookup_keys: Mapping[str, ValueRange | None]


@dataclass
class _Asked:
    """The rows of one upstream that refreshes have asked for, and what the cache has of them.

    :param columns: all that were asked for, in that order; ``lookup_keys``: queries of keys likewise.
    :param kept: those of both that the cache has; ``None`` while no rows are there.
    """

    times: int = 0
    columns: dict[str, None] = field(default_factory=dict)
    lookup_keys: dict[str, ValueRange | None] = field(default_factory=dict)
    kept: frozenset[str] | None = None


_ENDED: deque[set[str]] = deque()
"""What invocations have left in the cache that this process has seen the end of: nobody asks for it again."""


@dataclass
class SharedRows:
    """For the sessions of one Spark in this process, for as long as one invocation lasts."""

    _asked: OrderedDict[str, _Asked] = field(default_factory=OrderedDict)
    _are_shared: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _names: set[str] = field(default_factory=set)
    """Of all that is in the cache."""

    def __post_init__(self) -> None:
        finalize(self, _ENDED.append, self._names)

    def kept(
        self,
        rows_of: str,
        columns: Sequence[str],
        lookup_keys: Mapping[str, ValueRange | None],
        make: Make,
        run: Run,
        foresee: Callable[[], Foreseen | None] = lambda: None,
    ) -> str | None:
        """The cached relation of some rows. ``None`` for who asks first, unless others will ask for them, or
        others were asked for twice.

        :param rows_of: what tells these rows from others; pinned, so that it is the same for ever.
        :param columns: those that are asked for.
        :param lookup_keys: queries of the keys whose rows are needed, with the range of each if it is known.
        :param make: SQL of the rows, with the columns and the rows of the keys that were asked for by now.
        :param foresee: what others will ask for, as far as that is known; ``None`` where nobody will.
        """
        name = f"arctic_rows_{hashlib.sha256(rows_of.encode()).hexdigest()[:16]}"
        # One at a time: whoever asks next waits for the rows rather than compute them beside.
        with self._lock:
            asked = self._asked.setdefault(name, _Asked())
            asked.times += 1
            self._asked.move_to_end(name)
            asked.columns.update(dict.fromkeys(columns))
            asked.lookup_keys.update(lookup_keys)
            # Models that read one table alike mostly read others alike, too.
            self._are_shared |= asked.times > 1
            if asked.kept is None or not asked.kept.issuperset((*columns, *lookup_keys)):
                foreseen = foresee()
                if foreseen is not None:
                    asked.columns.update(dict.fromkeys(foreseen.columns))
                    asked.lookup_keys.update(foreseen.lookup_keys)
                elif not self._are_shared:
                    return None
                self._keep(name, asked, make([*asked.columns], asked.lookup_keys), run)
        return _global(name)

    def _keep(self, name: str, asked: _Asked, sql: str, run: Run) -> None:
        for old in _left_over():
            if old not in self._names:
                run("forget_rows", f"DROP VIEW IF EXISTS {_global(old)}")
        self._names.add(name)
        # Under the same name: a statement that was made for fewer of them finds them here, too.
        run("name_rows", f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {quote(name)} AS\n{sql}")
        run("share_rows", f"CACHE TABLE {_global(name)}")
        asked.kept = frozenset((*asked.columns, *asked.lookup_keys))
        cached = [one for one, rows_of in self._asked.items() if rows_of.kept is not None]
        for old in cached[:-KEPT]:
            run("forget_rows", f"DROP VIEW IF EXISTS {_global(old)}")
            del self._asked[old]
            self._names.discard(old)


def _left_over() -> Iterator[str]:
    while _ENDED:
        try:
            names = _ENDED.popleft()
        except IndexError:  # another invocation of the process was faster
            return
        yield from names


def _global(name: str) -> str:
    return f"`global_temp`.{quote(name)}"
