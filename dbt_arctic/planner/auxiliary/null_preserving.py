"""Which expressions are NULL in the same rows, so that one count of values serves several sums."""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import INTEGERS, Kind

_WIDER = frozenset(["BIGINT", "DECIMAL(20, 0)"])
"""Types to which every integer can be cast."""


def counted_value(value: exp.Expression, types: Types) -> exp.Expression:
    """The expression without absolute values and casts of integers to a wider type, which keep NULL as it is.

    ``sum(abs(x))`` and ``sum(x)`` have the same number of values.
    """
    while True:
        match value:
            case exp.Abs() | exp.Paren() | exp.Cast():
                inner = value.this
            # A call that was read from a text.
            case exp.Anonymous() if str(value.name).lower() == "abs" and len(value.expressions) == 1:
                inner = value.expressions[0]
            case _:
                return value
        if isinstance(value, exp.Cast):
            is_wider = value.to.sql("spark").upper() in _WIDER
            if not is_wider or types.of(inner) not in (*INTEGERS, Kind.WHOLE):
                return value
        value = inner


__all__ = ["counted_value"]
