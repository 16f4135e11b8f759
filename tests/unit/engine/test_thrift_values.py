"""Values of a Spark Thrift server become the Python values that other connections return."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from dbt_arctic.engine.thrift_values import converter, readable, value_type

ZURICH = ZoneInfo("Europe/Zurich")
NOON = dt.datetime(2024, 7, 1, 12, 0, 0, 250_000)


def python(type_: str, value: Any, time_zone: str = "UTC") -> Any:
    return converter(value_type(type_), time_zone)(value)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("int", 3, 3),
        ("string", "it's", "it's"),
        ("boolean", True, True),
        ("binary", b"\x00\xff", b"\x00\xff"),
        ("decimal(10,2)", "1.50", Decimal("1.50")),
        ("date", "2024-07-01", dt.date(2024, 7, 1)),
        ("date", "+10000-01-01", "+10000-01-01"),
        ("date", "-0044-03-15", "-0044-03-15"),
        ("timestamp_ntz", "2024-07-01 12:00:00.25", NOON),
        ("timestamp_ntz", "2024-07-01 12:00:00", NOON.replace(microsecond=0)),
        ("timestamp_ntz", "+10000-01-01 00:00:00", "+10000-01-01 00:00:00"),
        ("interval day", "INTERVAL '1' DAY", "INTERVAL '1' DAY"),
        ("array<int>", "[1,null]", [1, None]),
        ("map<int,string>", '{"1":"a","2":null}', {1: "a", 2: None}),
        ("map<boolean,double>", '{"true":1.5}', {True: 1.5}),
        ("map<date,int>", '{"2024-07-01":1}', {dt.date(2024, 7, 1): 1}),
        ("array<decimal(20,2)>", "[12345678901234567.89]", [Decimal("12345678901234567.89")]),
        ("array<binary>", '["AP8="]', [b"\x00\xff"]),
        ("struct<a:int,b:struct<c:string>>", '{"a":null,"b":{"c":"x"}}', {"a": None, "b": {"c": "x"}}),
        ("array<timestamp_ntz>", '["2024-07-01T12:00:00.250000"]', [NOON]),
        ("struct<b c:int>", '{"b c":1}', {"b c": 1}),
        ("map<struct<a:int>,int>", "{{1} -> 2}", "{{1} -> 2}"),
        ("struct<a,b:int>", "{1}", "{1}"),
    ],
)
def test_a_value_is_that_of_its_type(type_: str, value: Any, expected: Any) -> None:
    found = python(type_, value)
    assert (found, type(found)) == (expected, type(expected))
    assert python(type_, None) is None


def test_a_number_that_is_none_stays_so_inside_of_a_nested_type() -> None:
    (found,) = python("array<double>", '["NaN"]')
    assert math.isnan(found)


def test_a_timestamp_is_an_instant_in_the_time_zone_of_the_session() -> None:
    for value in (
        python("timestamp", "2024-07-01 12:00:00.25", "Europe/Zurich"),
        *python("array<timestamp>", '["2024-07-01T12:00:00.250000+02:00"]', "Europe/Zurich"),
    ):
        assert value == NOON.replace(tzinfo=ZURICH)
        assert value.utcoffset() == dt.timedelta(hours=2)
    offset = python("timestamp", "2024-07-01 12:00:00.25", "+02:00")
    assert offset == NOON.replace(tzinfo=ZURICH)


def test_only_what_arrives_as_text_is_read_in_another_way() -> None:
    plain = [value_type(one) for one in ("int", "decimal(5,1)", "timestamp", "void")]
    assert readable(plain, ["a", "b", "c", "d"]) is None
    kinds = ("int", "array<int>", "map<array<int>,int>", "interval day", "variant", "struct<a,b:int>")
    first, nested, keys, interval, variant, ambiguous = (
        readable([*map(value_type, kinds)], list("abcdef")) or []
    )
    assert first == "a"
    assert nested.startswith("to_json(b, map('ignoreNullFields', 'false'")
    assert ambiguous == "CAST(f AS STRING)", "the server does not quote the names of fields"
    assert (interval, variant) == ("CAST(d AS STRING)", "to_json(e)")
    assert "struct(to_json(_arctic_0.key, map('ignoreNullFields', 'false'" in keys
    (instants,) = readable([value_type("map<timestamp,int>")], ["a"]) or []
    assert "date_format(_arctic_0.key" in instants, "two instants may have one local time"
