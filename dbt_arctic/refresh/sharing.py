"""What several models of an invocation read of an upstream, and how it is told what to keep for them.

Of a keyed table without before-images these are its changed rows, as they were and as they are, and the rows
that do not change and that changed keys meet: the lines of a changed order. All of them are found by one read
of the table as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.read import key_equality
from dbt_arctic.planner.algebra import SIGN_OF_ROW, Node, State, scans
from dbt_arctic.refresh.auto import AutoPlan
from dbt_arctic.refresh.edge import Edge
from dbt_arctic.refresh.ranges import Range, hull
from dbt_arctic.refresh.shared_rows import SharedRows
from dbt_arctic.refresh.upstreams import Upstream, signed

SIDE = quote("_arctic_side")
"""-1: a row as it was; 1: a row as it is; 0: one that is as it was."""

_KEY = quote("_arctic_met")
_OF_SIDE: Mapping[State, str] = {
    "minus": f"{SIDE} = -1",
    "plus": f"{SIDE} = 1",
    "changed": f"{SIDE} <> 0",
    "met_old": f"{SIDE} <= 0",
    "met_new": f"{SIDE} >= 0",
}
_COMPARED: tuple[State, ...] = ("minus", "plus")
_NARROW, _SMALL = 32, 256
"""Up to so many columns, and bytes of a row, all columns are kept: the next model that asks for another one
finds it.
"""


@dataclass
class _Asked:
    """What a plan asks of an upstream. :param reads: whether for rows that only a read of the table tells."""

    columns: dict[str, None] = field(default_factory=dict)
    met_by: set[tuple[str, str]] = field(default_factory=set)
    reads: bool = False


def with_shared_rows(edge: Edge, plan: AutoPlan) -> AutoPlan:
    """The plan with the rows that other models of this invocation read as well in a cache."""
    if edge.shared is None:
        return plan
    upstreams = dict(plan.reading.upstreams)
    for source, asked in sorted(_asked(plan.nodes, upstreams).items()):
        if asked.reads:
            read = upstreams[source]
            kept_rows = _of_keyed if read.key else _of_compared
            states = kept_rows(edge, edge.shared, read, asked, upstreams)
            upstreams[source] = replace(read, states={**read.states, **states})
    kept = [source for source, upstream in upstreams.items() if "met_new" in upstream.states]
    sums = None if plan.sums is None else plan.sums.where_kept(kept)
    return replace(plan, reading=replace(plan.reading, upstreams=upstreams), sums=sums)


def _asked(nodes: Iterable[Node], upstreams: Mapping[str, Upstream]) -> dict[str, _Asked]:
    found: dict[str, _Asked] = {}
    for scan in (scan for node in nodes for scan in scans(node)):
        upstream = upstreams.get(scan.source)  # none for touched values
        if upstream is None or not _is_found_by_reading(upstream):
            continue
        met_by = scan.met_by if upstream.was is not None else frozenset()
        reads = bool(met_by) or scan.state in ("minus", "changed", "signed")
        reads |= scan.state == "plus" and not upstream.key
        if reads or scan.state == "plus":
            asked = found.setdefault(scan.source, _Asked())
            stored = (column for _, column in scan.columns if column != SIGN_OF_ROW)
            asked.columns.update(dict.fromkeys(stored))
            asked.met_by |= met_by
            asked.reads |= reads
    return found


def _is_found_by_reading(upstream: Upstream) -> bool:
    """Whether what changed rows were takes a read of the table as it was."""
    return "minus" in upstream.states and not upstream.images


def _of_keyed(
    edge: Edge, shared: SharedRows, upstream: Upstream, asked: _Asked, upstreams: Mapping[str, Upstream]
) -> dict[State, str]:
    narrow = len(upstream.columns) <= _NARROW and 0 <= upstream.row_bytes <= _SMALL
    columns = [name for name, _ in upstream.columns] if narrow else [*asked.columns]
    met_by: dict[str, Range | None] = {}
    if asked.met_by:
        # Its own keys always: what changed rows were is among the rows that are read.
        own = (upstream, upstream.key[0])
        for read, column in (own, *((upstreams[source], name) for source, name in sorted(asked.met_by))):
            met_by[_keys(read, column)] = read.ranges.get(column)

    def rows(columns: Sequence[str], met_by: Mapping[str, Range | None]) -> str:
        few_tasks = f"/*+ COALESCE({2 * edge.cores}) */ " if edge.cores else ""
        return f"SELECT {few_tasks}*\nFROM (\n{_rows(upstream, columns, met_by)}\n)"

    relation = shared.kept(upstream.states["minus"], columns, met_by, rows, edge.run)
    if relation is None:
        return {}
    listed = quote_all(asked.columns) if asked.columns else "1"
    states = [state for state in _OF_SIDE if asked.met_by or not state.startswith("met")]
    found = {state: f"SELECT {listed} FROM {relation}\nWHERE {_OF_SIDE[state]}" for state in states}
    shown = "".join(f"{quote(column)}, " for column in asked.columns)
    sign = f"{SIDE} AS {quote(SIGN_OF_ROW)}"
    return {**found, "signed": f"SELECT {shown}{sign} FROM {relation}\nWHERE {_OF_SIDE['changed']}"}


def _rows(upstream: Upstream, columns: Sequence[str], met_by: Mapping[str, Range | None]) -> str:
    """Changed rows of both states, and unchanged ones that keys meet. Columns: these, and ``SIDE``."""
    shown = "".join(f"{quote(column)}, " for column in columns)
    if met_by:
        old = f"SELECT {shown}{SIDE}\nFROM (\n{_as_it_was(upstream, met_by)}\n)"
    else:
        old = f"SELECT {shown}-1 AS {SIDE}\nFROM (\n{upstream.states['minus']}\n)"
    return f"{old}\nUNION ALL\nSELECT {shown}1 AS {SIDE}\nFROM (\n{upstream.states['plus']}\n)"


def _keys(upstream: Upstream, column: str) -> str:
    return f"SELECT {quote(column)} AS {_KEY}\nFROM (\n{upstream.states['keys']}\n)"


def _as_it_was(upstream: Upstream, met_by: Mapping[str, Range | None]) -> str:
    """The rows, as they were, of changed keys and of the keys that these meet."""
    assert upstream.was is not None
    first, keys = upstream.key[0], upstream.states["keys"]
    met = "\nUNION ALL\n".join(met_by)
    old = upstream.was.rows(f"SELECT /*+ BROADCAST */ {_KEY} AS {quote(first)}\nFROM (\n{met}\n)", [first])
    range_ = hull(list(met_by.values()))
    between = f"\nWHERE m.{quote(first)} BETWEEN {range_[0]} AND {range_[1]}" if range_ else ""
    return f"""\
