"""What a model's columns are against a table's: new, gone, wider, or of a type that does not fit.

``tests/field_types.py`` says what the type of a table becomes, for pairs of types three deep.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt_arctic.keyed.schema_difference import (
    SchemaDifference,
    compare_columns,
    evolved,
    field_type,
    stored_type,
)
from dbt_arctic.keyed.table import Column
from dbt_arctic.keyed.widening import can_widen
from tests.field_types import became, drifted, is_convertible, text, types


def columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_ in types.items())


def compare(table: tuple[Column, ...], produced: tuple[Column, ...]) -> SchemaDifference:
    return compare_columns(table, produced)


def test_the_same_columns_in_another_order_and_case_are_no_difference() -> None:
    assert not compare(columns(a="int", b="string"), columns(B="string", A="int"))


def test_each_kind_of_difference_is_reported() -> None:
    found = compare(
        columns(a="int", b="string", c="decimal(10,2)", d="bigint"),
        columns(a="bigint", c="string", d="bigint", e="date"),
    )
    assert [(one.label, one.new) for one in found.added] == [("e", "date")]
    assert [one.label for one in found.removed] == ["b"]
    assert [(one.label, one.new) for one in found.widened] == [("a", "bigint")]
    assert [(one.label, one.old) for one in found.incompatible] == [("c", "decimal(10,2)")]
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


RULES: list[set[str]] = [{"added"}, {"added", "widened"}, {"added", "widened", "removed"}]


@settings(deadline=None)
@given(st.data(), types)
def test_a_tables_type_becomes_what_the_rule_says_at_every_depth(data: st.DataObject, table: Any) -> None:
    model = data.draw(drifted(table))
    before, produced = columns(c=text(table)), columns(c=text(model))
    found = compare_columns(before, produced)
    assert bool(found.incompatible) != is_convertible(table, model)
    if found.incompatible:
        return
    for kinds in RULES:
        changes = [change for change in found.changes if change.kind in kinds]
        after = evolved(before, changes)
        assert after == columns(c=text(became(table, model, kinds)))
        # A column that Iceberg is to change exists before or after the change.
        for change in changes:
            assert field_type(before, change.path) == (change.old or None)
            assert field_type(after, change.path) == (change.new or None)
        left = {change.kind for change in compare_columns(after, produced).changes}
        assert not left & kinds, "a second run has nothing left to change"


@settings(deadline=None)
@given(st.data(), types)
def test_the_order_of_fields_and_the_case_of_their_names_are_no_difference(
    data: st.DataObject, table: Any
) -> None:
    def other(type_: Any) -> Any:
        if isinstance(type_, dict):
            return {name.swapcase(): other(type_[name]) for name in data.draw(st.permutations(list(type_)))}
        if isinstance(type_, list):
            return [other(type_[0])]
        return (type_[0], other(type_[1])) if isinstance(type_, tuple) else type_

    assert not compare(columns(c=text(table)), columns(C=text(other(table))))


def test_a_field_without_a_type_gets_one_but_no_element_does() -> None:
    table = columns(s="struct<a:void,b:int>", l="array<void>")
    found = compare(table, columns(s="struct<a:date,b:int>", l="array<date>"))
    assert [(one.kind, one.label) for one in found.changes] == [("typed", "s.a"), ("incompatible", "l[]")]
    assert evolved(table, found.of("typed")) == columns(s="struct<b:int,a:date>", l="array<void>")
    assert not compare(columns(s="struct<a:int>"), columns(s="struct<a:void>"))
