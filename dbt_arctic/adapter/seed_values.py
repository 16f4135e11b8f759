"""The values of a seed or a fixture: SQL of them. Refuses those that the type of the column would change.

Spark's ``CAST`` of a text rounds a decimal, drops the time of a date and the time zone of a
``timestamp_ntz``, cuts a time after its microseconds, and moves a local time that the time zone of the
session skips.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

from dbt_arctic.data_type import Digits, decimal_digits, written_kind
from dbt_arctic.errors import MalformedFile
from dbt_arctic.keyed.checks import raise_error_sql
from dbt_arctic.keyed.exact_text import fraction_digits, text_as_instant, why_another_time
from dbt_arctic.keyed.names import literal, quote

_FLOATING = {"float": "f", "real": "f", "double": "d"}
"""Floating-point types, and their letters in Python's module ``struct``."""
_DECIMALS = ("decimal", "dec", "numeric")
_LOCAL, _WITH_ZONE = ("timestamp_ntz",), ("timestamp", "timestamp_ltz")
_WHOLE = ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long")
_PARSED = frozenset({"boolean", *_WHOLE, *_FLOATING, *_DECIMALS, "date", *_LOCAL, *_WITH_ZONE})
"""Types whose values are parsed from a text."""

_WHY = "the type cannot store this text; nothing was written"
_FIX = "correct the file, or give the column another type in column_types"


def seed_value(seed: str, column: str, type_: str, values: Iterable[Any] = ()) -> str:
    """SQL of a value of a seed, from its text. A text that the type cannot store is an error.

    ``CAST`` alone would make it NULL, or cut it off, if a profile sets ``spark.sql.ansi.enabled`` to false.

    :param values: the values of the column, as parsed by agate; strings, if its type is declared.
    :raises MalformedFile: Spark would store another value than one of them.
    """
    name = quote(column)
    if written_kind(type_) not in _PARSED:
        return f"cast({name} as {type_})"
    what = f"the column {column} of the seed is {type_.upper()}, and a row has the value "
    changed = next((value for value in values if isinstance(value, str) and _is_changed(value, type_)), None)
    if changed is not None:
        raise MalformedFile(f"{what}{changed[:200]}", where=seed, why=_WHY, fix=_FIX)
    text = f"replace(left({name}, 200), '|', '/')"
    error = raise_error_sql("AR-311", what.replace("|", "/"), text, seed, _WHY, _FIX)
    return f"if({name} is null, null, {_parsed(name, type_, error)})"


def fixture_value(where: str, column: str, type_: str, value: Any, field: str) -> str | None:
    """SQL of a value of a fixture of a unit test. One that the type cannot store is an error.

    dbt's own cast makes it another value or NULL, with which the test may pass.

    :param value: the value in the fixture.
    :param field: SQL of it, without a cast.
    :returns: ``None`` if dbt's own cast keeps the value, or if it is NULL.
    :raises MalformedFile: Spark would read another value.
    """
    kind = written_kind(type_)
    if kind not in _PARSED or not isinstance(value, (str, int, float)):
        return None
    text = str(value)
    what = f"the column {column} is {type_.upper()}, and the fixture has the value "
    why = "the type cannot store this value, so the test would run with another one"
    fix = "correct the fixture, or the type of the column"
    is_fraction = kind in _WHOLE and isinstance(value, float) and not value.is_integer()
    if is_fraction or _is_changed(text, type_):
        raise MalformedFile(f"{what}{text[:200]}", where=where, why=why, fix=fix)
    clean = (part.replace("|", "/") for part in (what, where))
    return _parsed(field, type_, raise_error_sql("AR-311", next(clean), literal(text), next(clean), why, fix))


def _parsed(value: str, type_: str, error: str) -> str:
    stored = text_as_instant(value) if written_kind(type_) in _WITH_ZONE else f"try_cast({value} as {type_})"
    return f"coalesce({stored}, {error})"


def _is_changed(text: str, type_: str) -> bool:
    """Whether Spark would store a text as another value of a type.

    >>> [_is_changed(text, "decimal(4,2)") for text in ("10.50", "10.500", "1e-2", "10.555", "x")]
    [False, False, False, True, False]
    >>> [_is_changed(text, "date") for text in ("2024-01-01", "2024-01-01T00:00", "2024-01-01 23:59")]
    [False, False, True]
    """
    kind, text = written_kind(type_), text.strip()
    if kind in ("date", *_LOCAL, *_WITH_ZONE):
        return bool(why_another_time(text, "timestamp" if kind in _WITH_ZONE else kind))
    if kind not in _DECIMALS and kind not in _FLOATING:
        return False
    try:
        number = Decimal(text)
    except InvalidOperation:
        return kind in _FLOATING  # Java reads 5f as 5.0; the rest is NULL to Spark
    if not number.is_finite():
        return False
    if kind in _FLOATING:
        return _is_inexact(text, number, _FLOATING[kind])
    digits = decimal_digits(re.sub(r"\s", "", type_)) or Digits(10, 0)
    return fraction_digits(number) > digits.scale


def _is_inexact(text: str, number: Decimal, letter: str) -> bool:
    """Whether a floating-point type has a whole number only rounded, or a number only as zero or infinity."""
    try:
        (stored,) = struct.unpack(letter, struct.pack(letter, float(text)))
    except OverflowError:
        return True
    if stored in (float("inf"), float("-inf")) or (stored == 0 and number):
        return True
    return text.lstrip("+-").isdigit() and Decimal(stored) != number


def seed_text(value: Any) -> str | None:
    """A value of a CSV file, as parsed by agate, in the spelling that Spark can cast.

    >>> seed_text(Decimal("1E+3")), seed_text(Decimal("10.00")), seed_text(True), seed_text(None)
    ('1000', '10', 'true', None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        # agate treats 10.00 as an integer, but Spark cannot cast a string with a decimal point to one.
        is_whole = value.is_finite() and value == value.to_integral_value()
        return f"{value.to_integral_value() if is_whole else value:f}"
    if isinstance(value, (dt.date, dt.datetime)):
        return value.isoformat()
    return str(value)
