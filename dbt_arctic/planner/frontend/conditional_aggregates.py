"""Aggregates with a condition as the plain aggregates that can be maintained: sums, counts, MIN and MAX.

``sum(x) FILTER (WHERE c)`` becomes ``sum(CASE WHEN c THEN x END)``, and ``count_if(c)`` becomes
``count(CASE WHEN c THEN 1 END)``, because these aggregates ignore NULL. ``bool_or`` is a maximum.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate, Node, map_children
from dbt_arctic.planner.spark.functions import function_name

_IGNORE_NULLS = (exp.Avg, exp.Count, exp.Max, exp.Min, exp.Sum)


def with_conditional_values(node: Node) -> Node:
    """The same tree with plain aggregates in place of those with a condition."""
    node = map_children(node, with_conditional_values)
    if not isinstance(node, Aggregate):
        return node
    return replace(node, aggregates=tuple((name, _plain(call)) for name, call in node.aggregates))


def _plain(call: exp.Expression) -> exp.Expression:
    arguments = list(call.iter_expressions())
    if len(arguments) == 1 and not isinstance(arguments[0], exp.Distinct):
        value = arguments[0].copy()
        match function_name(call):
            case "count_if":
                return exp.Count(this=_where(value, exp.Literal.number(1)), big_int=True)
            case "bool_or" | "some":
                return exp.Max(this=value)
            case "bool_and" | "every":
                return exp.Min(this=value)
            case _:
                pass
    if not isinstance(call, exp.Filter):
        return call
    function, condition = _plain(call.this), call.expression.this
    value = function.this
    if not isinstance(function, _IGNORE_NULLS) or function.args.get("expressions"):
        return call
    if isinstance(value, exp.Distinct):
        if len(value.expressions) != 1 or value.args.get("on"):
            return call
        value = exp.Distinct(expressions=[_where(condition, value.expressions[0])])
    elif isinstance(value, exp.Star):
        value = _where(condition, exp.Literal.number(1))
    else:
        value = _where(condition, value)
    made = function.copy()
    made.set("this", value)
    return made


def _where(condition: exp.Expression, value: exp.Expression) -> exp.Case:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])


__all__ = ["with_conditional_values"]
