"""Layout: the config's buckets, partitions and order, completed or refused with the fix."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.layout import Layout, is_bucketable, partition_column, partition_field, plan_layout

TYPES = {"id": "bigint", "day": "date", "ratio": "double", "flag": "boolean", "name": "string"}


def plan(**settings: Any) -> Layout:
    return plan_layout(**{"where": "orders", "key": ("id",), "types": TYPES, **settings})


def test_defaults_are_eight_buckets_by_the_first_column_that_can_be_bucketed_sorted_by_key() -> None:
    assert plan(key=("ratio", "name", "id")) == Layout(8, "name", (), ("ratio", "name", "id"))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"buckets": 0}, ["power of two", "buckets=1"]),
        ({"buckets": 6}, ["buckets=8"]),
        ({"buckets": 65537}, ["buckets=65536"]),
        ({"bucket_by": "name"}, ["not part of unique_key", "id"]),
        ({"bucket_by": "nope"}, ["nope", "id, day"]),
        ({"key": ("ratio", "flag")}, ["ratio double, flag boolean", "cast"]),
        ({"key": ("ratio", "id"), "bucket_by": "ratio"}, ["cast"]),
        ({"partition_by": ["month(nope)"]}, ["partition_by", "nope"]),
        ({"sort_by": ["nope"]}, ["sort_by", "nope"]),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_with_the_fix(settings: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        plan(**settings)
    assert [word for word in words if word not in str(raised.value)] == []
    assert raised.value.where == "orders"


@pytest.mark.parametrize(
    ("text", "field", "column"),
    [
        ("country", "`country`", "country"),
        (" Day( `at` ) ", "day(`at`)", "at"),
        ("truncate(4, sku)", "truncate(4, `sku`)", "sku"),
        ("bucket(16,id)", "bucket(16, `id`)", "id"),
        ("`we``ird`", "`we``ird`", "we`ird"),
    ],
)
def test_a_partition_field_is_a_column_or_a_transform_of_one(text: str, field: str, column: str) -> None:
    assert partition_field(text) == field
    assert partition_column(text) == column


@given(st.text(min_size=1).filter(lambda text: text.strip() == text and "(" not in text and "`" not in text))
def test_any_name_survives_quoting(name: str) -> None:
    assert partition_column(partition_field(name)) == name


def test_a_layout_survives_the_properties_of_a_view() -> None:
    layout = Layout(16, "ïd", ("day(at)", "`a``b`"), ("x", "y"))
    assert Layout.from_json(layout.to_json()) == layout


@pytest.mark.parametrize(
    "type_",
    ["double", "float", "boolean", "array<int>", "struct<a:int>", "map<int,int>", "interval year to month"],
)
def test_types_without_a_bucket_transform_are_known(type_: str) -> None:
    assert not is_bucketable(type_)


@pytest.mark.parametrize("type_", ["INT", "decimal(10,2)", "timestamp_ntz", "string collate UTF8_LCASE"])
def test_types_with_a_bucket_transform_are_known(type_: str) -> None:
    assert is_bucketable(type_)
