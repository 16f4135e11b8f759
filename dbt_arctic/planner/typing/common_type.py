"""The type of a UNION column whose parts have different types, if Spark only widens values."""

from __future__ import annotations

from collections.abc import Collection

from dbt_arctic.keyed.data_type import decimal_digits

_DAYS = frozenset(["date", "timestamp", "timestamp_ntz"])
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""The number of digits of an integer type as a decimal."""
_MOST_DIGITS = 38


def common_type(types: Collection[str]) -> str | None:
    """The common type of a column; ``None`` if values may change, or if it is unknown.

    >>> common_type(["date", "timestamp"]), common_type(["date", "timestamp_ntz"])
    ('timestamp', 'timestamp_ntz')
    >>> common_type(["smallint", "int"]), common_type(["int", "string"])
    ('int', None)
    >>> common_type(["decimal(4,2)", "int"]), common_type(["decimal(38,20)", "bigint"])
    ('decimal(12,2)', None)
    """
    if set(types) <= _DAYS:
        return (
            "timestamp" if "timestamp" in types else "timestamp_ntz" if "timestamp_ntz" in types else "date"
        )
    if set(types) <= _DIGITS.keys():
        return max(types, key=_DIGITS.__getitem__)
    whole, fraction = 0, 0
    for one in types:
        found = (_DIGITS[one], 0) if one in _DIGITS else decimal_digits(one)
        if found is None:
            return None
        digits, scale = found
        whole, fraction = max(whole, digits - scale), max(fraction, scale)
    return f"decimal({whole + fraction},{fraction})" if whole + fraction <= _MOST_DIGITS else None
