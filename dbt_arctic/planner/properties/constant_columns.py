"""Columns with one value in all rows: literals, and columns that a filter compares with a literal."""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
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
)
from dbt_arctic.planner.algebra.scalars import column, plain

Constant = str | int


def constant(value: exp.Expr) -> Constant | None:
    """The value of a string or integer literal; ``None`` for any other expression."""
    if not isinstance(value, exp.Literal):
        return None
    if value.is_string:
        return None if "\\" in value.name else value.name
    return int(value.name) if value.name.isdigit() else None


def constant_of(node: Node, name: str) -> Constant | None:
    """The only value of a column, if it is known."""
    while True:
        if isinstance(node, Project):
            value = dict(node.items)[name]
        elif isinstance(node, Aggregate) and node.grouping_sets is None and name in dict(node.groups):
            value = dict(node.groups)[name]
        elif isinstance(node, Filter | Limit | Window) and name in node.child.output:
            value = column(name)
        else:
            return None
        if plain(value) is None:
            return constant(value)
        node, name = node.child, value.name


def fixed_columns(node: Node) -> frozenset[str]:
    """The columns with the same value in all rows."""
    match node:
        case Filter():
            return fixed_columns(node.child) | {
                name for part in node.conditions for name in compared_columns(part)
            }
        case Project():
            return _shown(node.items, fixed_columns(node.child))
        case Aggregate():
            if node.grouping_sets is not None:
                return conservative(frozenset(), "a group of one set has the NULLs of another one")
            return _shown(node.groups, fixed_columns(node.child))
        case Window() | Limit() | Generate() | KeySemiJoin():
            return fixed_columns(node.child)
        case Join():
            if node.kind == "inner":
                own = {name for part in node.conditions for name in compared_columns(part)}
                return fixed_columns(node.left) | fixed_columns(node.right) | own
            # An unmatched row has NULLs on the other side.
            kept = {"right": (node.right,), "full": ()}.get(node.kind, (node.left,))
            return frozenset(name for side in kept for name in fixed_columns(side))
        case UnionAll() | SetOperation():
            return conservative(frozenset(), "each part has its own values")
        case Scan() | Values():
            return frozenset()


def compared_columns(condition: exp.Expression) -> list[str]:
    """The column that a condition equates with a string literal, which Spark casts to the column's type.

    A number does not fix a column: ``'5'`` and ``'05'`` both equal 5.
    """
    if not isinstance(condition, exp.EQ):
        return []
    sides = (condition.this, condition.expression)
    names = [side.name for side in sides if isinstance(side, exp.Column)]
    return names if any(isinstance(side, exp.Literal) and side.is_string for side in sides) else []


def _shown(items: tuple[tuple[str, exp.Expression], ...], below: frozenset[str]) -> frozenset[str]:
    return frozenset(
        name
        for name, value in items
        if plain(value) in below or isinstance(value, exp.Literal | exp.Null | exp.Boolean)
    )


__all__ = ["Constant", "compared_columns", "constant", "constant_of", "fixed_columns"]
