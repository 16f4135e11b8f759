"""What a model's columns are against a table's: new, gone, wider, or of a type that does not fit."""

from __future__ import annotations

import pytest

from dbt_arctic.keyed.table import Column
from dbt_arctic.refresh.evolve import SchemaDifference, can_widen, compare_columns, stored_type


def columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_ in types.items())


def compare(table: tuple[Column, ...], produced: tuple[Column, ...]) -> SchemaDifference:
    return compare_columns(table, produced)


def test_the_same_columns_in_another_order_and_case_are_no_difference() -> None:
    assert not compare(columns(a="int", b="string"), columns(B="string", A="int"))


def test_each_kind_of_difference_is_told() -> None:
    found = compare(
        columns(a="int", b="string", c="decimal(10,2)", d="bigint"),
        columns(a="bigint", c="string", d="bigint", e="date"),
    )
    assert found.added == columns(e="date")
    assert found.removed == ("b",)
    assert found.widened == columns(a="bigint")
    assert [(column.name, old) for column, old in found.incompatible] == [("c", "decimal(10,2)")]
    for word in ("e date", "gone: b", "a is now bigint", "c was decimal(10,2), is now string"):
        assert word in found.describe()


def test_a_narrower_type_fits_into_the_column_as_it_is() -> None:
    assert not compare(
        columns(a="bigint", b="double", c="decimal(12,2)"), columns(a="int", b="float", c="decimal(9,2)")
    )


@pytest.mark.parametrize(
    ("table", "model"),
    [("int", "tinyint"), ("int", "smallint"), ("bigint", "smallint"), ("array<struct<a:int,b:string>>",) * 2],
)
def test_a_type_that_is_stored_as_the_columns_is_no_difference(table: str, model: str) -> None:
    assert not compare(columns(a=table), columns(a=model))


@pytest.mark.parametrize(
    ("spark", "stored"),
    [
        ("smallint", "int"),
        ("array<tinyint>", "array<int>"),
        ("map<smallint,struct<a:tinyint>>", "map<int,struct<a:int>>"),
        ("struct<smallint:string>", "struct<smallint:string>"),
        ("bigint", "bigint"),
    ],
)
def test_stored_types(spark: str, stored: str) -> None:
    assert stored_type(spark) == stored


@pytest.mark.parametrize(
    ("old", "new", "can"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("float", "double", True),
        ("int", "double", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,3)", False),
        ("decimal(12,2)", "decimal(10,2)", False),
        ("date", "timestamp", False),
    ],
)
def test_only_what_iceberg_promotes_is_widened(old: str, new: str, can: bool) -> None:
    assert can_widen(old, new) is can
