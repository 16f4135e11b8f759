"""How Spark compares values of two types, and whether equality implies identity."""

from __future__ import annotations

from typing import Literal

from dbt_arctic.data_type import decimal_digits, without_parameters

TypeCategory = Literal["int", "bigint", "decimal", "other", "timestamp", "float"]
"""``int``: integers up to 32 bits; ``bigint``: longer ones; ``other``: not a number; ``timestamp``: a
timestamp, whose sum is a float; ``float``: also for unknown types."""

_WHOLE = ("tinyint", "smallint", "int", "integer", "byte", "short")
_OTHER = ("boolean", "date", "interval", "void")
_MOMENTS = ("timestamp", "timestamp_ntz", "timestamp_ltz")

_DIGITS: dict[TypeCategory, int] = {"int": 10, "bigint": 20, "decimal": 10}
"""Digits of numbers that Spark compares as decimals, if their type does not specify them."""
_FLOATS = frozenset(["float", "real", "double"])
_STRINGS = frozenset(["string", "varchar", "char"])


def category_of_type(name: str) -> TypeCategory:
    """The sort of a Spark type."""
    bare = without_parameters(name)
    if bare in _WHOLE:
        return "int"
    if bare in ("bigint", "long"):
        return "bigint"
    if bare in ("decimal", "dec", "numeric"):
        return "decimal"
    if bare in _OTHER:
        return "other"
    if bare in _MOMENTS:
        return "timestamp"
    # The sum of strings is a double.
    return "float"


def family(type_: str) -> str:
    """The family of a type. Types of one family are compared without loss, if there are enough digits.

    >>> family("decimal(10,2)"), family("BIGINT"), family("varchar(3)"), family("date")
    ('number', 'number', 'string', 'date')
    """
    # A collation follows the name of a type and affects equality.
    bare = without_parameters(type_)
    if category_of_type(type_) in _DIGITS:
        return "number"
    for name, members in (("float", _FLOATS), ("string", _STRINGS)):
        if bare in members:
            return name
    return type_.lower()


def compare_exactly(one: str, other: str) -> bool:
    """Whether values of two types are equal only if they are identical.

    Decimals are compared in a type that has room for both. If there is none, digits after the point are lost.

    >>> compare_exactly("int", "decimal(12,2)"), compare_exactly("string", "int")
    (True, False)
    >>> compare_exactly("decimal(38,0)", "decimal(38,9)")
    False
    """
    if family(one) != family(other) or family(one) != "number":
        return family(one) == family(other)
    (whole, scale), (other_whole, other_scale) = _digits(one), _digits(other)
    return max(whole, other_whole) + max(scale, other_scale) <= 38


def _digits(type_: str) -> tuple[int, int]:
    """The number of digits before and after the decimal point."""
    precision, scale = decimal_digits(type_) or (_DIGITS[category_of_type(type_)], 0)
    return precision - scale, scale
