"""Eager aggregation: groups below the join that would otherwise be aggregated (Yan and Larson 1995).

The ``count`` of orders per customer, including customers without orders, is a count over an outer join. Its
groups cannot be maintained by adding the delta: a new order may be the first one. It equals the count of
orders per customer, left-joined to the customers, with 0 for the missing ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate, Filter, Join, Node, Project, map_children
from dbt_arctic.planner.algebra.scalars import column, columns_of, linked, or_zero, plain, present
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.properties.unique_keys import unique_keys

_CALLS = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


def below_joins(node: Node, keys_of: Mapping[str, Sequence[str]]) -> Node:
    """The same query with aggregates of the null-supplying side of a left join moved below the join.

    An aggregate is moved if each of its groups is one row of the preserved side.

    :param keys_of: the keys of upstreams, by stored names.
    """
    facts = Facts({source: UpstreamFacts(True, tuple(key)) for source, key in keys_of.items()})

    def change(part: Node) -> Node:
        part = map_children(part, change)
        made = _below_join(part, facts) if isinstance(part, Aggregate) else None
        return part if made is None else made

    return change(node)


def _below_join(node: Aggregate, facts: Facts) -> Node | None:
    join = node.child
    if not isinstance(join, Join) or join.kind != "left" or node.grouping_sets is not None:
        return None
    left, right = frozenset(join.left.output), frozenset(join.right.output)
    groups = {plain(value) for _, value in node.groups}
    # An aggregate without groups has a row even if its input is empty.
    by_row = bool(groups) and any(key <= groups for key in unique_keys(join.left, facts))
    if not by_row or not groups <= left:
        return None
    # In an unmatched row all columns are NULL, but an expression over them may not be.
    if not node.aggregates or not all(
        isinstance(call, _CALLS) and not call.args.get("expressions") and plain(call.this) in right
        for _, call in node.aggregates
    ):
        return None
    links = [part for part in join.conditions if not columns_of(part) <= right]
    own = [part for part in join.conditions if columns_of(part) <= right]
    names = linked(links, right, left)
    if names is None:
        return None
    # A row with a NULL join column matches no row.
    rows = Filter(join.right, (*own, *(present(name) for name in names)))
    grouped = Aggregate(rows, tuple((name, column(name)) for name in names), node.aggregates)
    values = tuple(
        (name, or_zero(column(name)) if isinstance(call, exp.Count) else column(name))
        for name, call in node.aggregates
    )
    return Project(replace(join, right=grouped, conditions=tuple(links)), (*node.groups, *values))


__all__ = ["below_joins"]
