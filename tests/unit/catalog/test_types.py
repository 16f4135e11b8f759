"""Iceberg's types in Spark's words."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.catalog.types import requoted, spark_type
from dbt_arctic.errors import StatementError


@pytest.mark.parametrize(
    ("iceberg", "spark"),
    [
        ("boolean", "boolean"),
        ("int", "int"),
        ("long", "bigint"),
        ("float", "float"),
        ("double", "double"),
        ("date", "date"),
        ("timestamp", "timestamp_ntz"),
        ("timestamptz", "timestamp"),
        ("timestamp_ns", "timestamp_ntz"),
        ("timestamptz_ns", "timestamp"),
        ("string", "string"),
        ("uuid", "string"),
        ("binary", "binary"),
        ("fixed[16]", "binary"),
        ("decimal(12, 2)", "decimal(12,2)"),
        ("decimal(38,0)", "decimal(38,0)"),
        ("variant", "variant"),
        ("unknown", "void"),
    ],
)
def test_a_primitive_type_has_its_spark_name(iceberg: str, spark: str) -> None:
    assert spark_type(iceberg) == spark


def test_nested_types_are_spelled_as_simple_string_spells_them() -> None:
    nested: dict[str, Any] = {
        "type": "struct",
        "fields": [
            {"id": 2, "name": "plain", "required": True, "type": "long"},
            {
                "id": 3,
                "name": "by_name",
                "required": False,
                "type": {
                    "type": "map",
                    "key-id": 4,
                    "key": "string",
                    "value-id": 5,
                    "value-required": False,
                    "value": {"type": "list", "element-id": 6, "element": "timestamptz"},
                },
            },
        ],
    }
    assert spark_type(nested) == "struct<plain:bigint,by_name:map<string,array<timestamp>>>"


def test_a_type_that_spark_has_no_word_for_keeps_its_own() -> None:
    assert spark_type("geometry(srid:4326)") == "geometry(srid:4326)"


def test_a_field_whose_name_is_not_plain_is_quoted() -> None:
    fields = [
        {"id": at, "name": name, "type": "int"} for at, name in enumerate(["a", "b c", "d`e", "f:int,g"])
    ]
    struct = {"type": "struct", "fields": fields}
    assert spark_type(struct) == "struct<a:int,`b c`:int,`d``e`:int,`f:int,g`:int>"


@pytest.mark.parametrize(
    ("described", "text"),
    [
        ("decimal(4,2)", "decimal(4,2)"),
        (
            "struct<a:int,b:map<string,array<decimal(4,2)>>>",
            "struct<a:int,b:map<string,array<decimal(4,2)>>>",
        ),
        (
            "array<struct<we ird:int,d`e:interval day to second>>",
            "array<struct<`we ird`:int,`d``e`:interval day to second>>",
        ),
        ("struct<x) USING csv --:int,y:string>", "struct<`x) USING csv --`:int,y:string>"),
        ("struct<a:-:int,b:string>", "struct<`a:-`:int,b:string>"),
        (
            f"struct<{','.join(f'f{at} :int' for at in range(2000))}>",
            f"struct<{','.join(f'`f{at} `:int' for at in range(2000))}>",
        ),
    ],
)
def test_a_described_type_gets_its_quotes_back(described: str, text: str) -> None:
    assert requoted(described) == text


@pytest.mark.parametrize("described", ["struct<a>", "struct<a:-->", "map<struct<a:int>"])
def test_a_described_type_that_cannot_be_read_is_an_error(described: str) -> None:
    with pytest.raises(StatementError, match="rename the field"):
        requoted(described)
