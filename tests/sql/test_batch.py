"""A batch becomes one row a key, or an error that names the key; nothing in between."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from dbt_arctic.keyed.batch import Batch

ROWS = [(1, "2024-01-01", 10), (1, "2024-01-02", 11), (2, "2024-01-01", 20)]


def batch(**config: Any) -> Batch:
    settings: dict[str, Any] = {
        "model": "orders",
        "sql": "SELECT * FROM lake.s.src",
        "key": ("id",),
        "columns": ("id", "day", "v"),
        "model_columns": ("id", "day", "v"),
        **config,
    }
    return Batch(**settings)


@pytest.fixture
def src(duck: Any) -> Any:
    def fill(rows: list[tuple[Any, ...]], columns: str = "id INT, day VARCHAR, v INT") -> Any:
        duck.table("src", columns, rows)
        return duck

    return fill


def test_the_greatest_by_deduplicate_by_wins(src: Any) -> None:
    found = src(ROWS).query(batch(deduplicate_by=("day",)).one_row_per_key(7))
    assert sorted(found) == [(1, "2024-01-02", 11, "U", 0, 7), (2, "2024-01-01", 20, "U", 0, 7)]


def test_null_never_wins_over_a_value(src: Any) -> None:
    found = src([(1, None, 10), (1, "2024-01-02", 11)]).query(
        batch(deduplicate_by=("day",)).one_row_per_key(7)
    )
    assert [row[2] for row in found] == [11]


def test_expressions_may_order_too(src: Any) -> None:
    found = src(ROWS).query(batch(deduplicate_by=("-v",)).one_row_per_key(7))
    assert sorted(row[2] for row in found) == [10, 20]


@pytest.mark.parametrize(
    ("rows", "config", "words"),
    [
        (ROWS, {}, ["AR-304", "1", "orders", "deduplicate_by"]),
        ([(1, "a", 1), (1, "a", 2)], {"deduplicate_by": ("day",)}, ["AR-304"]),
        ([(None, "a", 1)], {}, ["AR-303", "orders", "coalesce"]),
        ([(None, "a", 1), (None, "b", 1)], {}, ["AR-303"]),
    ],
    ids=["duplicates", "ties", "NULL key", "two NULL keys"],
)
def test_what_cannot_be_decided_is_an_error(
    src: Any, rows: list[Any], config: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(duckdb.Error) as raised:
        src(rows).query(batch(**config).one_row_per_key(7))
    for word in words:
        assert word in str(raised.value)


def test_delete_when_and_action_make_deletes(src: Any) -> None:
    rows = [(1, "a", 1, "U"), (2, "a", -1, "U"), (3, "a", 1, "D"), (4, "a", None, "U")]
    columns = ("id", "day", "v", "_action")
    made = batch(model_columns=columns, delete_when="v < 0")
    found = src(rows, "id INT, day VARCHAR, v INT, _action VARCHAR").query(made.one_row_per_key(7))
    assert sorted((row[0], row[3]) for row in found) == [(1, "U"), (2, "D"), (3, "D"), (4, "U")]


@pytest.mark.parametrize("action", ["X", "u", "-U", None])
def test_an_unknown_action_is_an_error(src: Any, action: str | None) -> None:
    made = batch(model_columns=("id", "day", "v", "_action"))
    with pytest.raises(duckdb.Error, match="AR-301"):
        src([(1, "a", 1, action)], "id INT, day VARCHAR, v INT, _action VARCHAR").query(
            made.one_row_per_key(7)
        )


def test_a_column_that_the_model_does_not_produce_is_null_and_names_do_not_mind_case(src: Any) -> None:
    made = batch(columns=("ID", "gone", "V"))
    assert src([(1, "a", 5)]).query(made.one_row_per_key(7)) == [(1, None, 5, "U", 0, 7)]
