"""Constant strings that are computed: Spark evaluates them before it reads `'today'` as a date.

So ``CAST(concat('to', 'day') AS DATE)`` depends on the time, although no literal does.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import SubqueryRef
from dbt_arctic.planner.frontend.point_in_time import MAKE_TIMESTAMPS, OF_TODAY, TIMES
from dbt_arctic.planner.spark.dialect import TimeFunction
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.typing.inference import Types, type_of
from dbt_arctic.planner.typing.inferred_type import DATE, STRING, is_known, may_hold_moments

_COMPARED = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)
_VARIES = (
    exp.Column,
    exp.Query,
    exp.Star,
    exp.Identifier,
    exp.Lambda,
    exp.AggFunc,
    SubqueryRef,
    TimeFunction,
)
_NO_STRINGS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Interval, exp.Tuple, exp.Array)
_JOINS = frozenset(["concat"])
_KEEPS = frozenset(["btrim", "lcase", "lower", "ltrim", "rtrim", "trim", "ucase", "upper"])
"""Functions after which a string is still the same time: case and blanks around it do not matter."""


def may_be_time(value: exp.Expr, known: Callable[[], Types] | None = None) -> bool:
    """Whether a computed constant may be a string that Spark casts to a time relative to now, or of today.

    :param known: returns the types of columns. Without them, any value that is compared with a constant may
        be a time.
    """
    if isinstance(value, exp.Literal | exp.Paren) or not _is_constant(value):
        return False
    above = _above(value)
    if above is not None and _parts(above) is not None and _is_constant(above):
        return False  # a part of a longer text
    text = _text(value)
    if text is not None:
        return any(times.fullmatch(text.strip()) for times in (TIMES, OF_TODAY))
    types = None if known is None else known()
    if not _may_be_string(value, types):
        return False
    if isinstance(above, exp.Cast | exp.TryCast):
        return _may_be_moment(above, None)
    if isinstance(above, _COMPARED):
        return any(_may_be_moment(one, types) for one in above.iter_expressions() if not _is_constant(one))
    return False


def has_computed_times(tree: exp.Query) -> bool:
    """Whether a query may have a computed constant that depends on the time."""
    return any(may_be_time(value) for value in tree.walk())


def _is_constant(value: exp.Expr) -> bool:
    """Whether a value is computed from literals, of which one is a string."""
    return value.find(*_VARIES) is None and any(one.is_string for one in value.find_all(exp.Literal))


def _parts(value: exp.Expr) -> list[exp.Expr] | None:
    """The values whose texts are joined; ``None`` for another operation."""
    if isinstance(value, exp.Paren):
        return [value.this]
    if isinstance(value, exp.DPipe):
        return [value.this, value.expression]
    name = function_name(value)
    found = [*value.iter_expressions()]
    return found if name in _JOINS or (name in _KEEPS and len(found) == 1) else None


def _text(value: exp.Expr) -> str | None:
    if isinstance(value, exp.Literal):
        return str(value.name)
    parts = _parts(value)
    texts = None if parts is None else [_text(one) for one in parts]
    return None if texts is None or None in texts else "".join(map(str, texts))


def _above(value: exp.Expr) -> exp.Expr | None:
    here = value.parent
    while isinstance(here, exp.Paren):
        here = here.parent
    return here


def _may_be_string(value: exp.Expr, types: Types | None) -> bool:
    if isinstance(value, _NO_STRINGS) or MAKE_TIMESTAMPS.fullmatch(function_name(value) or ""):
        return False
    known = type_of(value) if types is None else types.of(value)
    return not is_known(known) or known == STRING


def _may_be_moment(value: exp.Expr, types: Types | None) -> bool:
    known = type_of(value) if types is None else types.of(value)
    return not is_known(known) or known == DATE or may_hold_moments(known)


__all__ = ["has_computed_times", "may_be_time"]
