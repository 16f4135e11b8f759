"""Values that all rows of a query share, such as the average of a whole table.

If its tables have not changed since it was computed, the value is still the same, and becomes a literal. Then
its tables are not read, and a comparison with the literal can prune files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_arctic.planner.algebra.columns import all_expressions, prune_columns
from dbt_arctic.planner.algebra.operators import (
    Filter,
    Node,
    Project,
    Subquery,
    SubqueryRef,
    map_children,
    scans,
    walk,
)
from dbt_arctic.planner.algebra.render import Renderer, Sources
from dbt_arctic.planner.auxiliary.auxiliary_view import sql_of
from dbt_arctic.planner.frontend.point_in_time import time_has_changed
from dbt_arctic.planner.properties.facts import Facts


@dataclass(frozen=True)
class SharedValue:
    """A value that all rows of a query share.

    :param name: equal for equal queries.
    :param node: a query of one row and one column.
    :param rows: the number of rows of the tables that it reads.
    """

    name: str
    node: Node
    rows: int


def shared_values(node: Node, facts: Facts) -> tuple[SharedValue, ...]:
    """The shared values in conditions of a query that cannot have changed since the last refresh."""
    found = {one.name: one for part in walk(node) for one in _of(part, facts).values()}
    return tuple(found.values())


def with_known(node: Node, facts: Facts, known: Mapping[str, str]) -> Node:
    """The query with literals in place of known values.

    :param known: SQL literals by the names of values.
    """
    node = map_children(node, lambda child: with_known(child, facts, known))
    values = {number: known[one.name] for number, one in _of(node, facts).items() if one.name in known}
    if not values:
        return node
    assert isinstance(node, Filter)
    left = [number for number in range(len(node.subqueries)) if number not in values]
    places = {number: place for place, number in enumerate(left)}

    def swap(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, SubqueryRef):
            return part
        if part.number in values:
            return exp.Var(this=values[part.number])
        return SubqueryRef(this=places[part.number])

    conditions = []
    for condition in node.conditions:
        made = condition.copy().transform(swap, copy=False)
        assert isinstance(made, exp.Expression)
        conditions.append(made)
    subqueries = tuple(node.subqueries[number] for number in left)
    return replace(node, conditions=tuple(conditions), subqueries=subqueries)


def value_sql(value: SharedValue, sources: Sources) -> str:
    """The SQL of the value as a string, and of its type as Spark names it; at most one row."""
    rows = Renderer(sources).query(prune_columns(value.node))
    return f"SELECT CAST(value AS STRING), typeof(value)\nFROM (\n{rows}\n)"


def _of(node: Node, facts: Facts) -> dict[int, SharedValue]:
    """The shared values of a filter, by the number of their subquery."""
    if not isinstance(node, Filter):
        return {}
    return dict(_values(node.subqueries, facts))


def _values(subqueries: tuple[Subquery, ...], facts: Facts) -> Iterator[tuple[int, SharedValue]]:
    for number, one in enumerate(subqueries):
        if one.kind != "scalar" or one.links or one.value is None or facts.changed(one.plan):
            continue
        node = Project(one.plan, (("value", one.value),))
        if any(time_has_changed(*all_expressions(part)) for part in walk(node)):
            continue
        name = hashlib.sha256(sql_of(prune_columns(node)).encode()).hexdigest()[:16]
        yield number, SharedValue(name, node, facts.known_rows(scans(node)))


__all__ = ["SharedValue", "shared_values", "value_sql", "with_known"]
