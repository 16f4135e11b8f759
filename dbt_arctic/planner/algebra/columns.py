"""The columns that operators refer to: checks that inputs provide them, and prunes the others from scans.

The builder should only create valid trees. An invalid one would be planned as a different query, so it is
checked here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    KeySemiJoin,
    Limit,
    Node,
    Project,
    Scan,
    SetOperation,
    UnionAll,
    Values,
    Window,
    children,
    map_children,
    walk,
)
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.reasons import CannotPlan, Line, first_line, line_of


def expressions(node: Node) -> Iterator[exp.Expression]:
    """The expressions of an operator over its inputs, without those that link a subquery to the outer row."""
    match node:
        case Project() | Aggregate():
            yield from (value for _, value in node.items)
        case Filter() | Join():
            yield from node.conditions
        case Window():
            yield from (value for _, value in node.items)
            yield from node.partition
        case Generate():
            yield node.function
        case Limit():
            yield from node.order
        case Scan() | Values() | KeySemiJoin() | UnionAll() | SetOperation():
            pass  # These only list columns by name. ``named_columns`` returns the pairs of a KeySemiJoin.


def named_columns(node: Node) -> frozenset[str]:
    """The columns that an operator refers to outside its expressions and subqueries."""
    match node:
        case KeySemiJoin():
            return columns_of(*(value for value, _ in node.pairs)) | {name for _, name in node.pairs}
        case UnionAll() | SetOperation():
            return frozenset(name for child in node.parts for name in child.output)
        case (
            Scan() | Values() | Project() | Filter() | Join() | Aggregate() | Window() | Generate() | Limit()
        ):
            return frozenset()


def computed(node: Node) -> tuple[tuple[str, exp.Expression], ...]:
    """The columns that an operator computes, each with its expression."""
    match node:
        case Project() | Aggregate() | Window():
            return node.items
        case Scan() | Values() | Filter() | Join() | KeySemiJoin() | UnionAll() | SetOperation() | Limit():
            return ()
        case Generate():
            return ()  # The expression produces several rows, and may produce several columns.


def all_expressions(node: Node) -> Iterator[exp.Expression]:
    """The expressions of an operator with the links and values of its subqueries, without their plans."""
    yield from expressions(node)
    if isinstance(node, Project | Filter):
        for subquery in node.subqueries:
            yield from (one for one in (*subquery.links, subquery.value) if one is not None)


def used_columns(parts: Iterable[Node]) -> frozenset[str]:
    """All columns that some trees output or refer to."""
    found: set[str] = set()
    for part in parts:
        found.update(part.output)
        for node in walk(part):
            found |= columns_of(*expressions(node))
            for subquery in getattr(node, "subqueries", ()):
                found |= columns_of(*subquery.links, subquery.value, subquery.operand)
            found |= named_columns(node)
    return frozenset(found)


def prune_columns(node: Node) -> Node:
    """The same tree with its scans reduced to the columns that it uses. At first, a scan has all columns."""
    used = used_columns([node])

    def trim(part: Node) -> Node:
        if isinstance(part, Scan):
            return replace(part, columns=tuple(pair for pair in part.columns if pair[0] in used))
        return map_children(part, trim)

    return trim(node)


def check_columns(node: Node) -> None:
    """Check that the inputs of each operator provide the columns that its expressions refer to.

    :raises CannotPlan: an expression refers to a column that its operator's inputs do not have.
    """
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
                f"the column {name} belongs to a query further out",
                "join instead of nesting correlated subqueries",
                first_line(*named),
            )


def _all(node: Node) -> Iterator[exp.Expression]:
    yield from all_expressions(node)
    yield from (one.operand for one in getattr(node, "subqueries", ()) if one.operand is not None)


def line_within(node: Node) -> Line | None:
    """The line of the outermost operator that has expressions, usually a SELECT list; ``None`` if unknown.

    The expressions below it may be elsewhere: in a common table expression, or in a view.
    """
    return first_line(*(expression for part in walk(node) for expression in expressions(part)))


def line_of_column(node: Node, name: str) -> Line | None:
    """The line on which a column is selected; ``None`` if unknown, for example for a column of ``*``."""
    for part in walk(node):
        for identifier, value in computed(part):
            if identifier == name:
                return line_of(value)
    return None
