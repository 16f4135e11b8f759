"""Whether every column that an operator names comes from its inputs.

The builder should see to it; a plan in which it failed would be read as something else, so it is checked.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dbt_arctic.planner.algebra import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Limit,
    Node,
    Project,
    Window,
    children,
    columns_of,
    walk,
)
from dbt_arctic.planner.reasons import CannotPlan


def expressions(node: Node) -> Iterator[exp.Expression]:
    """The expressions of an operator over its inputs; those that link a subquery are not among them."""
    if isinstance(node, Project):
        yield from (value for _, value in node.items)
    elif isinstance(node, Filter | Join):
        yield from node.conditions
    elif isinstance(node, Aggregate):
        yield from (value for _, value in (*node.groups, *node.aggregates))
    elif isinstance(node, Window):
        yield from (value for _, value in node.items)
        yield from node.partition
    elif isinstance(node, Generate):
        yield node.function
    elif isinstance(node, Limit):
        yield from node.order


def all_expressions(node: Node) -> Iterator[exp.Expression]:
    """The expressions of an operator, and those of its subqueries that are not within their plans."""
    yield from expressions(node)
    if isinstance(node, Project | Filter):
        for subquery in node.subqueries:
            yield from (one for one in (*subquery.links, subquery.value) if one is not None)


def check_columns(node: Node) -> None:
    """:raises CannotPlan: an expression names a column that its operator does not get."""
    for part in walk(node):
        subqueries = getattr(part, "subqueries", ())
        inputs = {
            name for child in children(part)[: len(children(part)) - len(subqueries)] for name in child.output
        }
        unknown = columns_of(*expressions(part)) - inputs
        for subquery in subqueries:
            inner = frozenset(subquery.plan.output)
            unknown |= columns_of(*subquery.links) - inputs - inner
            unknown |= columns_of(subquery.value) - inner
            unknown |= columns_of(subquery.operand) - inputs
        if unknown:
            raise CannotPlan(
                "correlated",
                f"the column {min(unknown)} is of a query further outside",
                "join instead of nesting correlated subqueries",
            )
