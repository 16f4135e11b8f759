"""Cells of tables: each value as it is, whatever is inside."""

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import types

from dbt_arctic.adapter.show import table_value
from dbt_arctic.data_type import parse_type
from dbt_arctic.engine.unsupported_types import is_supported

DAY = dt.date(2024, 1, 2)
FLOATS = (0.1, 3.4028234663852886e38, 1e-45, 16777216.0, 1.1, 123456.79)


@pytest.mark.parametrize(
    ("value", "type_", "cell"),
    [
        (None, "struct<a:int>", None),
        ({DAY: {"d": Decimal("1.50")}}, "map<date,struct<d:decimal(3,2)>>", '{"2024-01-02": {"d": 1.50}}'),
        ({Decimal("1E+2"): True}, "map<decimal(3,0),boolean>", '{"100": true}'),
        ({b"ab": None}, "map<binary,int>", '{"YWI=": null}'),
        ({True: 1}, "map<boolean,int>", '{"true": 1}'),
        ([float("nan"), float("-inf"), 0.1], "array<double>", '["NaN", "-Infinity", 0.1]'),
        ([Decimal("12345678901234567890.5")], "array<decimal(38,1)>", "[12345678901234567890.5]"),
        (['"é\n'], "array<string>", '["\\"é\\n"]'),
        (
            [dt.datetime(2024, 1, 2, 3, tzinfo=dt.timezone.utc)],
            "array<timestamp>",
            '["2024-01-02T03:00:00+00:00"]',
        ),
        ("{{1} -> x}", "map<struct<a:int>,string>", "{{1} -> x}"),
        (b"\x00\xff", "binary", "00FF"),
        (float("nan"), "double", "NaN"),
        (DAY, "date", DAY),
        (Decimal("1.50"), "decimal(3,2)", Decimal("1.50")),
    ],
)
def test_a_cell_contains_the_value(value: Any, type_: str, cell: Any) -> None:
    assert table_value(value, parse_type(type_)) == cell


@pytest.mark.parametrize("value", FLOATS)
def test_a_float_is_the_shortest_number_that_is_stored_as_it(value: float) -> None:
    (stored,) = struct.unpack("f", struct.pack("f", value))
    shown = table_value(stored, parse_type("float"))
    assert struct.pack("f", shown) == struct.pack("f", stored)
    assert len(repr(shown)) <= len(repr(stored))
    assert table_value(stored, parse_type("double")) == stored


INT = types.IntegerType()
STRUCT = types.StructType([types.StructField("a", INT), types.StructField("b", types.TimestampType())])
TWICE = types.StructType([types.StructField("a", INT), types.StructField("a", INT)])


@pytest.mark.parametrize(
    ("read", "is_held"),
    [
        (types.MapType(types.DateType(), STRUCT), True),
        (types.ArrayType(STRUCT), True),
        (types.MapType(STRUCT, INT), False),
        (types.ArrayType(types.MapType(types.ArrayType(INT), INT)), False),
        (types.ArrayType(types.YearMonthIntervalType()), False),
        (types.MapType(types.StringType(), TWICE), False),
    ],
)
def test_what_python_cannot_hold_is_read_as_text(read: types.DataType, is_held: bool) -> None:
    assert is_supported(types.StructType([types.StructField("c", read)])) is is_held
