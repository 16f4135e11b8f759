"""The type of a UNION column whose parts have different types, if Spark only widens values."""

from __future__ import annotations

from collections.abc import Collection

from dbt_arctic.planner.typing.inferred_type import DATE, INTEGERS, TIMESTAMP, Atomic, DataType, digits_of

_TIMESTAMP_NTZ = Atomic("timestamp_ntz")
_DAYS = (TIMESTAMP, _TIMESTAMP_NTZ, DATE)
"""Dates and timestamps. The first one that is found is the common type."""
_MOST_DIGITS = 38


def common_type(types: Collection[DataType]) -> DataType | None:
    """The common type of a column; ``None`` if values may change, or if it is unknown.

    >>> of = lambda *names: common_type([Atomic(name) for name in names])
    >>> of("date", "timestamp"), of("date", "timestamp_ntz")
    (Atomic(text='timestamp'), Atomic(text='timestamp_ntz'))
    >>> of("smallint", "int"), of("int", "string")
    (Atomic(text='int'), None)
    >>> of("decimal(4,2)", "int"), of("decimal(38,20)", "bigint")
    (Atomic(text='decimal(12,2)'), None)
    """
    for order in (_DAYS, tuple(reversed(INTEGERS))):
        if set(types) <= set(order):
            return next(one for one in order if one in types)
    whole, fraction = 0, 0
    for one in types:
        found = digits_of(one)
        if found is None:
            return None
        digits, scale = found
        whole, fraction = max(whole, digits - scale), max(fraction, scale)
    return Atomic(f"decimal({whole + fraction},{fraction})") if whole + fraction <= _MOST_DIGITS else None
