"""Rows that another value of an uncorrelated subquery moves, although they have not changed themselves.

``price > (SELECT avg(price) FROM ...)`` compares all rows with one value. If that value moves, only the rows
between the old and the new one enter or leave the result. They are found by evaluating the condition with
both values, as for the time. The same holds for a condition in a select list, as in ``CASE WHEN price >
(SELECT avg(price) FROM ...) THEN ...``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Limit,
    Node,
    Project,
    SetOperation,
    Subquery,
    SubqueryRef,
    Window,
)
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.delta.old_or_new import old_or_new
from dbt_arctic.planner.delta.static_filters import renumbered
from dbt_arctic.planner.frontend.point_in_time import at_last_refresh, not_true, time_has_changed
from dbt_arctic.planner.properties.facts import Facts


def changed_scalars(node: Filter | Project, facts: Facts) -> frozenset[int]:
    """The numbers of the subqueries of an operator whose changed values move only some of its rows.

    Not over the values of aggregates and window functions, which the query would have to compute for all
    rows.
    """
    found = frozenset(
        number
        for number, one in enumerate(node.subqueries)
        if one.kind == "scalar" and not one.links and facts.changed(one.plan)
    )
    if isinstance(node, Filter):
        compared = [part for part in node.conditions if _refers(part, found)]
    else:
        compared = [value for _, value in node.items if _refers(value, found)]
        if not all(map(_decides, compared)):
            return frozenset()
    used = columns_of(*compared)
    below = tuple(name for name in node.child.output if name in used)
    return found if found and below and old_or_new(node.child, below, facts) is not None else frozenset()


def changes_few_rows(node: Node) -> bool:
    """Whether a row that enters or leaves a filter moves few rows of a query.

    It does not if the query has groups: most of them contain such a row, and are computed again.
    """
    if isinstance(node, Aggregate | Window | Limit | SetOperation):
        return False
    below = (getattr(node, name, None) for name in ("child", "left", "right"))
    return all(map(changes_few_rows, (*filter(None, below), *getattr(node, "children", ()))))


def leaving_and_entering_rows(node: Filter, facts: Facts) -> tuple[Filter, Filter] | None:
    """The unchanged rows that leave the filter because such a value has changed, and those that enter it.

    Changed rows are found by the rules themselves. ``None`` if there is no such value.
    """
    found = _both(node, node.conditions, facts)
    if found is None:
        return None
    later, earlier, subqueries = found
    others = tuple(
        part for part in node.conditions if part.find(SubqueryRef) is None and not time_has_changed(part)
    )
    leaving, entering = (*others, *earlier, not_true(later)), (*others, *later, not_true(earlier))
    return Filter(node.child, leaving, subqueries), Filter(node.child, entering, subqueries)


def rows_with_changed_values(node: Project, facts: Facts) -> Filter | None:
    """The unchanged rows that get another value in a select list because such a value has changed.

    ``None`` if there is no such value.
    """
    found = _both(node, [value for _, value in node.items], facts)
    if found is None:
        return None
    later, earlier, subqueries = found
    differ = [
        exp.Not(
            this=exp.Paren(this=exp.NullSafeEQ(this=exp.Paren(this=one), expression=exp.Paren(this=other)))
        )
        for one, other in zip(later, earlier, strict=True)
    ]
    return Filter(node.child, (exp.Paren(this=exp.or_(*differ)),), subqueries)


def _both(
    node: Filter | Project, values: Iterable[exp.Expression], facts: Facts
) -> tuple[tuple[exp.Expression, ...], tuple[exp.Expression, ...], tuple[Subquery, ...]] | None:
    """The expressions over values that have changed: as they are now, as they were, and both subqueries."""
    changed = changed_scalars(node, facts)
    compared = [part for part in values if _refers(part, changed)]
    if not compared:
        return None
    used = sorted({ref.number for part in compared for ref in part.find_all(SubqueryRef)})
    subqueries: list[Subquery] = [node.subqueries[number] for number in used]
    now = {number: place for place, number in enumerate(used)}
    then = dict(now)
    for number in used:
        if number in changed:
            then[number] = len(subqueries)
            subqueries.append(
                replace(node.subqueries[number], plan=facts.before(node.subqueries[number].plan))
            )
    later = tuple(renumbered(part, now) for part in compared)
    earlier = tuple(at_last_refresh(renumbered(part, then)) for part in compared)
    return later, earlier, tuple(subqueries)


def _decides(value: exp.Expression) -> bool:
    """Whether subqueries are only compared with columns, so that few rows get another value."""
    around = [ref.find_ancestor(exp.Predicate) for ref in value.find_all(SubqueryRef)]
    return all(one is not None and one.find(exp.Column) is not None for one in around)


def _refers(part: exp.Expression, numbers: frozenset[int]) -> bool:
    return any(ref.number in numbers for ref in part.find_all(SubqueryRef))


__all__ = ["changed_scalars", "changes_few_rows", "leaving_and_entering_rows", "rows_with_changed_values"]
