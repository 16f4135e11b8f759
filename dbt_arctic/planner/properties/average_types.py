"""Which averages Spark computes from integers that it adds as doubles, and may round on the way.

The sum of whole numbers is exact as long as their absolute values add up to less than 2^53. ``BIGINT`` values
reach this quickly, ``INT`` values in four million rows. ``SMALLINT`` values take more than 270 billion rows.
"""

from __future__ import annotations

from typing import Literal

from sqlglot import exp

from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import BIGINT, BOOLEAN, INT, Kind, loosened

_AVERAGES = ("avg", "mean", "try_avg")
WRITTEN = "written"
"""The key in the ``meta`` of a call that stands for a part of another function: the name of this function."""
_LARGEST = 2**15
"""Absolute values below this count as small, as those of ``SMALLINT``."""
_BRANCHES = frozenset(["coalesce", "if", "ifnull", "nvl"])
_SMALL = frozenset(
    [
        *("year", "quarter", "month", "weekofyear", "day", "dayofmonth", "dayofweek", "dayofyear", "weekday"),
        *("hour", "minute", "second", "char_length", "character_length", "length"),
    ]
)
"""Functions whose values are small, or are themselves as large as the data."""


def averaged(call: exp.Expr) -> exp.Expression | None:
    """The argument of an average; ``None`` for any other expression."""
    if not isinstance(call, exp.Expression) or function_name(call) not in _AVERAGES:
        return None
    return next(iter(call.iter_expressions()), None)


def added_as_doubles(value: exp.Expression, types: Types) -> Literal["BIGINT", "INT"] | None:
    """The type of the values of an average, if a sum of them as doubles may be inexact; else ``None``.

    Floats, decimals and unknown types are none of its subjects.
    """
    values = value.expressions[0] if isinstance(value, exp.Distinct) else value
    type_ = loosened(types.of(values))
    if type_ == BIGINT:
        return "BIGINT"
    return "INT" if type_ in (INT, Kind.WHOLE) and not _is_small(values, types) else None


def _is_small(value: exp.Expr | None, types: Types) -> bool:
    """Whether all values are small, by the form of the expression."""
    match value:
        case None | exp.Null():
            return True
        case exp.Paren() | exp.Neg():
            return _is_small(value.this, types)
        case exp.Literal():
            return value.is_int and int(value.name) < _LARGEST
        case exp.Case():
            branches = [one.args["true"] for one in value.args["ifs"]]
            return all(_is_small(one, types) for one in (*branches, value.args.get("default")))
        case exp.If():
            return _is_small(value.args["true"], types) and _is_small(value.args.get("false"), types)
        case exp.Cast():
            return types.of(value.this) == BOOLEAN
        case exp.Anonymous():
            name = str(value.name).lower()
            if name in _BRANCHES:
                return all(_is_small(one, types) for one in value.expressions[name == "if" :])
            return name in _SMALL
        case _:
            return False


__all__ = ["WRITTEN", "added_as_doubles", "averaged"]
