"""Regrouping: the distinct values that a query counts, or takes MIN or MAX of, as groups of their own.

A new order of a customer only changes the month's count of customers if the customer has no other order in
that month. Finding this out needs all orders of the month. Grouped by customer as well, they are far fewer
than the orders' lines, and contain their sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_arctic.planner.algebra.columns import used_columns
from dbt_arctic.planner.algebra.operators import Aggregate, Filter, Node, Project, Scan, map_children, walk
from dbt_arctic.planner.algebra.scalars import column, plain
from dbt_arctic.planner.auxiliary.auxiliary_view import RowsOfState
from dbt_arctic.planner.auxiliary.state_columns import ROWS
from dbt_arctic.planner.delta.count_distinct import counted_once
from dbt_arctic.planner.properties.unique_keys import has_small_groups
from dbt_arctic.planner.spark.dialect import SameType, to_sql
from dbt_arctic.planner.spark.identifiers import Identifiers

MAX_SHARE = 0.5
"""The largest share of the table's rows. With more groups, reading them takes as long as reading the table.
"""


@dataclass(frozen=True)
class Regrouped:
    """A query over an aggregate with more group columns.

    :param node: the query over ``stored_part``.
    :param stored_part: the aggregate with more group columns.
    """

    node: Node
    stored_part: Aggregate
    size: RowsOfState


def regrouped(
    node: Node, keys_of: Mapping[str, Sequence[str]], rows: Mapping[str, int], worth: int
) -> Regrouped | None:
    """Regroup an aggregate of a query by the distinct values that it needs.

    The parameters are those of ``find_nested_view``.

    :returns: ``None`` if no aggregate can be regrouped.
    """
    for part in walk(node):
        made = _regrouped(node, part, keys_of) if isinstance(part, Aggregate) else None
        if made is not None and rows.get(made.size.source, -1) >= worth:
            return replace(made, node=_swapped(node, part, made.node))
    return None


def _swapped(node: Node, part: Node, other: Node) -> Node:
    return other if node is part else map_children(node, lambda child: _swapped(child, part, other))


def _regrouped(whole: Node, node: Aggregate, keys_of: Mapping[str, Sequence[str]]) -> Regrouped | None:
    table = _table(node.child)
    if table is None or not node.groups or node.grouping_sets is not None or has_small_groups(node, keys_of):
        return None
    values: dict[str, exp.Expression] = {}
    for _, call in node.aggregates:
        value = _value_of(call)
        if value is not None:
            values[to_sql(value)] = value
    first = keys_of.get(table.source, ())[:1]
    stored = _stored(node.child)
    by_key = {text: value for text, value in values.items() if stored.get(plain(value) or "") in first}
    if values.keys() == by_key.keys():
        return None  # By the first column of its key, values are found quickly in the table itself.
    fresh = Identifiers()
    for name in used_columns([whole]):
        fresh(name)
    names: dict[str, str] = {}
    groups: list[tuple[str, exp.Expression]] = []
    # The table's key comes first, so that recent changes are stored together.
    for value in (*by_key.values(), *(value for _, value in node.groups), *values.values()):
        text = to_sql(value)
        if text not in names:
            names[text] = fresh(stored.get(plain(value) or "") or "grouped_by")
            groups.append((names[text], value))
    stored_part: list[tuple[str, exp.Expression]] = []
    outer: list[tuple[str, exp.Expression]] = []
    shown: list[tuple[str, exp.Expression]] = []
    for name, call in node.aggregates:
        value = _value_of(call)
        if value is not None:
            again = call.copy()
            again.set("this", _of_distinct(call, column(names[to_sql(value)])))
            outer.append((name, again))
            shown.append((name, column(name)))
            continue
        if (
            not isinstance(call, exp.Count | exp.Sum)
            or call.args.get("expressions")
            or call.find(exp.Distinct)
        ):
            return None
        part, total = fresh(f"{name}_of_group"), fresh(f"{name}_of_groups")
        stored_part.append((part, call))
        outer.append((total, exp.Sum(this=column(part))))
        value = column(total)
        shown.append((name, value if isinstance(call, exp.Count) else SameType(this=value, named=part)))
    below = Aggregate(node.child, tuple(groups), tuple(stored_part) or ((fresh("rows_of_group"), _COUNT),))
    mine = tuple((fresh(name), column(names[to_sql(value)])) for name, value in node.groups)
    made = Project(
        Aggregate(below, mine, tuple(outer)),
        (*((name, column(one)) for (name, _), (one, _) in zip(node.groups, mine, strict=True)), *shown),
    )
    counted = Aggregate(node.child, (), ((ROWS, _how_many([value for _, value in groups])),))
    return Regrouped(made, below, RowsOfState(counted, table.source, MAX_SHARE))


_COUNT = exp.Count(this=exp.Star())


def _how_many(values: list[exp.Expression]) -> exp.Expression:
    """The approximate number of groups; NULL if a group has a NULL, as keys of keyed tables cannot."""
    first, *others = values
    all_there = exp.EQ(this=exp.Count(this=first, expressions=others), expression=_COUNT)
    number = exp.ApproxDistinct(this=exp.Anonymous(this="xxhash64", expressions=values))
    return exp.Case(ifs=[exp.If(this=all_there, true=number)])


def _value_of(call: exp.Expression) -> exp.Expression | None:
    """The expression of which a call only needs the distinct values."""
    if isinstance(call, exp.Min | exp.Max) and not call.args.get("expressions"):
        value = call.this
        assert isinstance(value, exp.Expression)
        return value
    return counted_once(call)


def _of_distinct(call: exp.Expression, value: exp.Expression) -> exp.Expression:
    return exp.Distinct(expressions=[value]) if isinstance(call, exp.Count) else value


def _table(node: Node) -> Scan | None:
    """The single table whose rows a tree filters and projects; ``None`` if there is none."""
    while isinstance(node, Project | Filter) and not node.subqueries:
        node = node.child
    return node if isinstance(node, Scan) else None


def _stored(node: Node) -> dict[str, str]:
    """The columns of an operator that are columns of its table, with their stored names."""
    if isinstance(node, Scan):
        return node.stored
    assert isinstance(node, Project | Filter)
    below = _stored(node.child)
    if isinstance(node, Filter):
        return below
    return {name: below[one] for name, value in node.items if (one := plain(value) or "") in below}


__all__ = ["MAX_SHARE", "Regrouped", "regrouped"]
