"""Window functions of a SELECT."""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Node, Window
from dbt_arctic.planner.frontend.builder import QueryBuilder
from dbt_arctic.planner.frontend.order_by_positions import note_names
from dbt_arctic.planner.frontend.scope import LIFTED, Scope, lifted
from dbt_arctic.planner.spark.dialect import to_sql
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.spark.syntax import core


def windows(
    builder: QueryBuilder, node: Node, scope: Scope, values: list[exp.Expression], order: list[exp.Expression]
) -> tuple[Node, list[exp.Expression], list[exp.Expression]]:
    """Build a Window operator for each PARTITION BY, and replace window functions by its columns."""
    found: dict[str, tuple[tuple[exp.Expression, ...], list[tuple[str, exp.Expression]]]] = {}
    known: dict[str, str] = {}

    def lift(node_: exp.Expression) -> exp.Expression:
        if isinstance(node_, exp.Window):
            text = to_sql(node_)
            if text not in known:
                converted = builder.plain_expression(node_, scope)
                assert isinstance(converted, exp.Window)
                note_names(converted.args.get("order"), scope.names)
                partition = tuple(converted.args.get("partition_by") or ())
                key = ", ".join(to_sql(part) for part in partition)
                wanted_name = function_name(core(converted.this)) or "window"
                known[text] = builder.identifier(wanted_name)
                found.setdefault(key, (partition, []))[1].append((known[text], converted))
            return lifted(known[text])
        if isinstance(node_, exp.Query | exp.Subquery):
            return node_
        made = node_.copy()
        for child in list(made.iter_expressions()):
            child.replace(lift(child))
        return made

    def without(part: exp.Expression) -> exp.Expression:
        # Most expressions have no window. Transforming them all would take a third of the planning time.
        return part.copy() if part.find(exp.Window) is None else lift(part)

    values, order = [without(part) for part in values], [without(part) for part in order]
    for partition, items in found.values():
        node = Window(node, partition, tuple(items))
    scope.relations.setdefault(LIFTED, {}).update({name.lower(): name for name in known.values()})
    return node, values, order
