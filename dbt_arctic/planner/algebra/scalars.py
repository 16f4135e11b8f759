"""Scalar expressions of a tree. Their columns are named by identifiers that are unique in the tree."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from sqlglot import exp

from dbt_arctic.planner.spark.dialect import Suffixed

_WHOLE_SUFFIXES = frozenset(["L", "S", "Y"])
SAME_TYPE = "same_type"
"""Key in the ``meta`` of an equality of two columns: equal values are identical, also in type and text."""


def column(identifier: str) -> exp.Column:
    """A column by its identifier."""
    return exp.Column(this=exp.Identifier(this=identifier, quoted=True))


def present(identifier: str) -> exp.Expression:
    """The condition ``identifier IS NOT NULL``."""
    return exp.Not(this=exp.Is(this=column(identifier), expression=exp.Null()))


def or_zero(value: exp.Expression) -> exp.Expression:
    """The expression ``coalesce(value, 0)``, for a count that is missing if there are no rows."""
    return exp.Coalesce(this=value, expressions=[exp.Literal.number(0)])


def linked(
    conditions: Iterable[exp.Expression], inside: Collection[str], outside: Collection[str] | None = None
) -> tuple[str, ...] | None:
    """The columns of one side that conditions equate with columns of the other side, each once.

    ``None`` if a condition equates no such columns, or if there is no condition.

    :param outside: the columns of the other side; by default all columns that are not ``inside``.
    """
    names: dict[str, None] = {}
    for condition in conditions:
        pairs = list(equalities([condition]))
        linked_columns = [
            a for a, b in pairs if a in inside and (b not in inside if outside is None else b in outside)
        ]
        if not linked_columns:
            return None
        names.update(dict.fromkeys(linked_columns))
    return tuple(names) or None


def _same_column(found: exp.Column) -> exp.Column:
    """Copy a column without sqlglot's ``copy``, which takes twenty times as long."""
    parts = {
        part: exp.Identifier(this=value.name, quoted=True)
        for part, value in found.args.items()
        if isinstance(value, exp.Identifier)
    }
    return exp.Column(**parts)


def columns_of(*expressions: exp.Expression | None) -> frozenset[str]:
    """The identifiers of all columns in some expressions."""
    return frozenset(
        found.name
        for expression in expressions
        if expression is not None
        for found in expression.find_all(exp.Column)
    )


def plain(expression: exp.Expression) -> str | None:
    """The identifier, if an expression is a column alone; ``None`` otherwise."""
    return expression.name if isinstance(expression, exp.Column) else None


def substitute(expression: exp.Expression, values: Mapping[str, exp.Expression]) -> exp.Expression:
    """An expression with columns replaced by the expressions that define them."""
    if isinstance(expression, exp.Column):
        # Not copied: expressions are never changed in place, and most of them are columns.
        return values.get(expression.name, expression)

    def swap(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Column) and node.name in values:
            value = values[node.name]
            if isinstance(value, exp.Column):
                return _same_column(value)
            return as_operand(value)
        return node

    return expression.copy().transform(swap, copy=False)


def as_operand(value: exp.Expression) -> exp.Expression:
    """A value in the place of a column.

    In arithmetic with decimals, Spark gives an integer literal the precision of its digits, but an integer
    column the precision of its type. So an integer literal is cast to its type.
    """
    if not is_whole_number(value):
        return value.copy() if isinstance(value, exp.Literal) else exp.Paren(this=value.copy())
    number = _unsigned(value)
    if isinstance(number, exp.Literal):
        negative = number is not value and isinstance(number.parent, exp.Neg)
        return exp.cast(value.copy(), whole_type(number.name, negative=negative), dialect="spark")
    made = exp.Paren(this=value.copy())
    for found in list(made.find_all(Suffixed)):
        found.replace(exp.Cast(this=found.this, to=found.to))
    return made


def whole_type(digits: str, *, negative: bool) -> str:
    """The type of an integer literal without a suffix.

    >>> whole_type("2147483648", negative=True), whole_type("2147483648", negative=False)
    ('INT', 'BIGINT')
    >>> whole_type("9223372036854775808", negative=False)
    'DECIMAL(19,0)'
    """
    number = -int(digits) if negative else int(digits)
    for name, bits in (("INT", 31), ("BIGINT", 63)):
        if -(2**bits) <= number < 2**bits:
            return name
    return f"DECIMAL({len(digits.lstrip('0'))},0)"


def is_whole_number(value: exp.Expr | None) -> bool:
    """Whether an expression is an integer literal such as ``12``, ``-12``, ``(12)`` or ``12L``."""
    number = None if value is None else _unsigned(value)
    if isinstance(number, Suffixed) and number.args["suffix"] in _WHOLE_SUFFIXES:
        number = number.this
    return isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit()


def _unsigned(value: exp.Expr) -> exp.Expr:
    while isinstance(value, exp.Neg | exp.Paren):
        value = value.this
    return value


class Equality(NamedTuple):
    """Two columns that a condition equates, by their identifiers."""

    left: str
    right: str


def equalities(conditions: Iterable[exp.Expression], same_type: bool = False) -> Iterator[Equality]:
    """The plain columns that conditions equate, each pair in both orders.

    :param same_type: only pairs of columns that can replace each other in any expression. ``5`` and ``5.00``
        are equal, but their text differs.
    """
    for condition in conditions:
        if same_type and not (condition.meta and condition.meta.get(SAME_TYPE)):
            continue
        if isinstance(condition, exp.EQ):
            left, right = plain(condition.this), plain(condition.expression)
            if left is not None and right is not None:
                yield Equality(left, right)
                yield Equality(right, left)
