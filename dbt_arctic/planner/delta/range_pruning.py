"""Range pruning: skips rows outside the range of the changed rows on the other side of a join.

Files store the minimum and maximum of each column, so those outside the range are not read (Moerkotte 1998).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.keyed.value_range import ValueRange
from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import (
    OF_CHANGES,
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
from dbt_arctic.planner.algebra.scalars import column, columns_of, plain
from dbt_arctic.planner.properties.facts import Facts


def pruned_to_ranges(node: Node, changed: Node, same: Mapping[str, str], facts: Facts) -> Node:
    """One side of a join, without rows outside the range of the changed rows of the other side."""
    conditions: list[exp.Expression] = []
    for name in changed.output:
        known = range_of(changed, name, facts)
        other = same.get(name)
        if known is not None and other is not None and other in node.output:
            low, high = (exp.Var(this=bound) for bound in known)
            conditions.append(exp.Between(this=column(other), low=low, high=high))
    return _filtered(node, tuple(conditions)) if conditions else node


def range_of(node: Node, name: str, facts: Facts) -> ValueRange | None:
    """The range of a column of changed rows, if it is a key column of one upstream."""
    match node:
        case Scan():
            stored = node.stored[name]
            return facts.of(node).ranges.get(stored) if node.state in OF_CHANGES else None
        case Project():
            below = plain(dict(node.items)[name])
            return None if below is None else range_of(node.child, below, facts)
        case Filter():
            return range_of(node.child, name, facts)
        case Join():
            side = node.left if name in node.left.output else node.right
            return range_of(side, name, facts)
        case UnionAll():
            place = node.columns.index(name)
            found = {range_of(child, child.output[place], facts) for child in node.children}
            return found.pop() if len(found) == 1 else None
        case KeySemiJoin() | Aggregate() | Limit():
            return conservative(None, "ranges could pass through them, but no changed rows do so far")
        case Values() | Window() | SetOperation() | Generate():
            return conservative(None, "a column may be computed, or belong to another side")


def _filtered(node: Node, conditions: tuple[exp.Expression, ...]) -> Node:
    """Add conditions as close to the scans as their columns are passed through unchanged."""
    if isinstance(node, Join) and node.kind == "inner":
        sides = [
            tuple(part for part in conditions if columns_of(part) <= set(side.output))
            for side in (node.left, node.right)
        ]
        left, right = (
            _filtered(side, own) if own else side
            for side, own in zip((node.left, node.right), sides, strict=True)
        )
        return replace(node, left=left, right=right)
    if isinstance(node, Filter) and not node.subqueries:
        return Filter(_filtered(node.child, conditions), node.conditions)
    return Filter(node, conditions)
