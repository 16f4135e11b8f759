"""Shared lookups: rows of an upstream that several parts of a statement look up by the same values.

To compare the old and new rows of affected values, the same table is read for the same values at both states,
and again for each subquery over it. The rows of these values are few compared to the table. So they are read
once, at the new state. The old rows are these, without the changed ones, and with the lost ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqlglot import exp

from dbt_arctic.planner.algebra.columns import prune_columns, used_columns
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Join,
    KeySemiJoin,
    Node,
    Project,
    Scan,
    ScannedColumn,
    State,
    UnionAll,
    map_children,
    own_names,
    walk,
)
from dbt_arctic.planner.algebra.scalars import column, plain
from dbt_arctic.planner.properties.facts import Facts

SIDE = "_arctic_side"
"""0: a row of both states; 1: of the new one only; -1: of the old one only."""

_MAX_BROADCAST_KEYS = 2_000_000
"""The most changed keys that are broadcast."""

_SIDES: dict[State, Callable[..., exp.Expression]] = {"new": exp.GTE, "old": exp.LTE}


@dataclass(frozen=True)
class SharedLookup:
    """Rows of an upstream that several parts of a statement look up by the same values.

    :param name: the relation that stands for them.
    :param rows: the query of the stored columns and ``SIDE``.
    """

    name: str
    rows: Node


class _LookedUpColumn(NamedTuple):
    """A stored column of an upstream, and the column of the keys that has its values."""

    name: str
    key: str


@dataclass
class _Lookup:
    """Reads of one upstream by the same values."""

    source: str
    by: tuple[_LookedUpColumn, ...]
    keys: Node
    columns: dict[str, None] = field(default_factory=dict)
    times: int = 0


def share_lookups(
    nodes: Iterable[Node], facts: Facts, is_cached: Callable[[Node], bool] = lambda rows: False
) -> tuple[tuple[Node, ...], tuple[SharedLookup, ...]]:
    """Replace repeated lookups in the parts of a statement by shared ones.

    Returns the changed parts, and the shared lookups in the order in which they are computed.

    :param is_cached: whether the rows of a lookup are stored so close that reading them again costs little.
    """
    parts = tuple(nodes)
    lookups: list[_Lookup] = []
    for part in parts:
        used = used_columns([part])  # Another part may need more columns of a relation with the same name.
        for node in walk(part):
            found = _looked_up(node, facts)
            if found is None:
                continue
            scan, lookup = found
            known = next((one for one in lookups if _same(one, lookup)), None)
            if known is None:
                known = lookup
                lookups.append(known)
            known.columns.update(dict.fromkeys(stored for name, stored in scan.columns if name in used))
            known.times += 1
    several = [one for one in lookups if one.times > 1 and not is_cached(_rows(one, facts))]

    def swapped(node: Node, used: Collection[str]) -> Node:
        found = _looked_up(node, facts)
        if found is not None:
            scan, lookup = found
            place = next((place for place, one in enumerate(several) if _same(one, lookup)), None)
            if place is not None:
                columns = tuple(pair for pair in scan.columns if pair[0] in used)
                return _of_state(replace(scan, source=_name(place), columns=columns), scan.state)
        return map_children(node, lambda child: swapped(child, used))

    made = tuple(
        SharedLookup(_name(place), prune_columns(_rows(one, facts))) for place, one in enumerate(several)
    )
    return tuple(swapped(part, used_columns([part])) for part in parts), made


def _name(place: int) -> str:
    return f"\0shared_lookup_{place}"


def _same(one: _Lookup, other: _Lookup) -> bool:
    return (one.source, one.by, one.keys) == (other.source, other.by, other.keys)


def _looked_up(node: Node, facts: Facts) -> tuple[Scan, _Lookup] | None:
    """A read of an upstream for some values, if one read returns the rows of both states."""
    if not isinstance(node, KeySemiJoin) or not isinstance(node.child, Scan):
        return None
    scan = node.child
    if scan.state not in _SIDES or scan.source not in facts.upstreams:
        return None
    upstream, stored = facts.of(scan), scan.stored
    if upstream.changed and not upstream.key:
        return None
    pairs = [(plain(value), name) for value, name in node.pairs]
    if any(value is None for value, _ in pairs):
        return None
    by_stored = tuple(sorted(_LookedUpColumn(stored[str(value)], name) for value, name in pairs))
    return scan, _Lookup(scan.source, by_stored, node.keys)


def _of_state(scan: Scan, state: State) -> Node:
    """The shared rows of one state, with the columns of the scan that they replace."""
    whole = replace(scan, columns=(*scan.columns, *own_names([SIDE])), state="new")
    condition = _SIDES[state](this=column(SIDE), expression=exp.Literal.number(0))
    return Project(Filter(whole, (condition,)), tuple((name, column(name)) for name in scan.output))


def _rows(lookup: _Lookup, facts: Facts) -> Node:
    scan = Scan(lookup.source, "r", own_names(lookup.columns))
    changed = facts.of(scan)
    if not changed.changed:
        return _sided(_restricted(scan, lookup), scan.output, exp.Literal.number(0))
    # New rows are recognized by their key, which the statement may not have selected.
    all_columns = own_names(dict.fromkeys((*lookup.columns, *changed.key)))
    now = _restricted(replace(scan, columns=all_columns), lookup)
    renamed = tuple(
        ScannedColumn(f"_arctic_changed_{place}", stored) for place, stored in enumerate(changed.key)
    )
    each = tuple((name, column(name)) for name, _ in renamed)
    keys: Node = Aggregate(Scan(lookup.source, "k", renamed, "keys"), each)
    if changed.changed_rows is not None and changed.changed_rows <= _MAX_BROADCAST_KEYS:
        keys = Project(keys, each, broadcast=True)
    same_keys = tuple(exp.EQ(this=column(stored), expression=column(name)) for name, stored in renamed)
    is_old = exp.Is(this=column(renamed[0].identifier), expression=exp.Null())
    is_new = exp.Case(ifs=[exp.If(this=is_old, true=exp.Literal.number(0))], default=exp.Literal.number(1))
    lost = _restricted(replace(scan, state="minus"), lookup)
    minus = exp.Neg(this=exp.Literal.number(1))
    return UnionAll(
        (
            _sided(Join(now, keys, "left", same_keys), scan.output, is_new),
            _sided(lost, scan.output, minus),
        ),
        (*lookup.columns, SIDE),
    )


def _restricted(scan: Scan, lookup: _Lookup) -> Node:
    """The rows of the values. Lost rows are looked up by columns that the scan may not have."""
    return KeySemiJoin(scan, lookup.keys, tuple((column(one.name), one.key) for one in lookup.by))


def _sided(node: Node, columns: Iterable[str], side: exp.Expression) -> Node:
    return Project(node, (*((name, column(name)) for name in columns), (SIDE, side)))
