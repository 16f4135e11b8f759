"""Which queries of views are stored with their columns listed; ``tests/dbt/keyed/test_clones.py`` reads such
views after their tables were rebuilt."""

from __future__ import annotations

import pytest

from dbt_arctic.adapter.view_columns import lists_its_columns, stored_query


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id, name from t", True),
        ("-- all of *\nselect id from t", True),
        ("with o as (select id from t) select id from o", True),
        ("select * from t", False),
        ("select t.* except (id) from t", False),
        ("with o as (select * from t) select id from o", False),  # more often than needed, never less
        ("table t", False),
        ("select id from (table t)", False),
        ("from t", False),
        ("from t |> where id > 1", False),
        ("select id from t |> drop name", False),
        ("values (1, 2)", False),
    ],
)
def test_a_query_whose_columns_follow_from_its_tables_is_known(sql: str, expected: bool) -> None:
    assert lists_its_columns(sql) is expected


def test_a_comment_at_the_end_of_a_query_hides_nothing() -> None:
    assert stored_query("select * from t -- all", [("a", "int")]).splitlines()[-1] == ") AS arctic_query"


def test_names_that_differ_by_case_only_are_left_to_spark() -> None:
    assert stored_query("select * from t", [("id", "int"), ("ID", "int")]) == "select * from t"


def test_a_query_without_structs_that_lists_its_columns_is_stored_as_it_is() -> None:
    text = "select a, b from t"
    assert stored_query(text, [("a", "map<string,array<int>>"), ("b", "int")]) == text


def test_fields_of_structs_are_taken_by_name_at_every_depth() -> None:
    columns = [("a", "int"), ("s", "struct<x:int>"), ("m", "map<int,array<struct<`y z`:string>>>")]
    text = stored_query("select a, s, m from t", columns)
    outer, inner = text.split("\nFROM (\n")[:2]
    assert outer.count("IDENTIFIER(IF(typeof(") == 2
    assert "'map<int,array<struct<`y z`:string>>>'" in outer
    assert "named_struct('x', (`s`).`x`)" in inner
    assert "named_struct('y z', (_arctic_1).`y z`)" in inner


def test_a_column_of_the_query_may_have_the_name_of_one_that_is_added() -> None:
    text = stored_query("select * from t", [("arctic_by_name_1", "int"), ("s", "struct<x:int>")])
    assert "'`arctic_by_name__1`'" in text
    assert text.startswith("SELECT `arctic_by_name_1`, IDENTIFIER(")
