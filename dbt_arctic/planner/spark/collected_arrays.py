"""Functions of a collected array for which the order of its elements does not matter."""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.spark.syntax import core, unwrapped

COLLECTS = frozenset(["array_agg", "collect_list", "collect_set"])
"""Aggregates that collect values into an array."""
_COUNTS = frozenset(["array_size", "cardinality", "size"])
_SORTS = frozenset(["array_max", "array_min", "array_sort", "sort_array"])


def collected_in(call: exp.Expr) -> exp.Expression | None:
    """The aggregate that collects what a function sorts, counts or searches; ``None`` for anything else.

    Spark sorts an array by a function of the user's as well, which may leave elements equal: that is not one.
    """
    name = function_name(call)
    arguments = [one for one in call.iter_expressions() if isinstance(one, exp.Expression)]
    if name is None or not arguments:
        return None
    inside, others = core(unwrapped(arguments[0])), arguments[1:]
    if function_name(inside) not in COLLECTS:
        return None
    is_sorted_down = name == "sort_array" and len(others) == 1 and isinstance(others[0], exp.Boolean)
    alone = not others and (name in _COUNTS or name in _SORTS)
    return inside if alone or is_sorted_down or is_search(call) else None


def is_count(call: exp.Expr) -> bool:
    """Whether a function asks how many elements an array has."""
    return function_name(call) in _COUNTS


def is_search(call: exp.Expr) -> bool:
    """Whether a function asks whether an array has an element that is written out."""
    arguments = list(call.iter_expressions())
    return function_name(call) == "array_contains" and len(arguments) == 2 and _is_written(arguments[1])


def _is_written(value: exp.Expr) -> bool:
    while isinstance(value, exp.Neg | exp.Paren | exp.Cast):
        value = value.this
    return isinstance(value, exp.Literal | exp.Boolean)


__all__ = ["COLLECTS", "collected_in", "is_count", "is_search"]
