"""Which columns operators name: that these come from their inputs, and that scans read no others.

The builder should see to the first; a plan in which it failed would be read as something else, so it is
checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Limit,
    Node,
    Project,
    Restrict,
    Scan,
    SetOperation,
    UnionAll,
    Window,
    children,
    map_children,
    walk,
)
from dbt_arctic.planner.reasons import CannotPlan, Line, first_line, line_of
from dbt_arctic.planner.scalars import columns_of


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


def used_columns(parts: Iterable[Node]) -> frozenset[str]:
    """The columns that something is made of."""
    found: set[str] = set()
    for part in parts:
        found.update(part.output)
        for node in walk(part):
            found |= columns_of(*expressions(node))
            for subquery in getattr(node, "subqueries", ()):
                found |= columns_of(*subquery.links, subquery.value, subquery.operand)
            if isinstance(node, Restrict):
                found |= columns_of(*(value for value, _ in node.pairs))
                found.update(name for _, name in node.pairs)
            elif isinstance(node, UnionAll | SetOperation):
                found.update(name for child in children(node) for name in child.output)
    return frozenset(found)


def trimmed(node: Node) -> Node:
    """The same tree, with scans of the columns that it uses. A scan has all of its table at first."""
    used = used_columns([node])

    def trim(part: Node) -> Node:
        if isinstance(part, Scan):
            return replace(part, columns=tuple(pair for pair in part.columns if pair[0] in used))
        return map_children(part, trim)

    return trim(node)


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
            name = min(unknown)
            named = (one for tree in _all(part) for one in tree.find_all(exp.Column) if one.name == name)
            raise CannotPlan(
                "correlated",
                f"the column {name} is of a query further outside",
                "join instead of nesting correlated subqueries",
                first_line(*named),
            )


def _all(node: Node) -> Iterator[exp.Expression]:
    yield from all_expressions(node)
    yield from (one.operand for one in getattr(node, "subqueries", ()) if one.operand is not None)


def line_within(node: Node) -> Line:
    """The line of what is computed last, and stands first in a SELECT; 0 where none is known.

    What it is computed of may stand anywhere else: in a common table expression, or in a view.
    """
    return first_line(*(expression for part in walk(node) for expression in expressions(part)))


def line_of_column(node: Node, name: str) -> Line:
    """The line at which a column is selected; 0 where it is not known, as for those of a star."""
    for part in walk(node):
        items = (*part.groups, *part.aggregates) if isinstance(part, Aggregate) else ()
        for identifier, value in part.items if isinstance(part, Project | Window) else items:
            if identifier == name:
                return line_of(value)
    return Line()
