"""Reads of a keyed table give what a dict by key would, for any contents of base and change table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt_arctic.keyed import read
from dbt_arctic.keyed.changes_between import changes, difference
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.log import LogRange
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.keyed.version import Version

TABLE = KeyedTable(
    name=Name("lake", "s", "orders"),
    generation=Generation(1, "b", "c"),
    key=("id", "part"),
    layout=Layout(2, "id"),
    columns=(Column("id", "int"), Column("part", "string"), Column("v", "int")),
)
LOGICAL = "id INT, part VARCHAR, v INT"
CHANGE = f"{LOGICAL}, _action VARCHAR, _offset BIGINT, _txn BIGINT, _last_updated_sequence_number BIGINT"
MARKERS = [(key, None, None, "-U", 0, 0, 1) for key in range(3)]

keys = st.tuples(st.integers(0, 3), st.sampled_from("ab"))
values = st.one_of(st.none(), st.integers(0, 3))
states = st.dictionaries(keys, values, max_size=6)
commits = st.lists(st.dictionaries(keys, st.one_of(st.just("D"), values), max_size=4), max_size=5)
eager = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

State = dict[tuple[int, str], Any]


def rows_of(state: State) -> list[tuple[Any, ...]]:
    return [(*key, value) for key, value in state.items()]


def change_rows(commits: list[State]) -> list[tuple[Any, ...]]:
    """Commit n has the sequence number n + 2; its ``_txn`` says nothing of the order."""
    found: list[tuple[Any, ...]] = list(MARKERS)
    for number, commit in enumerate(commits):
        for key, value in commit.items():
            payload = (None, "D") if value == "D" else (value, "U")
            found.append((*key, *payload, 0, 1000 - number, number + 2))
    return found


def state_after(base: State, commits: list[State]) -> State:
    state = dict(base)
    for commit in commits:
        for key, value in commit.items():
            if value == "D":
                state.pop(key, None)
            else:
                state[key] = value
    return state


def as_state(rows: list[tuple[Any, ...]]) -> State:
    found = {(row[0], row[1]): row[2] for row in rows}
    assert len(found) == len(rows), "a key twice"
    return found


@eager
@given(base=states, log=commits)
def test_merged_rows_are_the_base_with_every_commit_in_order(
    duck: Any, base: State, log: list[State]
) -> None:
    duck.table("orders__base_1", LOGICAL, rows_of(base))
    duck.table("orders__change_1", CHANGE, change_rows(log))
    assert as_state(duck.query(read.merge_on_read(TABLE))) == state_after(base, log)


@eager
@given(base=states, log=commits, merged=st.integers(0, 5), trimmed=st.integers(0, 5))
def test_what_is_merged_and_not_yet_trimmed_reads_the_same(
    duck: Any, base: State, log: list[State], merged: int, trimmed: int
) -> None:
    # trimmed(change) ⊆ merged(base) ⊆ history(change)
    rest = change_rows(log)
    gone = {1000 - number for number in range(min(merged, trimmed))}
    duck.table("orders__base_1@5", LOGICAL, rows_of(state_after(base, log[:merged])))
    duck.table("orders__change_1@7", CHANGE, [row for row in rest if row[5] not in gone])
    assert as_state(duck.query(read.merge_on_read(TABLE, Version(1, 7, 5)))) == state_after(base, log)


@eager
@given(base=states, log=commits, wanted=st.sets(keys, max_size=4), several=st.booleans())
def test_rows_of_some_keys_are_those_of_the_merged_rows(
    duck: Any, base: State, log: list[State], wanted: set[tuple[int, str]], several: bool
) -> None:
    log = log if several else log[:1]
    duck.table("orders__base_1@5", LOGICAL, rows_of(base))
    duck.table("orders__change_1@7", CHANGE, change_rows(log))
    duck.table("wanted", "id INT, part VARCHAR", sorted(wanted))
    logged: read.Logged = "several" if several else "one" if log and log[0] else "nothing"
    of_keys = read.merge_on_read(
        TABLE, Version(1, 7, 5), logged=logged, keys="SELECT id, part FROM lake.s.wanted"
    )
    merged = state_after(base, log)
    assert as_state(duck.query(of_keys)) == {key: merged[key] for key in wanted if key in merged}


@eager
@given(log=commits, start=st.integers(0, 5), trimmed=st.integers(0, 5))
def test_the_latest_changes_of_a_range_are_the_last_of_each_key_in_it(
    duck: Any, log: list[State], start: int, trimmed: int
) -> None:
    rows = change_rows(log)
    gone = {1000 - number for number in range(trimmed)}
    duck.table("orders__change_1@6", CHANGE, rows)
    duck.table("orders__change_1@7", CHANGE, [row for row in rows if row[5] not in gone])
    found = duck.query(
        read.latest_changes(
            TABLE, LogRange(tuple(1000 - n for n in range(start, len(log))), (7, 6)), Version(1, 7, 5)
        )
    )
    expected: dict[Any, Any] = {}
    for commit in log[start:]:
        expected.update(commit)
    assert {(row[0], row[1]): "D" if row[3] == "D" else row[2] for row in found} == expected
    assert len(found) == len(expected)


@eager
@given(log=commits)
def test_the_changes_of_a_single_commit_are_its_rows(duck: Any, log: list[State]) -> None:
    duck.table("orders__change_1@7", CHANGE, change_rows(log))
    for number in range(len(log)):
        range_ = LogRange((1000 - number,), (7,))
        found, expected = (
            sorted(duck.query(read.latest_changes(TABLE, range_, Version(1, 7, 5), single=single)), key=repr)
            for single in (True, False)
        )
        assert found == expected


@eager
@given(base=states, commit=st.dictionaries(keys, st.one_of(st.just("D"), values), max_size=4))
def test_signed_rows_are_what_one_commit_with_images_took_and_gave(
    duck: Any, base: State, commit: State
) -> None:
    images = [(*key, base[key], "-U", None, 1000, 2) for key in commit if key in base]
    duck.table("orders__change_1@7", CHANGE, change_rows([commit]) + images)
    found = duck.query(read.weighted_changes(TABLE, LogRange((1000,), (7,)), "sign"))
    lost = {(*key, base[key], -1) for key in commit if key in base}
    gained = {(*key, value, 1) for key, value in commit.items() if value != "D"}
    assert (len(found), set(found)) == (len(lost) + len(gained), lost | gained)


@pytest.mark.parametrize("images", ["after", "both"])
def test_a_difference_turns_one_state_into_the_other(duck: Any, images: read.Images) -> None:
    @eager
    @given(before=states, now=states)
    def check(before: State, now: State) -> None:
        duck.table("old", LOGICAL, rows_of(before))
        duck.table("new", LOGICAL, rows_of(now))
        events = duck.query(
            difference("SELECT * FROM lake.s.old", "SELECT * FROM lake.s.new", TABLE.key, TABLE.types, images)
        )
        state = dict(before)
        for id_, part, value, action in events:
            if action in ("D", "-U"):
                assert before[id_, part] == value
            if action == ("-U" if images == "both" else "D"):
                del state[id_, part]
        for id_, part, value, action in events:
            assert action == "-U" or (id_, part) not in state or images == "after"
            if action == "U":
                state[id_, part] = value
        assert state == now
        changed = {key for key in before.keys() | now.keys() if before.get(key, "-") != now.get(key, "-")}
        assert {(row[0], row[1]) for row in events} == changed

    check()


@eager
@given(base=states, log=commits, start=st.integers(0, 5))
def test_changes_between_two_versions_are_the_difference_of_their_rows(
    duck: Any, base: State, log: list[State], start: int
) -> None:
    rows = change_rows(log)
    start = min(start, len(log))
    duck.table("orders__base_1@5", LOGICAL, rows_of(base))
    duck.table("orders__change_1@6", CHANGE, [row for row in rows if row[6] < start + 2])
    duck.table("orders__change_1@7", CHANGE, rows)
    transactions = tuple(1000 - number for number in range(start, len(log)))
    sql = changes(TABLE, Version(1, 6, 5), Version(1, 7, 5), LogRange(transactions, (7,)), "after")
    state = state_after(base, log[:start])
    events = duck.query(sql)
    for id_, part, value, action in events:
        if action == "D":
            assert state.pop((id_, part)) == value
        else:
            state[id_, part] = value
    assert state == state_after(base, log)


@eager
@given(base=states, log=commits, start=st.integers(0, 5))
def test_a_pull_with_before_images_has_the_row_that_each_changed_key_had(
    duck: Any, base: State, log: list[State], start: int
) -> None:
    rows = change_rows(log)
    start = min(start, len(log))
    duck.table("orders__base_1@5", LOGICAL, rows_of(base))
    duck.table("orders__change_1@6", CHANGE, [row for row in rows if row[6] < start + 2])
    duck.table("orders__change_1@7", CHANGE, rows)
    transactions = tuple(1000 - number for number in range(start, len(log)))
    events = duck.query(
        read.latest_changes_and_before_images(
            TABLE, Version(1, 6, 5), Version(1, 7, 5), LogRange(transactions, (7,))
        )
    )
    old, new = state_after(base, log[:start]), state_after(base, log)
    touched = {key for commit in log[start:] for key in commit}
    images = as_state([row for row in events if row[3] == "-U"])
    assert images == {key: old[key] for key in touched if key in old}
    latest = {(row[0], row[1]): (row[3], row[2]) for row in events if row[3] != "-U"}
    assert latest.keys() == touched
    assert {key: value for key, (action, value) in latest.items() if action == "U"} == {
        key: new[key] for key in touched if key in new
    }
