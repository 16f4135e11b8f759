"""A text of a key is refused if Spark's cast would make another value of it."""

from __future__ import annotations

import struct
from decimal import Decimal
from random import Random

import pytest

from dbt_arctic.keyed.exact_text import why_inexact

EXACT = {
    "bigint": ("42", " -7 ", "+1"),
    "decimal(10,2)": ("1", "1.5", "1.05000", "-0.00", "1e3", "15E-1", ".5", "0.000", "1e-2"),
    "double": ("0.1", "0.10000000000000001", "1e22", "-Infinity", "NaN", "0.5", "1e-300", "0"),
    "float": ("0.1", "16777216", "1e30", "inf"),
    "date": ("2026-01-31", " 2026-1-3 ", "2026-01-31 00:00"),
    "timestamp": (
        "2026-01-31",
        "2026-01-31 12:00",
        "2026-01-31T12:00:00.123456Z",
        "2026-01-31 12:00:00.123456000+02:00",
        "2026-01-31 12:00:00 Europe/Berlin",
    ),
    "timestamp_ntz": ("2026-01-31 12:00:00.5", "2026-01-31"),
    "string": ("1.005", " x ", ""),
    "boolean": ("true",),
    "binary": ("0aff",),
}
LOSSY = {
    "bigint": ("1.5", "1e3", "x"),
    "decimal(10,2)": ("1.005", "0.001", "1e-3", "x", "NaN"),
    "double": ("1e400", "0.100000000000000001", "9007199254740993", "x"),
    "float": ("16777217", "1e40", "0.10000000000000001"),
    "date": ("2026-01-31 00:01", "2026-01-31T12:00:00", "2026-01", "2026", "2026-01-31 x"),
    "timestamp": ("2026-01-31 12:00:00.1234567", "12:00:00", "2026-01-31 12:00:00.1234567Z"),
    "timestamp_ntz": ("2026-01-31 12:00:00Z", "2026-01-31 12:00:00+02:00", "2026-01-31 12:00:00.0000001"),
}


@pytest.mark.parametrize(("type_", "texts"), EXACT.items())
def test_a_text_that_a_cast_keeps_is_accepted(type_: str, texts: tuple[str, ...]) -> None:
    assert {text: why_inexact(text, type_) for text in texts} == dict.fromkeys(texts, "")


@pytest.mark.parametrize(("type_", "texts"), LOSSY.items())
def test_a_text_that_a_cast_changes_is_refused(type_: str, texts: tuple[str, ...]) -> None:
    assert [text for text in texts if not why_inexact(text, type_)] == []


def test_numbers_agree_with_exact_arithmetic() -> None:
    random = Random(7)
    for _ in range(2000):
        places, scale = random.randrange(6), random.randrange(5)
        number = Decimal(random.randrange(-(10**6), 10**6)).scaleb(-places)
        rounded = number.quantize(Decimal(1).scaleb(-scale))
        assert bool(why_inexact(str(number), f"decimal(20,{scale})")) == (rounded != number), (number, scale)
        double = random.uniform(-1, 1) * 10 ** random.randrange(-20, 20)
        assert why_inexact(repr(double), "double") == ""
        assert why_inexact(str(Decimal(double)), "double") == "", "each digit of it"
        (single,) = struct.unpack("f", struct.pack("f", double))
        assert why_inexact(f"{single:.9g}", "float") == ""
