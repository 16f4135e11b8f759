"""Column equivalences: columns that are equal in every row, by the transitivity of equality.

``a.k = b.k AND b.k = c.k`` makes ``a.k`` and ``c.k`` equal: properties of one also hold for the other,
without ``b``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    KeySemiJoin,
    Limit,
    Node,
    Project,
    Scan,
    SetOperation,
    UnionAll,
    Values,
    Window,
)
from dbt_arctic.planner.algebra.scalars import equalities, plain

Classes = tuple[frozenset[str], ...]
"""Equivalence classes of columns of the same type, which can replace each other in any expression."""


def equal_columns(node: Node) -> Classes:
    """The columns of an operator that are equal in every row."""
    match node:
        case Filter():
            return _merged([*equal_columns(node.child), *_pairs(node.conditions)])
        case Project() | Aggregate():
            if isinstance(node, Aggregate) and node.grouping_sets is not None:
                return conservative((), "a group of one set has the NULLs of another one")
            items = node.groups if isinstance(node, Aggregate) else node.items
            return _shown(equal_columns(node.child), dict(items))
        case Join():
            if node.kind == "inner":
                sides = (*equal_columns(node.left), *equal_columns(node.right))
                return _merged([*sides, *_pairs(node.conditions)])
            # An unmatched row has NULLs on the other side, which equal nothing.
            kept = {"right": (node.right,), "full": ()}.get(node.kind, (node.left,))
            return tuple(one for side in kept for one in equal_columns(side))
        case Window() | Limit() | Generate() | KeySemiJoin():
            return equal_columns(node.child)
        case UnionAll() | SetOperation():
            return conservative((), "each part has its own values")
        case Scan() | Values():
            return ()


def joined_to(node: Join, mine: Collection[str]) -> Mapping[str, str]:
    """The columns of one side, by the columns of the other side that the join makes equal to them.

    :param mine: the columns of the one side.
    """
    found: dict[str, str] = {}
    for theirs, own in equalities(node.conditions, same_type=True):
        if own in mine and theirs not in mine:
            found.setdefault(theirs, own)
    sides = (*equal_columns(node.left), *equal_columns(node.right))
    for group in _merged([*sides, *_pairs(node.conditions)]):
        inside = sorted(group & set(mine))
        for name in group - set(mine):
            if inside:
                found.setdefault(name, inside[0])
    return found


def _pairs(conditions: Iterable[exp.Expression]) -> list[frozenset[str]]:
    return [frozenset(pair) for pair in equalities(conditions, same_type=True)]


def _merged(groups: Iterable[frozenset[str]]) -> Classes:
    found: list[frozenset[str]] = []
    for group in groups:
        meeting = [one for one in found if one & group]
        found = [one for one in found if not one & group]
        found.append(group.union(*meeting))
    return tuple(found)


def _shown(groups: Classes, items: Mapping[str, exp.Expression]) -> Classes:
    """The equivalence classes under an operator's output names. A column may have several of these."""
    by_column: dict[str, set[str]] = {}
    for name, value in items.items():
        below = plain(value)
        if below is not None:
            by_column.setdefault(below, set()).add(name)
    inside = frozenset(one for group in groups for one in group)
    whole = [*groups, *(frozenset({one}) for one in by_column if one not in inside)]
    named = (frozenset(name for one in group for name in by_column.get(one, ())) for group in whole)
    return tuple(group for group in named if len(group) > 1)


__all__ = ["Classes", "equal_columns", "joined_to"]
