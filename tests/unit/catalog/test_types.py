"""Iceberg's types in Spark's words."""

from __future__ import annotations

from typing import Any

import pytest

from dbt_arctic.catalog.types import spark_type


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
