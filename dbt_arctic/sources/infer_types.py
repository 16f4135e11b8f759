"""Guesses Spark types from the values of a sample.

A guess never loses what a value says: a number with a leading zero stays text, and decimals are exact only if
all values have the same number of digits after the point.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbt_arctic.data_type import field_text

_BOOLEAN = re.compile(r"true|false", re.IGNORECASE)
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)\.([0-9]+)")
_DOUBLE = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_LARGEST = 2**63
_DIGITS = 38
_USUAL_DIGITS = 18


def type_of_texts(texts: Iterable[str | None]) -> str:
    """The type of a column of texts, as in a CSV file or in the names of folders.

    >>> type_of_texts(["1", "20"]), type_of_texts(["00501"]), type_of_texts(["1.50", "20.00"])
    ('bigint', 'string', 'decimal(18, 2)')
    >>> type_of_texts(["2026-01-01"]), type_of_texts(["2026-01-01 08:00:00"]), type_of_texts([None])
    ('date', 'timestamp', 'string')
    """
    values = [text for text in texts if text]
    if not values:
        return "string"
    if all(_BOOLEAN.fullmatch(value) for value in values):
        return "boolean"
    return _number(values) or _time(values) or "string"


def _number(values: Sequence[str]) -> str | None:
    if all(_INTEGER.fullmatch(value) for value in values):
        numbers = [int(value) for value in values]
        if all(-_LARGEST <= number < _LARGEST for number in numbers):
            return "bigint"
        return f"decimal({_DIGITS}, 0)" if max(map(abs, numbers)) < 10**_DIGITS else None
    if not all(_DOUBLE.fullmatch(value) for value in values):
        return None
    decimals = [match for value in values if (match := _DECIMAL.fullmatch(value))]
    scales = {len(match[2]) for match in decimals}
    if len(scales) != 1 or any("e" in value.lower() for value in values):
        return "double"
    scale = scales.pop()
    digits = scale + max(len(value.partition(".")[0].lstrip("-")) for value in values)
    return next(
        (f"decimal({most}, {scale})" for most in (_USUAL_DIGITS, _DIGITS) if digits <= most), "double"
    )


def _time(values: Sequence[str]) -> str | None:
    is_date = [_is(dt.date, _DATE, value) for value in values]
    if all(is_date):
        return "date"
    if all(day or _is(dt.datetime, _TIMESTAMP, value) for day, value in zip(is_date, values, strict=True)):
        return "timestamp"
    return None


def _is(kind: type[dt.date], pattern: re.Pattern[str], value: str) -> bool:
    if not pattern.fullmatch(value):
        return False
    try:
        # Python 3.10 reads neither the Z nor fractions of any length; the pattern has checked both.
        kind.fromisoformat(value if kind is dt.date else value[:19])
    except ValueError:
        return False
    return True


def type_of_json(values: Iterable[Any]) -> str:
    """The type of a column of JSON values. Values of several types are text.

    >>> type_of_json([1, 2.5]), type_of_json(["2026-01-01"]), type_of_json([{"a": [1]}, {"b": None}])
    ('double', 'date', 'struct<a:array<bigint>,b:string>')
    """
    known = [value for value in values if value is not None]
    kinds = {type(value) for value in known}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return _number([str(value) for value in known]) or "double"
    if kinds and kinds <= {int, float}:
        return "double"
    if kinds == {str}:
        return _time([value for value in known if value]) or "string" if any(known) else "string"
    if kinds == {list}:
        return f"array<{type_of_json(one for value in known for one in value)}>"
    if kinds == {dict} and any(known):
        fields = columns_of_json(known)
        return "struct<" + ",".join(f"{field_text(name)}:{kind}" for name, kind in fields.items()) + ">"
    return "string"


def columns_of_json(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Types by name of JSON objects, in the order in which the names occur first."""
    values: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, []).append(value)
    return {name: type_of_json(column) for name, column in values.items()}


__all__ = ["columns_of_json", "type_of_json", "type_of_texts"]
