"""A default of another engine as SQL, from Iceberg's serialization of single values."""

from __future__ import annotations

import pytest

from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.keyed.initial_default import initial_value
from dbt_arctic.keyed.nested import as_today


@pytest.mark.parametrize(
    ("initial", "type_", "sql"),
    [
        ("", "struct<a:int>", "CAST(NULL AS struct<a:int>)"),
        ("true", "boolean", "CAST('true' AS boolean)"),
        ("9007199254740993", "bigint", "CAST('9007199254740993' AS bigint)"),
        ("0.10000000000000001", "double", "CAST('0.10000000000000001' AS double)"),
        ('"14.20"', "decimal(9,2)", "CAST('14.20' AS decimal(9,2))"),
        ('"it\'s"', "string", r"CAST('it\'s' AS string)"),
        ('"0AFF"', "binary", "unhex('0AFF')"),
    ],
)
def test_a_default_keeps_its_digits(initial: str, type_: str, sql: str) -> None:
    assert initial_value(initial, type_) == sql


@pytest.mark.parametrize("initial", ["{}", "[1]"])
def test_a_default_of_a_nested_type_is_refused(initial: str) -> None:
    with pytest.raises(VersionUnavailable, match="older rows have the default"):
        initial_value(initial, "array<int>")


def test_a_field_has_its_own_default() -> None:
    then = '{"type": "struct", "fields": []}'
    field = '{"id": 2, "name": "c", "type": "int", "spark_type": "int", "initial": "7"}'
    now = f'{{"type": "struct", "fields": [{field}]}}'
    assert as_today("s", then, now) == (
        "CASE WHEN s IS NOT NULL THEN named_struct('c', CAST('7' AS int)) END"
    )
