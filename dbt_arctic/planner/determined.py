"""Whether the data determine the result: what does not, can never equal a full refresh."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dbt_arctic.planner.algebra import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Node,
    Project,
    SubqueryRef,
    Window,
    walk,
)
from dbt_arctic.planner.functions import function_name, kind_of
from dbt_arctic.planner.reasons import CannotPlan

_CAUSES = {
    "random": ("random", "{} gives another value in each run", "compute it outside the model"),
    "session": ("session", "{} depends on who runs the model and where", "pass it as a variable"),
    "time": ("time", "{} depends on when the model runs", "pass a date as a variable"),
    "unknown": ("unknown-function", "{} is not a function that Spark brings", "use built-in functions"),
    "approximate": ("approximate", "{} promises no exact result", "use an exact aggregate"),
    "ordered": (
        "order-dependent",
        "{} depends on the order in which rows come",
        "use min, max or a row_number over a unique order",
    ),
    "float": (
        "float-sum",
        "{} computes with floats: the last digits depend on the order of rows",
        "cast to decimal",
    ),
}


def check_determined(node: Node) -> None:
    """:raises CannotPlan: something in the query is not determined by the rows that it reads."""
    for part in walk(node):
        for expression in _expressions(part):
            for found in expression.walk():
                name = function_name(found)
                if name is None:
                    continue
                cause = _CAUSES.get(kind_of(name))
                if cause is not None:
                    code, what, fix = cause
                    raise CannotPlan(code, what.format(f"{name}()"), fix)


def _expressions(node: Node) -> Iterator[exp.Expression]:
    if isinstance(node, Project):
        yield from (value for _, value in node.items)
    elif isinstance(node, Filter | Join):
        yield from node.conditions
    elif isinstance(node, Aggregate):
        yield from (value for _, value in (*node.groups, *node.aggregates))
    elif isinstance(node, Window):
        yield from (value for _, value in node.items)
    elif isinstance(node, Generate):
        yield node.function
    for subquery in getattr(node, "subqueries", ()):
        yield from subquery.links
        if subquery.value is not None:
            yield subquery.value


__all__ = ["SubqueryRef", "check_determined"]
