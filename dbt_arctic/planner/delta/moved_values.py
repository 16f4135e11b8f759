"""Rows that a condition keeps or drops only because the value of an uncorrelated subquery has changed.

``price > (SELECT avg(price) FROM ...)`` compares all rows with one value. If that value moves, only the rows
between the old and the new one enter or leave the result. They are found by evaluating the condition with
both values, as for the time.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Limit,
    Node,
    SetOperation,
    Subquery,
    SubqueryRef,
    Window,
)
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.delta.old_or_new import old_or_new
from dbt_arctic.planner.delta.static_filters import renumbered
from dbt_arctic.planner.frontend.point_in_time import before, moves, not_true
from dbt_arctic.planner.properties.facts import Facts


def moved_values(node: Filter, facts: Facts) -> frozenset[int]:
    """The numbers of the subqueries of a filter whose changed values move only some of its rows.

    Not over the values of aggregates and window functions, which the query would have to compute for all
    rows.
    """
    found = frozenset(
        number
        for number, one in enumerate(node.subqueries)
        if one.kind == "scalar" and not one.links and facts.changed(one.plan)
    )
    used = columns_of(*(part for part in node.conditions if _refers(part, found)))
    below = tuple(name for name in node.child.output if name in used)
    return found if found and below and old_or_new(node.child, below, facts) is not None else frozenset()


def moves_few_rows(node: Node) -> bool:
    """Whether a row that enters or leaves a filter moves few rows of a query.

    It does not if the query has groups: most of them contain such a row, and are computed again.
    """
    if isinstance(node, Aggregate | Window | Limit | SetOperation):
        return False
    below = (getattr(node, name, None) for name in ("child", "left", "right"))
    return all(map(moves_few_rows, (*filter(None, below), *getattr(node, "children", ()))))


def moved_rows(node: Filter, facts: Facts) -> tuple[Filter, Filter] | None:
    """The unchanged rows that leave the filter because such a value has changed, and those that enter it.

    Changed rows are found by the rules themselves. ``None`` if there is no such value.
    """
    moved = moved_values(node, facts)
    compared = [part for part in node.conditions if _refers(part, moved)]
    if not compared:
        return None
    used = sorted({ref.number for part in compared for ref in part.find_all(SubqueryRef)})
    subqueries: list[Subquery] = [node.subqueries[number] for number in used]
    now = {number: place for place, number in enumerate(used)}
    then = dict(now)
    for number in used:
        if number in moved:
            then[number] = len(subqueries)
            subqueries.append(
                replace(node.subqueries[number], plan=facts.before(node.subqueries[number].plan))
            )
    later = tuple(renumbered(part, now) for part in compared)
    earlier = tuple(before(renumbered(part, then)) for part in compared)
    others = tuple(part for part in node.conditions if part.find(SubqueryRef) is None and not moves(part))
    leaving, entering = (*others, *earlier, not_true(later)), (*others, *later, not_true(earlier))
    return Filter(node.child, leaving, tuple(subqueries)), Filter(node.child, entering, tuple(subqueries))


def _refers(part: exp.Expression, numbers: frozenset[int]) -> bool:
    return any(ref.number in numbers for ref in part.find_all(SubqueryRef))


__all__ = ["moved_rows", "moved_values", "moves_few_rows"]
