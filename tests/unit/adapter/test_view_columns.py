"""Which queries of views are stored with their columns listed; ``tests/dbt/keyed/test_clones.py`` reads such
views after their tables were rebuilt."""

from __future__ import annotations

import pytest

from dbt_arctic.adapter.view_columns import by_name, lists_its_columns


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
    assert by_name("select * from t -- all", ["a"]).splitlines()[-1] == ") AS arctic_query"


def test_names_that_differ_by_case_only_are_left_to_spark() -> None:
    assert by_name("select * from t", ["id", "ID"]) == "select * from t"
