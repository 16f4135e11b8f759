"""Totals that a query compares its groups with, computed from the groups.

In ``SELECT city, sum(price) / (SELECT sum(price) FROM orders) AS share FROM orders GROUP BY city``, a change
moves the total, and with it every share. The sums of the cities give the total as well, so an auxiliary view
of the cities is all that the query needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.canonical_form import canonical_sql
from dbt_arctic.planner.algebra.columns import used_columns
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Limit,
    Node,
    Project,
    Subquery,
    map_children,
    walk,
)
from dbt_arctic.planner.algebra.scalars import column, substitute
from dbt_arctic.planner.spark.dialect import SameType, to_sql
from dbt_arctic.planner.spark.identifiers import Identifiers

_CALLS = (exp.Count, exp.Max, exp.Min, exp.Sum)


def ends_in(node: Node) -> tuple[Node, tuple[Subquery, ...]]:
    """The operator that a query ends in, and the subqueries of the filters and projections over it."""
    found: tuple[Subquery, ...] = ()
    while isinstance(node, Project | Filter | Limit):
        found += getattr(node, "subqueries", ())
        node = node.child
    return node, found


def with_totals_of_groups(node: Node) -> Node:
    """The same query with totals over the groups it ends in, in place of totals over their rows.

    The query itself if it has no such totals.
    """
    groups, subqueries = ends_in(node)
    if not isinstance(groups, Aggregate) or not groups.groups or groups.grouping_sets is not None:
        return node
    totals = list(_totals(groups, subqueries))
    if not totals:
        return node
    fresh = Identifiers()
    for name in used_columns([node]):
        fresh(name)
    names = {to_sql(call): name for name, call in groups.aggregates}
    more: list[tuple[str, exp.Expression]] = []
    for call in (_renamed(call, one, groups) for one in totals for _, call in one.aggregates):
        text = to_sql(call)
        if text not in names:
            names[text] = fresh("of_group")
            more.append((names[text], call))
    groups = replace(groups, aggregates=(*groups.aggregates, *more))
    return _replaced(node, groups, {one: _over_groups(one, groups, names, fresh) for one in totals})


def _totals(groups: Aggregate, subqueries: tuple[Subquery, ...]) -> Iterator[Aggregate]:
    """The totals over the grouped rows, each of which the aggregates of the groups determine."""
    rows = canonical_sql(groups.child)
    parts = (part for one in subqueries if not one.correlation for part in walk(one.plan))
    for part in dict.fromkeys(parts):
        if not isinstance(part, Aggregate) or part.groups or part.grouping_sets is not None:
            continue
        if all(_adds_up(call) for _, call in part.aggregates) and canonical_sql(part.child) == rows:
            yield part


def _adds_up(call: exp.Expression) -> bool:
    return isinstance(call, _CALLS) and not call.args.get("expressions") and call.find(exp.Distinct) is None


def _renamed(call: exp.Expression, total: Aggregate, groups: Aggregate) -> exp.Expression:
    """An aggregate of a total, over the columns of the rows that are grouped."""
    return substitute(call, dict(zip(total.child.output, map(column, groups.child.output), strict=True)))


def _over_groups(
    total: Aggregate, groups: Aggregate, names: Mapping[str, str], fresh: Identifiers
) -> Project:
    """A total over the groups of its rows, which have the same identifiers in both places.

    :param names: the aggregate of the groups that has the parts of a call, by the text of the call.
    """
    calls: list[tuple[str, exp.Expression]] = []
    shown: list[tuple[str, exp.Expression]] = []
    for name, call in total.aggregates:
        part, made = names[to_sql(_renamed(call, total, groups))], fresh(name)
        whole = exp.Sum if isinstance(call, exp.Count) else type(call)
        calls.append((made, whole(this=column(part))))
        # A count of no rows is NULL here, and no group reads it: without rows, there are no groups.
        # The sum of sums has more digits than the sum of the rows.
        value = SameType(this=column(made), named=part) if isinstance(call, exp.Sum) else column(made)
        shown.append((name, value))
    return Project(Aggregate(groups, (), tuple(calls)), tuple(shown))


def _replaced(node: Node, groups: Aggregate, changed: Mapping[Aggregate, Project]) -> Node:
    """The query with other groups, and other totals in the subqueries above them."""

    def inside(part: Node) -> Node:
        found = changed.get(part) if isinstance(part, Aggregate) else None
        return map_children(part, inside) if found is None else found

    if not isinstance(node, Project | Filter | Limit):
        return groups
    made = replace(node, child=_replaced(node.child, groups, changed))
    if isinstance(made, Limit):
        return made
    subqueries = tuple(
        one if one.correlation else replace(one, plan=inside(one.plan)) for one in made.subqueries
    )
    return replace(made, subqueries=subqueries)


__all__ = ["ends_in", "with_totals_of_groups"]
