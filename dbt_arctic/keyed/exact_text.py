"""Whether a text is exactly a value of a type. Spark's cast rounds, truncates and ignores parts of it."""

from __future__ import annotations

import re
import struct
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DecimalTuple, InvalidOperation

from dbt_arctic.data_type import decimal_digits, kind_of
from dbt_arctic.keyed.assignment import INTEGER_DIGITS
from dbt_arctic.keyed.names import literal

_DATE = r"[+-]?\d{4,7}-\d{1,2}-\d{1,2}"
_MIDNIGHT = r"[ T]0?0:0?0(:0?0(\.0*)?)?"
_TIME = r"[ T]\d{1,2}:\d{1,2}(:\d{1,2}(\.\d{0,6}0*)?)?"
_ZONE = r"\s*[A-Za-z+-]\S*"
_NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d+")
_HAS_ZONE = r":[0-9.]+\s*[A-Za-z+-]"
"""A regular expression of Spark for a time that ends in a time zone."""
_FORMS = {
    "date": (f"{_DATE}({_MIDNIGHT})?", "it must be a date without a time"),
    "timestamp_ntz": (
        f"{_DATE}({_TIME})?",
        "it must be a date and a time without a time zone, with at most 6 digits after the second",
    ),
    "timestamp": (
        f"{_DATE}({_TIME}({_ZONE})?)?",
        "it must be a date and a time, with at most 6 digits after the second",
    ),
}


def why_inexact(text: str, type_: str) -> str:
    """Why Spark's cast of a text to a type would be another value than the text says; empty if it is not.

    A text that Spark cannot cast at all may have either result.

    >>> why_inexact("1.50", "decimal(10,1)"), why_inexact("1.55", "decimal(10,1)")
    ('', 'decimal(10,1) has fewer digits after the point')
    >>> why_inexact("2026-01-31", "date"), why_inexact("2026-01-31 12:00", "date")
    ('', 'it must be a date without a time')
    """
    kind, text = kind_of(type_), text.strip()
    if kind in _FORMS:
        return why_another_time(text, kind)
    if kind in INTEGER_DIGITS:
        return "" if _WHOLE.fullmatch(text) else "it must be a whole number"
    if kind in ("float", "double"):
        return "" if _NOT_FINITE.fullmatch(text) or _is_float(text, kind) else f"{type_} has no such value"
    digits = decimal_digits(type_)
    if digits is None:
        return ""
    number = _number(text)
    if number is None:
        return "it must be a number"
    return f"{type_} has fewer digits after the point" if fraction_digits(number) > digits.scale else ""


def why_another_time(text: str, kind: str) -> str:
    """``why_inexact`` for a ``date``, ``timestamp_ntz`` or ``timestamp``."""
    form, why = _FORMS[kind]
    return "" if re.fullmatch(form, text, re.ASCII) else why


def fraction_digits(number: Decimal) -> int:
    """The digits after the point that a finite number needs.

    >>> [fraction_digits(Decimal(text)) for text in ("1.50", "2530e-1", "1e3")]
    [1, 0, -3]
    """
    return -int(_normal(number).exponent)


def text_as_instant(text: str) -> str:
    """SQL of a text as TIMESTAMP, or NULL if it is none, or a local time that the session's time zone skips.

    Spark's cast moves a skipped time by an hour.

    :param text: SQL of the text.
    """
    instant, local = f"try_cast({text} AS TIMESTAMP)", f"try_cast({text} AS TIMESTAMP_NTZ)"
    kept = f"{text} RLIKE {literal(_HAS_ZONE)} OR CAST({instant} AS TIMESTAMP_NTZ) = {local}"
    return f"if({kept}, {instant}, NULL)"


def _normal(number: Decimal) -> DecimalTuple:
    """A number without zeros at its end."""
    enough = Context(max(1, len(number.as_tuple().digits)), Emin=MIN_EMIN, Emax=MAX_EMAX)
    return number.normalize(enough).as_tuple()


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _is_float(text: str, kind: str) -> bool:
    """Whether a text is a floating-point number, rounded to as many digits as the text has."""
    number = _number(text)
    if number is None:
        return False
    try:
        stored = float(text) if kind == "double" else struct.unpack("f", struct.pack("f", float(text)))[0]
    except OverflowError:
        return False
    digits = len(_normal(number).digits)
    return Decimal(f"{stored:.{digits - 1}e}") == number
