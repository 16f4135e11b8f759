"""What a model's columns are against a table's: new, gone, wider, or of a type that does not fit.

An oracle in plain Python (``became``, ``fits``) says what the type of a table becomes, for pairs of types
three deep: structs are dicts there, arrays lists of one, maps tuples of two.
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


# The oracle

WIDER = {"int": "bigint", "float": "double", "decimal(4,2)": "decimal(9,2)"}
NAMES = ("a", "B", "x y", "element", "tick`", "p.q")

leaves = st.sampled_from([*WIDER, *WIDER.values(), "string", "date"])
types: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=3),
        st.lists(inner, min_size=1, max_size=1),
        st.tuples(st.sampled_from(["string", "int"]), inner),
    ),
    max_leaves=8,
)


@st.composite
def drifted(draw: st.DrawFn, type_: Any) -> Any:
    """A type that a model may have a version later: mostly alike, with some differences."""
    if draw(st.integers(0, 9)) == 0:
        return draw(types)
    if isinstance(type_, dict):
        kept = [name for name in type_ if draw(st.integers(0, 3))] or list(type_)[:1]
        found = {name: draw(drifted(type_[name])) for name in draw(st.permutations(kept))}
        for name in NAMES:
            if name not in type_ and draw(st.integers(0, 3)) == 0:
                found[name] = draw(types)
        return found
    if isinstance(type_, list):
        return [draw(drifted(type_[0]))]
    if isinstance(type_, tuple):
        return (type_[0], draw(drifted(type_[1])))
    return draw(st.sampled_from([type_, WIDER.get(type_, type_)]))


def text(type_: Any) -> str:
    if isinstance(type_, dict):
        quoted = {name: "`" + name.replace("`", "``") + "`" for name in type_ if not name.isalpha()}
        return f"struct<{','.join(f'{quoted.get(n, n)}:{text(one)}' for n, one in type_.items())}>"
    if isinstance(type_, list):
        return f"array<{text(type_[0])}>"
    if isinstance(type_, tuple):
        return f"map<{text(type_[0])},{text(type_[1])}>"
    return str(type_)


def fits(table: Any, model: Any) -> bool:
    """Whether no part of a model's type is of a kind that a table's never becomes, or takes."""
    if isinstance(table, dict) and isinstance(model, dict):
        return all(fits(table[name], model[name]) for name in table if name in model)
    if isinstance(table, list) and isinstance(model, list):
        return fits(table[0], model[0])
    if isinstance(table, tuple) and isinstance(model, tuple):
        keys = WIDER.get(model[0]) == table[0] or table[0] == model[0]
        return keys and fits(table[1], model[1])
    if not (isinstance(table, str) and isinstance(model, str)):
        return False
    return table == model or WIDER.get(table) == model or WIDER.get(model) == table


def became(table: Any, model: Any, kinds: set[str]) -> Any:
    """A table's type after the changes of some kinds."""
    if isinstance(table, dict):
        kept = {
            name: became(one, model[name], kinds) if name in model else one
            for name, one in table.items()
            if name in model or "removed" not in kinds
        }
        new = {name: one for name, one in model.items() if name not in table and "added" in kinds}
        return kept | new
    if isinstance(table, list):
        return [became(table[0], model[0], kinds)]
    if isinstance(table, tuple):
        return (table[0], became(table[1], model[1], kinds))
    return model if "widened" in kinds and model == WIDER.get(table) else table


RULES: list[set[str]] = [{"added"}, {"added", "widened"}, {"added", "widened", "removed"}]


@settings(deadline=None)
@given(st.data(), types)
def test_a_tables_type_becomes_what_the_rule_says_at_every_depth(data: st.DataObject, table: Any) -> None:
    model = data.draw(drifted(table))
    before, produced = columns(c=text(table)), columns(c=text(model))
    found = compare_columns(before, produced)
    assert bool(found.incompatible) != fits(table, model)
    if found.incompatible:
        return
    for kinds in RULES:
        changes = [change for change in found.changes if change.kind in kinds]
        after = evolved(before, changes)
        assert after == columns(c=text(became(table, model, kinds)))
        # What Iceberg is asked for is there before, or there after.
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
