"""With ``sequence_by``, late older rows never win: over any order of arrival, merged, trimmed or pending."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt_arctic.keyed import compact, read
from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.log import LogRange
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.keyed.version import Version

TABLE = KeyedTable(
    name=Name("lake", "s", "orders"),
    generation=Generation(1, "b", "c", "seq"),
    key=("id",),
    layout=Layout(2, "id"),
    columns=(Column("id", "int"), Column("seq", "int"), Column("v", "int")),
)
LOGICAL = "id INT, seq INT, v INT"
CHANGE = f"{LOGICAL}, _action VARCHAR, _offset BIGINT, _txn BIGINT, _last_updated_sequence_number BIGINT"
MARKERS = [(key, None, None, "-U", 0, 0, 1) for key in range(3)]

# A change of a key: its sequence, and its value or None for a delete.
events = st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 9)))
commits = st.lists(st.dictionaries(st.integers(0, 3), events, max_size=4), max_size=6)
eager = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

Commit = dict[int, tuple[int, int | None]]


def winners(commits: list[Commit]) -> Commit:
    """The change that wins of each key: the greatest sequence, then deletes, then what came last."""
    found: dict[int, tuple[int, bool, int, int | None]] = {}
    for number, commit in enumerate(commits):
        for key, (sequence, value) in commit.items():
            one = (sequence, value is None, number, value)
            found[key] = max(found.get(key, one), one, key=lambda event: event[:3])
    return {key: (sequence, value) for key, (sequence, _, _, value) in found.items()}


def state(commits: list[Commit]) -> Commit:
    return {key: event for key, event in winners(commits).items() if event[1] is not None}


def rows(state: Commit) -> list[tuple[Any, ...]]:
    return [(key, sequence, value) for key, (sequence, value) in state.items()]


def change_rows(commits: list[Commit], trimmed: int = 0) -> list[tuple[Any, ...]]:
    """Of what was trimmed, the deletes are still there. ``_txn`` says nothing of the order."""
    return MARKERS + [
        (key, sequence, value, "D" if value is None else "U", 0, 1000 - number, number + 2)
        for number, commit in enumerate(commits)
        for key, (sequence, value) in commit.items()
        if number >= trimmed or value is None
    ]


def fill(duck: Any, log: list[Commit], merged: int = 0, trimmed: int = 0, at: str = "") -> None:
    duck.table(f"orders__base_1{at and '@5'}", LOGICAL, rows(state(log[:merged])))
    duck.table(f"orders__change_1{at and '@7'}", CHANGE, change_rows(log, min(merged, trimmed)))


def found_state(found: list[tuple[Any, ...]]) -> Commit:
    assert len({row[0] for row in found}) == len(found), "a key twice"
    return {row[0]: (row[1], row[2]) for row in found}


@eager
@given(log=commits, merged=st.integers(0, 6), trimmed=st.integers(0, 6))
def test_merged_rows_are_the_greatest_of_each_key_whatever_is_merged_or_trimmed(
    duck: Any, log: list[Commit], merged: int, trimmed: int
) -> None:
    fill(duck, log, merged, trimmed)
    assert found_state(duck.query(read.merge_on_read(TABLE))) == state(log)


@eager
@given(log=commits, merged=st.integers(0, 6), trimmed=st.integers(0, 6), wanted=st.sets(st.integers(0, 4)))
def test_rows_of_some_keys_are_those_of_the_merged_rows(
    duck: Any, log: list[Commit], merged: int, trimmed: int, wanted: set[int]
) -> None:
    fill(duck, log, merged, trimmed)
    duck.table("wanted", "id INT", [(key,) for key in sorted(wanted)])
    found = duck.query(read.merge_on_read(TABLE, keys="SELECT id FROM lake.s.wanted"))
    assert found_state(found) == {key: row for key, row in state(log).items() if key in wanted}


@eager
@given(log=commits, merged=st.integers(0, 6), trimmed=st.integers(0, 6))
def test_the_deletes_that_are_remembered_are_those_that_no_row_has_overridden(
    duck: Any, log: list[Commit], merged: int, trimmed: int
) -> None:
    fill(duck, log, merged, trimmed, at="pinned")
    found = duck.query(read.tombstones_of(TABLE, Version(1, 7, 5)))
    assert {row[3] for row in found} <= {"D"}
    assert found_state(found) == {key: one for key, one in winners(log).items() if one[1] is None}


@eager
@given(log=commits, merged=st.integers(0, 6), trimmed=st.integers(0, 6), start=st.integers(0, 6))
def test_a_pull_gives_the_merged_state_of_each_key_and_never_a_late_loser(
    duck: Any, log: list[Commit], merged: int, trimmed: int, start: int
) -> None:
    fill(duck, log, merged, trimmed, at="pinned")
    duck.table("orders__change_1@6", CHANGE, change_rows(log))
    transactions = tuple(1000 - number for number in range(start, len(log)))
    pulled = duck.query(read.latest_changes(TABLE, LogRange(transactions, (7, 6)), Version(1, 7, 5)))
    touched = {key for commit in log[start:] for key in commit}
    now = state(log)
    assert {row[0]: row[3] for row in pulled} == {key: "U" if key in now else "D" for key in touched}
    assert found_state([row for row in pulled if row[3] == "U"]) == {k: now[k] for k in touched if k in now}


@eager
@given(log=commits, merged=st.integers(0, 6), trimmed=st.integers(0, 6))
def test_a_compaction_merges_what_wins_and_nothing_else(
    duck: Any, log: list[Commit], merged: int, trimmed: int
) -> None:
    merged = min(merged, len(log))
    fill(duck, log, merged, trimmed)
    duck.table("orders__change_1@7", CHANGE, change_rows(log, min(merged, trimmed)))
    pending = [1000 - number for number in range(merged, len(log))]
    if pending:
        statement = compact.merge_changes(TABLE, 7, pending, "merge")
        duck.query(in_duckdb(statement))
    assert found_state(duck.query("SELECT * FROM lake.s.orders__base_1")) == state(log)


def in_duckdb(merge: str) -> str:
    """No branches there, and what is set has no table in front."""
    text = merge.replace(".`branch_merge`", "")
    return re.sub(r"(?<=UPDATE SET )(.*)", lambda found: found.group(1).replace("b.`", "`"), text)


def test_of_one_batch_the_greatest_sequence_is_written(duck: Any) -> None:
    duck.table("src", LOGICAL, [(1, 1, 10), (1, 2, 20), (2, 1, 30)])
    batch = Batch(
        model="orders",
        sql="SELECT * FROM lake.s.src",
        key=("id",),
        columns=("id", "seq", "v"),
        model_columns=("id", "seq", "v"),
        sequence_by="seq",
    )
    assert sorted(row[:3] for row in duck.query(batch.one_row_per_key(7))) == [(1, 2, 20), (2, 1, 30)]
    duck.table("src", LOGICAL, [(1, None, 10)])
    with pytest.raises(duckdb.Error, match="AR-309"):
        duck.query(batch.one_row_per_key(7))
    duck.table("src", LOGICAL, [(1, 2, 10), (1, 2, 20)])
    with pytest.raises(duckdb.Error, match="AR-304"):
        duck.query(batch.one_row_per_key(7))
    assert [row[2] for row in duck.query(replace(batch, deduplicate_by=("v",)).one_row_per_key(7))] == [20]
