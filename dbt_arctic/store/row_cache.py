"""Caches changed rows in Spark that several refreshes of one process read.

The rows that an upstream has lost are found by reading the old version of its table, which costs a full read.
A project often has many models over one table. If other models are known to need the same rows, the first
refresh caches them together with everything the others will need. Otherwise the second refresh does, and any
later one that needs rows that are not cached. Later refreshes read the cache: a query over pinned snapshots
always returns the same rows. The cache holds the columns and the keys that were requested up to then. A
request for others caches all of them again.
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

Run = Callable[[str, str], int | None]
"""Runs SQL; the arguments are step and SQL."""

MAX_RELATIONS = 64
"""The maximum number of cached relations. The least recently used ones are dropped first, since a run of a
project proceeds from layer to layer. The limit is far above what one statement reads, whose relations must
stay until it has run.
"""


Make = Callable[[Sequence[str], Mapping[str, ValueRange | None]], str]
"""Maps columns, and queries of keys with their ranges, to the SQL of rows."""


@dataclass(frozen=True)
class ExpectedRows:
    """What other refreshes will request of the same rows. The parameters are those of ``SharedRows.kept``."""

    columns: Sequence[str]
    lookup_keys: Mapping[str, ValueRange | None]


@dataclass
class _CachedRows:
    """The rows of one upstream that refreshes have requested, and the part that is cached.

    :param columns: all requested columns, in the order of their requests; ``lookup_keys`` are requested
        queries of keys likewise.
    :param kept: the columns and lookup keys that are cached; ``None`` while no rows are.
    """

    times: int = 0
    columns: dict[str, None] = field(default_factory=dict)
    lookup_keys: dict[str, ValueRange | None] = field(default_factory=dict)
    kept: frozenset[str] | None = None


_ENDED: deque[set[str]] = deque()
"""The cached relations of invocations of this process that have ended. They are no longer needed."""


@dataclass
class SharedRows:
    """The row cache of the sessions of one Spark application in this process, for one invocation.

    :param settings: the common settings of the sessions.
    """

    settings: str = ""
    _requested: OrderedDict[str, _CachedRows] = field(default_factory=OrderedDict)
    _are_shared: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _names: set[str] = field(default_factory=set)
    """The names of all cached relations."""

    def __post_init__(self) -> None:
        finalize(self, _ENDED.append, self._names)

    def kept(
        self,
        rows_of: str,
        columns: Sequence[str],
        lookup_keys: Mapping[str, ValueRange | None],
        make: Make,
        run: Run,
        expect: Callable[[], ExpectedRows | None] = lambda: None,
    ) -> str | None:
        """The cached relation of some rows.

        ``None`` for the first request, unless other refreshes will need the rows or rows were already
        requested twice.

        :param rows_of: identifies these rows. It is pinned, so that it always means the same rows.
        :param columns: the requested columns.
        :param lookup_keys: queries of the keys whose rows are needed, with the range of each if it is known.
        :param make: returns the SQL of the rows, with the columns and the rows of the keys that were
            requested so far.
        :param expect: returns what other refreshes will request, as far as it is known; ``None`` if there
            are none.
        """
        name = f"arctic_rows_{hashlib.sha256((self.settings + rows_of).encode()).hexdigest()[:16]}"
        # One at a time: the next request waits for the rows instead of computing them concurrently.
        with self._lock:
            requested = self._requested.setdefault(name, _CachedRows())
            requested.times += 1
            self._requested.move_to_end(name)
            requested.columns.update(dict.fromkeys(columns))
            requested.lookup_keys.update(lookup_keys)
            # Models that share one upstream mostly share others, too.
            self._are_shared |= requested.times > 1
            if requested.kept is None or not requested.kept.issuperset((*columns, *lookup_keys)):
                expected = expect()
                if expected is not None:
                    requested.columns.update(dict.fromkeys(expected.columns))
                    requested.lookup_keys.update(expected.lookup_keys)
                elif not self._are_shared:
                    return None
                self._keep(name, requested, make([*requested.columns], requested.lookup_keys), run)
        return _global(name)

    def _keep(self, name: str, requested: _CachedRows, sql: str, run: Run) -> None:
        for old in _unused_names():
            if old not in self._names:
                run("forget_rows", f"DROP VIEW IF EXISTS {_global(old)}")
        self._names.add(name)
        # The name is reused: a statement that was generated for fewer columns or keys finds them here, too.
        run("name_rows", f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {quote(name)} AS\n{sql}")
        run("share_rows", f"CACHE TABLE {_global(name)}")
        requested.kept = frozenset((*requested.columns, *requested.lookup_keys))
        cached = [one for one, rows_of in self._requested.items() if rows_of.kept is not None]
        for old in cached[:-MAX_RELATIONS]:
            run("forget_rows", f"DROP VIEW IF EXISTS {_global(old)}")
            del self._requested[old]
            self._names.discard(old)


def _unused_names() -> Iterator[str]:
    while _ENDED:
        try:
            names = _ENDED.popleft()
        except IndexError:  # another invocation of the process was faster
            return
        yield from names


def _global(name: str) -> str:
    return f"`global_temp`.{quote(name)}"
