"""Which values a column stores as they are, and the SQL that puts fields where they belong."""

from __future__ import annotations

import struct
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import pytest

from dbt_arctic.data_type import Atomic, UnreadableType, parse_type, type_text
from dbt_arctic.keyed.assignment import is_exact, mismatches, stored_value

VALUES: dict[str, list[Any]] = {
    "int": [0, -1, 2**31 - 1, 16_777_217],
    "bigint": [0, 2**53 + 1, -(2**62) + 1],
    "float": [0.5, struct.unpack("f", struct.pack("f", 0.1))[0]],
    "double": [0.5, 0.1, 1e300, 1 / 3],
    "decimal(10,0)": [Decimal(7), Decimal(9_999_999_999)],
    "decimal(10,2)": [Decimal("10.70"), Decimal("99999999.99")],
    "decimal(15,3)": [Decimal("10.701"), Decimal("999999999999.999")],
    "decimal(18,3)": [Decimal("999999999999999.999"), Decimal("123456789012345.678")],
}
"""Values of each type, those among them that other types find hard to hold."""
LARGEST = {
    "int": 2**31 - 1,
    "bigint": 2**63 - 1,
    "float": 10**38,
    "double": 10**308,
    "decimal(10,0)": 10**10 - 1,
    "decimal(10,2)": 10**8 - 1,
    "decimal(15,3)": 10**12 - 1,
    "decimal(18,3)": 10**15 - 1,
}
"""A larger value is an overflow, which Spark reports."""


def converted(value: Any, type_: str) -> Any:
    """What a type makes of a number, in Python."""
    if type_ in ("int", "bigint"):
        return int(value)
    if type_ == "float":
        return struct.unpack("f", struct.pack("f", float(value)))[0]
    if type_ == "double":
        return float(value)
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    scale = parse_type(type_).parameters[1]  # type: ignore[union-attr]
    return exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=400))


EXACT = [
    (produced, stored)
    for produced in VALUES
    for stored in VALUES
    if is_exact(Atomic(produced), Atomic(stored))
]


def test_some_types_store_the_numbers_of_others() -> None:
    assert {("int", "bigint"), ("int", "double")} <= set(EXACT)
    assert ("double", "int") not in EXACT


@pytest.mark.parametrize(("produced", "stored"), EXACT)
def test_a_number_comes_back_as_it_was_from_each_type_that_stores_it(produced: str, stored: str) -> None:
    fitting = [value for value in VALUES[produced] if abs(value) <= LARGEST[stored]]
    assert [converted(converted(value, stored), produced) for value in fitting] == fitting


REFUSED = [
    ("decimal(10,1)", "int"),
    ("decimal(10,2)", "decimal(10,1)"),
    ("double", "float"),
    ("double", "bigint"),
    ("bigint", "double"),
    ("int", "float"),
    ("timestamp", "date"),
    ("timestamp", "timestamp_ntz"),
    ("timestamp_ntz", "timestamp"),
    ("timestamp", "string"),
    ("binary", "string"),
    ("string", "int"),
    ("int", "void"),
    ("variant", "string"),
    ("array<decimal(3,1)>", "array<int>"),
    ("map<decimal(3,1),int>", "map<int,int>"),
    ("struct<a:struct<b:double>>", "struct<a:struct<b:float>>"),
    ("int", "struct<a:int>"),
]
KEPT = [
    ("int", "bigint"),
    ("bigint", "int"),
    ("int", "decimal(10,0)"),
    ("decimal(10,0)", "bigint"),
    ("decimal(10,1)", "decimal(12,2)"),
    ("float", "double"),
    ("date", "timestamp"),
    ("int", "string"),
    ("varchar(3)", "string"),
    ("string", "string collate UTF8_LCASE"),
    ("void", "struct<a:int>"),
    ("struct<b:int,a:void>", "struct<a:string,b:bigint>"),
    ("array<struct<B:int,a:int>>", "array<struct<a:int,b:int>>"),
]


@pytest.mark.parametrize(("produced", "stored"), REFUSED)
def test_what_would_change_a_value_is_refused(produced: str, stored: str) -> None:
    (found,) = mismatches("c", produced, stored)
    assert found.path.startswith("c")


@pytest.mark.parametrize(("produced", "stored"), KEPT)
def test_what_keeps_every_value_is_stored(produced: str, stored: str) -> None:
    assert mismatches("c", produced, stored) == []


def test_a_field_is_named_with_its_path() -> None:
    produced = "struct<city:string,more:array<struct<n:decimal(3,1)>>,kinds:map<string,int>,new:int>"
    stored = "struct<city:string,more:array<struct<n:int,gone:int>>,kinds:map<string,boolean>>"
    assert [found.describe() for found in mismatches("addr", produced, stored)] == [
        "addr.more[].n is decimal(3,1) in the query and int in the table",
        "addr.more[].gone int is a field that the query does not have",
        "addr.kinds{value} is int in the query and boolean in the table",
        "addr.new int is a field that the table does not have",
    ]
    filled = mismatches("addr", "struct<city:string>", "struct<city:string,zip:string>", fill=True)
    assert filled == []


def test_shapes_that_are_the_same_need_no_sql() -> None:
    assert stored_value("`a`", "struct<A:int,b:int>", "struct<a:bigint,b:int>") == "`a`"
    assert stored_value("`a`", "array<int>", "array<bigint>") == "`a`"


@pytest.mark.parametrize(
    "text",
    [
        "struct<`a:int,b`:int,`tick```:map<string,array<decimal(38,18)>>>",
        "interval day to second",
        "string collate UTF8_LCASE",
        "struct<a:string collate UNICODE_CI,b:time(6)>",
        "struct<>",
    ],
)
def test_a_type_comes_back_as_its_text(text: str) -> None:
    assert type_text(parse_type(text)) == text


@pytest.mark.parametrize("text", ["struct<a:int", "array<>", "map<int>", "struct<a int>", ""])
def test_a_text_that_is_no_type_is_an_error(text: str) -> None:
    with pytest.raises(UnreadableType):
        parse_type(text)
