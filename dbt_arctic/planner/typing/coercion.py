"""Coercion in comparisons: implicit casts make different values equal.

Spark casts to compare a string with a number, or a date with a timestamp. Then several values of one side may
equal one value of the other: `'1'` and `'01'` are both equal to 1. So neither column can replace the other,
neither in a lookup nor as a unique key. An equality with such a cast is put in parentheses, so that no rule
takes it for an equality of two plain columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from dbt_arctic.keyed.type_categories import compare_exactly
from dbt_arctic.planner.algebra.columns import all_expressions
from dbt_arctic.planner.algebra.operators import (
    Filter,
    Join,
    Node,
    Project,
    Subquery,
    map_children,
    walk,
)
from dbt_arctic.planner.algebra.scalars import SAME_TYPE, plain
from dbt_arctic.planner.spark.function_types import (
    BY_TYPE,
    NUMERIC,
    OF_STRINGS,
    OF_STRINGS_OR_BYTES,
    OF_STRINGS_OR_LISTS,
)
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.typing.inference import Types, type_of
from dbt_arctic.planner.typing.inferred_type import (
    BIGINT,
    INTEGERS,
    DataType,
    atoms_of,
    family_of,
    is_decimal,
    type_text,
)

_SHIFTS = (exp.BitwiseLeftShift, exp.BitwiseRightShift)


def with_exact_equalities(node: Node, types: Mapping[str, str], *, wrap_on_overflow: bool = False) -> Node:
    """Mark the equalities that compare columns of the same type, and protect those with a cast.

    :param types: the types of the columns of scans.
    :param wrap_on_overflow: whether integers wrap around on overflow, as without ANSI mode.
    """
    known = Types(node, types).exact()
    if not wrap_on_overflow and is_independent_of_widths(node, types):
        known = {name: BIGINT if type_ in INTEGERS else type_ for name, type_ in known.items()}

    def of_condition(condition: exp.Expression) -> exp.Expression:
        if not isinstance(condition, exp.EQ):
            return condition
        if _compare_exactly(condition.this, condition.expression, known):
            return _marked(condition) if _are_same(condition.this, condition.expression, known) else condition
        left, right = condition.this.copy(), condition.expression.copy()
        return exp.EQ(this=exp.Paren(this=left), expression=exp.Paren(this=right))

    def of_subquery(one: Subquery) -> Subquery:
        if one.operand is not None and one.value is not None:
            operand, value = one.operand, one.value
            if not _compare_exactly(operand, value, known):
                one = replace(one, operand=exp.Paren(this=operand.copy()))
            elif _are_same(operand, value, known):
                one = replace(one, operand=_marked(operand))
        return replace(one, correlation=tuple(map(of_condition, one.correlation)))

    def change(part: Node) -> Node:
        part = map_children(part, change)
        changed: dict[str, Any] = {}
        if isinstance(part, Filter | Join):
            changed["conditions"] = tuple(map(of_condition, part.conditions))
        if isinstance(part, Filter | Project) and part.subqueries:
            changed["subqueries"] = tuple(map(of_subquery, part.subqueries))
        return replace(part, **changed) if changed else part

    return change(node)


def depends_on_types(node: Node) -> bool:
    """Whether a function of the query returns another value for the same number in another type."""
    return any(
        function_name(part) in BY_TYPE or isinstance(part, _SHIFTS) or _is_of_bytes(part)
        for part in _parts(node)
    )


def _is_of_bytes(part: exp.Expr) -> bool:
    return isinstance(part, exp.Cast) and part.to.this in (
        exp.DataType.Type.BINARY,
        exp.DataType.Type.VARBINARY,
    )


_NO_DECIMAL = (
    NUMERIC
    | OF_STRINGS
    | OF_STRINGS_OR_BYTES
    | OF_STRINGS_OR_LISTS
    | {
        *("array_contains", "cbrt", "cos", "cume_dist", "div", "double", "exp", "float", "if", "iff"),
        *("json_array_length", "levenshtein", "like", "ln", "log", "log10", "log2", "mod", "months_between"),
        *("nvl2", "percent_rank", "pmod", "pow", "power", "rlike", "sin", "split", "sqrt", "string"),
    }
)
"""Functions that only return a decimal if they are given one."""


def may_be_decimal(part: exp.Expr) -> bool:
    """Whether an expression may be a decimal although it contains none.

    In arithmetic with a decimal, a BIGINT has another precision than an INT.
    """
    known = type_of(part)
    if known is not None:
        return is_decimal(known)
    name = function_name(part)
    return name is not None and name not in _NO_DECIMAL


def is_independent_of_widths(node: Node, types: Mapping[str, str]) -> bool:
    """Whether the result does not depend on the width of integers, INT or BIGINT. With decimals it does.

    :param types: the types of the columns of scans.
    """
    return not (
        depends_on_types(node)
        or any(is_decimal(one) for text in types.values() for one in atoms_of(text))
        or any(map(may_be_decimal, _parts(node)))
    )


def _parts(node: Node) -> Iterator[exp.Expr]:
    return (found for part in walk(node) for one in all_expressions(part) for found in one.walk())


def _compare_exactly(left: exp.Expression, right: exp.Expression, known: Mapping[str, DataType]) -> bool:
    """Whether two plain columns have types that are compared without a lossy cast.

    Other expressions are not restricted.
    """
    one, other = plain(left), plain(right)
    if one is None or other is None:
        return True
    mine, theirs = known.get(one), known.get(other)
    return mine is not None and theirs is not None and are_comparable(mine, theirs)


def _are_same(left: exp.Expression, right: exp.Expression, known: Mapping[str, DataType]) -> bool:
    """Whether equal values of two plain columns are identical in all expressions. 0.0 and -0.0 are not."""
    one, other = plain(left), plain(right)
    if one is None or other is None:
        return False
    mine, theirs = known.get(one), known.get(other)
    return mine is not None and mine == theirs and family_of(mine) != "float"


def _marked(expression: exp.Expression) -> exp.Expression:
    made = expression.copy()
    made.meta[SAME_TYPE] = True
    return made


def are_comparable(one: DataType, other: DataType) -> bool:
    """Whether values of two types are equal only if they are identical."""
    return compare_exactly(type_text(one), type_text(other))


__all__ = [
    "are_comparable",
    "depends_on_types",
    "is_independent_of_widths",
    "may_be_decimal",
    "with_exact_equalities",
]