SELECT m.*, CASE WHEN k.{quote(first)} IS NULL THEN 0 ELSE -1 END AS {SIDE}
FROM (
{old}
) AS m
LEFT JOIN (
SELECT /*+ BROADCAST */ {quote_all(upstream.key)}
FROM (
{keys}
)
) AS k
  ON {key_equality("m", "k", upstream.key)}{between}"""


def _of_compared(
    edge: Edge, shared: SharedRows, upstream: Upstream, asked: _Asked, upstreams: Mapping[str, Upstream]
) -> dict[State, str]:
    """Of a table without a key both states are compared to find what it has lost, and what it has gained."""
    columns = [*asked.columns] or [name for name, _ in upstream.columns]
    listed = quote_all(columns)
    found: dict[State, str] = {}
    for state in _COMPARED:
        rows = upstream.states[state]

        def selected(columns: Sequence[str], met_by: Mapping[str, Range | None], rows: str = rows) -> str:
            return f"SELECT {quote_all(columns)}\nFROM (\n{rows}\n)"

        relation = shared.kept(rows, columns, {}, selected, edge.run)
        found[state] = f"SELECT {listed}\nFROM {relation or f'({chr(10)}{rows}{chr(10)})'}"
    minus, plus = found["minus"], found["plus"]
    return {**found, "changed": f"{minus}\nUNION ALL\n{plus}", "signed": signed(minus, plus, listed)}
