"""A history is a function of the set of its events: how they are cut into batches cannot be seen."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from dbt_arctic.errors import ArcticError, ConfigError
from dbt_arctic.keyed import history_sql
from dbt_arctic.maintenance.erase_plan import plan_by_condition
from dbt_arctic.maintenance.provenance import explain_row
from dbt_arctic.refresh.dml import modify
from dbt_arctic.refresh.external_append import AppendOptions, append_rows
from dbt_arctic.refresh.history import write_history
from dbt_arctic.refresh.parse_dml import parse_modification
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.state import load_change, load_keyed
from tests.extent import extent
from tests.model.history_story import DAY_MS, Event, HistoryStory, Interval, Rules, cut, random_events
from tests.model.spark import SparkWorld
from tests.model.world import Disturbance, Killed, MemoryWorld

RULES = [
    Rules(ignores_note, records_deletes, has_times, open_until)
    for ignores_note in (True, False)
    for records_deletes in (False, True)
    for has_times, open_until in ((False, None), (True, 99999))
]
OPENED = Event(1, 10, 10, "a", "x")
REPEATED = Event(1, 30, 30, "a", "z")
LATE = Event(1, 20, 20, "b", "y")
GONE = Event(1, 40, 40, None, None, "D")


@pytest.fixture
def story(memory_world: MemoryWorld) -> HistoryStory:
    return HistoryStory(memory_world)


def _random_story(story: HistoryStory, seed: int, events: int, batches: int, keys: int = 3) -> None:
    """Batches with compactions, rollbacks and full refreshes between them."""
    chance = random.Random(seed)
    first, *others = cut(chance, random_events(chance, keys, events), batches)
    story.build(first)
    story.check()
    for batch in others:
        story.write(batch)
        story.check()
        match chance.randrange(8):
            case 0 | 1:
                story.compact()
            case 2:
                version, count = chance.choice(story.versions)
                story.roll_back(version, count)
            case 3:
                story.build(story.got)
        story.check()
    assert story.findings() == []


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("seed", range(extent(2, 40)))
def test_random_events_in_random_batches(memory_world: MemoryWorld, rules: Rules, seed: int) -> None:
    _random_story(HistoryStory(memory_world, rules), seed, events=30, batches=7)


@pytest.mark.parametrize("seed", range(extent(6, 60)))
def test_a_few_events_of_one_key(memory_world: MemoryWorld, seed: int) -> None:
    """Small enough that most orders of a few events occur."""
    _random_story(HistoryStory(memory_world, RULES[seed % len(RULES)]), seed, events=6, batches=5, keys=1)


def test_all_events_of_a_batch_are_kept(story: HistoryStory) -> None:
    story.build([OPENED])
    story.write([Event(1, 11 + place, 0, status, "x") for place, status in enumerate("bcd")])
    assert [(one.status, one.valid_from, one.valid_to) for one in story.rows()] == [
        ("a", 10, 11),
        ("b", 11, 12),
        ("c", 12, 13),
        ("d", 13, None),
    ]


def test_a_late_event_splits_an_interval(story: HistoryStory) -> None:
    """Also where the second half had no row: its first event changed nothing when it came."""
    story.build([OPENED, REPEATED])
    assert story.rows() == [Interval(1, 10, "a", "z", 10, None, 30, "False")]
    story.write([LATE])
    assert story.rows() == [
        Interval(1, 10, "a", "x", 10, 20, 10, "False"),
        Interval(1, 20, "b", "y", 20, 30, 20, "False"),
        Interval(1, 30, "a", "z", 30, None, 30, "False"),
    ]


def test_a_late_event_that_changes_nothing_joins_two_intervals(story: HistoryStory) -> None:
    story.build([OPENED, LATE, REPEATED])
    late = Event(1, 15, 15, "b", "v")
    story.write([late])
    story.check()
    assert [one.sequence for one in story.rows()] == [10, 15, 30]


def test_a_delete_closes_and_an_insert_opens_again(story: HistoryStory) -> None:
    story.build([OPENED])
    story.write([GONE])
    assert story.rows() == [Interval(1, 10, "a", "x", 10, 40, 10, "False")]
    story.write([Event(1, 50, 50, "a", "x")])
    assert [(one.valid_from, one.valid_to) for one in story.rows()] == [(10, 40), (50, None)]


def test_a_delete_that_comes_before_all_others_is_remembered(story: HistoryStory) -> None:
    story.build([])
    story.write([GONE])
    assert story.rows() == []
    story.compact()
    story.write([OPENED])
    assert story.rows() == [Interval(1, 10, "a", "x", 10, 40, 10, "False")]


def test_a_batch_that_comes_again_writes_no_row(story: HistoryStory) -> None:
    batch = [OPENED, LATE, REPEATED, GONE, Event(2, 5, 5, None, None, "D")]
    story.build(batch[:2])
    story.write(batch)
    story.check()
    commits = len(load_change(story.world.catalog, load_keyed(story.world.catalog, story.name)).history())
    assert story.write([*batch, *batch]).rows == 0
    history = load_change(story.world.catalog, load_keyed(story.world.catalog, story.name)).history()
    assert len(history) == commits


def test_a_batch_is_one_commit_that_writes_only_changed_rows(
    story: HistoryStory,
) -> None:
    story.build([Event(key, 10, 10, "a", "x") for key in range(50)])
    table = load_keyed(story.world.catalog, story.name)
    before = load_change(story.world.catalog, table).history()
    process = story.process()
    made = story.write([Event(7, 20, 20, "b", "x"), Event(9, 20, 20, "a", "y")], process)
    after = load_change(story.world.catalog, table).history()
    assert len(after) == len(before) + 1
    assert made.rows == 3  # two of key 7, one of key 9
    assert process.ran == [
        "stage_events", "create_branch", "set_in_place", "history", "reset_in_place", "fast_forward",
        "drop_branch", "drop_events",
    ]  # fmt: skip


def test_a_run_that_another_one_overtakes_computes_its_intervals_again(story: HistoryStory) -> None:
    story.build([OPENED])
    meets = Disturbance("meet", step="fast_forward", meet=lambda: story.write([REPEATED, GONE]))
    process = story.process(meets)
    story.write([LATE], process)
    assert process.ran.count("history") == 2
    story.check()
    assert [one.valid_from for one in story.rows()] == [10, 20, 30]


@pytest.mark.parametrize("kind", ["die", "lose", "refuse"])
def test_a_run_that_is_cut_off_at_any_statement_is_repeated(story: HistoryStory, kind: str) -> None:
    story.build([OPENED, REPEATED])
    for at in range(8):
        batch = [Event(1, 11 + at, 0, "ba"[at % 2], "x"), Event(2, at, at, None, None, "D")]
        with suppress(ArcticError, Killed):
            story.write(batch, story.process(Disturbance(kind, at)))
        story.write(batch)
        story.check()
    assert story.findings() == []


def test_only_affected_keys_are_read(story: HistoryStory) -> None:
    story.build([Event(key, 10, 10, "a", "x") for key in range(50)])
    made = story.write([Event(7, 20, 20, "b", "x"), Event(9, 20, 20, "a", "y")])
    assert made.sql.count("WHERE `id` BETWEEN 7 AND 9") == 3
    assert made.sql.count("LEFT SEMI JOIN") == 3


def test_two_different_events_with_one_sequence_are_refused(story: HistoryStory) -> None:
    """In one batch, and in two: otherwise the batches would decide."""
    other = OPENED._replace(status="b")
    story.build([Event(2, 1, 1, "a", "x")])
    for batch in ([OPENED, other], [other, OPENED]):
        with pytest.raises(ArcticError, match="have the same sequence"):
            story.write(batch)
    story.got = story.got[:1]
    story.write([OPENED])
    with pytest.raises(ArcticError, match="have the same sequence"):
        story.write([other])
    story.got.pop()
    story.check()


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("cuts", [1, 2])
def test_deduplicate_by_decides_between_them(memory_world: MemoryWorld, order: int, cuts: int) -> None:
    rules = Rules(deduplicate_by="note")
    story = HistoryStory(memory_world, rules)
    events = [OPENED, OPENED._replace(status="b", note="y")][::order]
    story.build([Event(2, 1, 1, "a", "x")])
    for batch in [events] if cuts == 1 else [[one] for one in events]:
        story.write(batch)
    assert [one.status for one in story.rows()] == ["b", "a"]


def test_an_event_that_is_replaced_may_join_two_intervals(memory_world: MemoryWorld) -> None:
    story = HistoryStory(memory_world, Rules(deduplicate_by="note"))
    story.build([OPENED, LATE, REPEATED])
    story.write([LATE._replace(status="a", note="z")])
    assert story.rows() == [Interval(1, 10, "a", "z", 10, None, 30, "False")]


def test_a_delete_wins_over_an_upsert_with_the_same_sequence(story: HistoryStory) -> None:
    story.build([OPENED])
    story.write([Event(1, 10, 10, None, None, "D")])
    assert story.rows() == []
    story.write([OPENED])
    story.check()


@pytest.mark.parametrize("column", ["seq", "id"])
def test_an_event_without_a_place_is_refused(story: HistoryStory, column: str) -> None:
    story.build([OPENED])
    model = story.model([LATE])
    without = f"SELECT id, seq, status, note, _action FROM (\n{model.sql}\n)"
    without = without.replace(f"{column}, ", f"CAST(NULL AS BIGINT) AS {column}, ", 1)
    broken = type(model)(model.config, model.settings, without, model.scd_id)
    code = {"seq": "AR-309", "id": "AR-303"}[column]
    with pytest.raises(ArcticError, match=code):
        write_history(story.process().context, story.name, broken, Consumption())
    story.check()


def test_events_that_a_trim_forgets_change_no_row_that_is_stored(memory_world: MemoryWorld) -> None:
    """A stored row remembers its own first event, its last one and its delete."""
    story = HistoryStory(memory_world, Rules(tombstone_retention="1 day"))
    story.build([OPENED])
    for sequence in (20, 30, 40):
        story.write([Event(1, sequence, sequence, "a", f"n{sequence}")])
    story.write([Event(1, 50, 50, None, None, "D")])
    assert story.stored() != []
    story.compact()
    memory_world.advance(3 * DAY_MS)
    story.write([Event(2, 1, 1, "a", "x")])
    story.compact()
    assert story.stored() == []
    story.check()
    story.write([Event(1, 60, 60, "c", "x"), Event(1, 45, 45, "b", "y")])
    story.check()


@pytest.mark.parametrize(
    ("setting", "changed"),
    [
        ("tracked columns", {"ignores_note": False}),
        ("hard_deletes", {"records_deletes": True}),
        ("dbt_valid_to_current", {"open_until": 5}),
    ],
)
def test_a_changed_setting_asks_for_a_full_refresh(
    story: HistoryStory, setting: str, changed: dict[str, Any]
) -> None:
    story.build([OPENED])
    story.rules = Rules(**changed)
    with pytest.raises(ConfigError, match=f"{setting} changed.*|{setting}") as error:
        story.write([LATE])
    assert "--full-refresh" in str(error.value)


def test_layout_and_retention_are_those_of_any_keyed_table(story: HistoryStory) -> None:
    story.build([OPENED])
    story.rules = Rules(tombstone_retention="3 days", buckets=8)
    process = story.process()
    story.write([LATE], process)
    assert "set_retention" in process.ran
    assert load_keyed(story.world.catalog, story.name).tombstone_retention_s * 1000 == 3 * DAY_MS
    story.rules = Rules(partition_by="status")
    with pytest.raises(ConfigError, match="partition_by changed"):
        story.write([REPEATED])


def test_rows_that_are_no_events_are_refused(story: HistoryStory) -> None:
    story.build([OPENED])
    context = story.process().context
    for run in (
        lambda: modify(context, story.name, parse_modification(f"DELETE FROM {story.name.sql} WHERE id = 1")),
        lambda: append_rows(context, story.name, story.model([LATE]).sql, AppendOptions(None)),
    ):
        with pytest.raises(ConfigError, match="is a history"):
            run()
    story.check()


def test_an_erasure_by_condition_finds_events_without_a_row(story: HistoryStory) -> None:
    story.build([OPENED, Event(2, 1, 1, "a", "x")])
    story.write([Event(1, 15, 15, "a", "secret"), REPEATED])
    assert [row[:2] for row in story.stored()] == [(1, 15)]
    plan = plan_by_condition(story.process().context, story.name, "id = 1")
    assert plan.keys == 2
    assert "15" in plan.condition


def test_the_commits_of_a_row_are_explained(story: HistoryStory) -> None:
    story.build([OPENED])
    story.write([LATE])
    found = explain_row(story.process().context, story.name, ["id=1", "seq=10"])
    assert found.row is not None
    assert found.row["dbt_valid_to"] == 20
    assert len(found.steps) == 2


def _is(name: str, wrong: Callable[[str], str]) -> Any:
    return pytest.param(name, wrong, id=name)


MUTANTS = [
    _is(
        "a late event is appended", lambda sql: sql.replace("coalesce(`_arctic_next_fresh`, 0) = 1", "false")
    ),
    _is("a delete is ignored", lambda sql: sql.replace("`_action` = 'D' THEN 'D'", "false THEN 'D'")),
    _is(
        "the order of arrival decides",
        lambda sql: sql.replace("ORDER BY `seq`)", "ORDER BY `_arctic_fresh`, `seq`)"),
    ),
    _is(
        "an ignored column opens an interval",
        lambda sql: sql.replace(
            "THEN 0 ELSE 1 END AS `_arctic_opens`",
            "AND `note` <=> lag(`note`) OVER (PARTITION BY `id` ORDER BY `seq`) "
            "THEN 0 ELSE 1 END AS `_arctic_opens`",
        ),
    ),
    _is(
        "an insert after a delete does not open",
        lambda sql: sql.replace(
            "OR `_arctic_deleted` <> lag(`_arctic_deleted`) OVER (PARTITION BY `id` ORDER BY `seq`) THEN 1",
            "THEN 1",
        ),
    ),
    _is("a remembered delete is forgotten", lambda sql: sql.replace("WHEN 3 THEN `_arctic_closed`", "")),
    _is("first values are forgotten", lambda sql: sql.replace("THEN `_arctic_first_note`", "THEN `note`")),
    _is(
        "events without a row are not remembered",
        lambda sql: sql.replace("(`_arctic_was` IS NULL AND NOT", "(false AND NOT"),
    ),
]


@pytest.mark.parametrize(("name", "wrong"), MUTANTS)
def test_a_mistake_would_be_found(
    memory_world: MemoryWorld, monkeypatch: pytest.MonkeyPatch, name: str, wrong: Callable[[str], str]
) -> None:
    right, seen = history_sql.intervals, []

    def mutated(history: Any, new: str, stored: str | None = None) -> str:
        sql = right(history, new, stored)
        seen.append(sql != wrong(sql))
        return wrong(sql)

    monkeypatch.setattr("dbt_arctic.refresh.history.intervals", mutated)

    def stories() -> None:
        for seed in range(6):
            _random_story(HistoryStory(memory_world), seed, events=30, batches=7)

    with pytest.raises((AssertionError, ArcticError)):
        stories()
    assert any(seen), name


@pytest.mark.parametrize("rules", [RULES[0], RULES[3]], ids=str)
def test_spark_gives_the_same(spark_world: SparkWorld, rules: Rules) -> None:
    _random_story(HistoryStory(spark_world, rules), seed=1, events=12, batches=extent(3, 8), keys=2)
