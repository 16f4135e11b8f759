"""Values that Spark does not compare are brought into a form that it does."""

from __future__ import annotations

import pytest

from dbt_arctic.keyed.null_safe_equality import comparable, equal_value, same_row


@pytest.mark.parametrize(
    "type_", ["bigint", "decimal(4,2)", "array<struct<a:int,b:string>>", "struct<a:int>"]
)
def test_what_spark_compares_is_left_as_it_is(type_: str) -> None:
    assert comparable("o.`a`", type_) == "o.`a`"


@pytest.mark.parametrize(
    ("type_", "sql"),
    [
        ("map<string,int>", "sort_array(map_entries(a))"),
        (
            "map<string,map<int,int>>",
            "sort_array(transform(map_entries(a), x0 -> struct(x0.key, sort_array(map_entries(x0.value)))))",
        ),
        ("array<map<int,decimal(4,2)>>", "transform(a, x0 -> sort_array(map_entries(x0)))"),
        (
            "struct<n:int,m:map<int,int>>",
            "CASE WHEN a IS NOT NULL THEN struct(a.`n` AS `n`, sort_array(map_entries(a.`m`)) AS `m`) END",
        ),
        (
            "struct<`m,:``x`:map<int,int>>",
            "CASE WHEN a IS NOT NULL THEN struct(sort_array(map_entries(a.`m,:``x`)) AS `m,:``x`) END",
        ),
        ("variant", "struct(to_json(a), schema_of_variant(a))"),
    ],
)
def test_maps_and_variants_are_taken_apart_however_deep_they_are(type_: str, sql: str) -> None:
    assert comparable("a", type_) == sql


def test_rows_are_the_same_where_all_columns_are() -> None:
    expected = "o.`id` <=> n.`id` AND map_entries(o.`m`) <=> map_entries(n.`m`)"
    assert same_row("o", "n", {"id": "bigint", "m": "map<int,int>"}) == expected
    assert (
        equal_value("a", "b", "map<int,int>") == "sort_array(map_entries(a)) <=> sort_array(map_entries(b))"
    )
