"""Batches of other programs: whatever is cut off, repeated or interleaved, a key is in the rows at most once.

Which keys are in the rows of a snapshot is known without the product's records: from the runs whose commits
landed, and from the version that a rollback names.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

import pytest

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.errors import ArcticError, ConfigError, SchemaChanged, UnknownRelation
from dbt_arctic.keyed.idempotency_keys import (
    LONGEST_KEY,
    REMEMBERED,
    appended_keys,
    carried_keys,
    keys_to_note,
)
from dbt_arctic.keyed.log import PROPERTY_ROLLBACK, PROPERTY_RUN
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.adopt import adopt_table, plan_adoption
from dbt_arctic.refresh.clone import cloned_rows
from dbt_arctic.refresh.external_append import Appended, AppendOptions, append_rows
from dbt_arctic.store.context import Context
from tests.extent import extent
from tests.model import plain  # noqa: F401  # the statements of users
from tests.model.oracle import TableLog
from tests.model.story import GRACE_S, Change, Story
from tests.model.world import Disturbance, Killed, MemoryWorld, Process

HOUR_MS = 3600 * 1000
TROUBLES = ("die", "lose", "refuse")
LAST_STATEMENT = 6
FIRST = [Change(1, 10)]


@dataclass
class Appending(Story):
    """A story with batches of other programs.

    :param appends: the key of the batch of a run.
    :param keys: the keys in the rows of each snapshot of ``orders`` that was ever seen.
    """

    appends: dict[str, str] = field(default_factory=dict)
    keys: dict[int, frozenset[str]] = field(default_factory=dict)

    def append(
        self,
        key: str | None,
        batch: Sequence[Change],
        disturbance: Disturbance | None = None,
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> bool | None:
        """Whether it was written; ``None`` if it ended with an error.

        :param names: columns of the rows that have other names than those of the table.
        """
        sql = self.model(batch)
        if names:
            columns = ("id", *self.columns, "_action")
            selected = ", ".join(f"{one} AS {names.get(one, one)}" for one in columns)
            sql = f"SELECT {selected} FROM (\n{sql}\n)"
        options = AppendOptions(key, action=names.get("_action"), sequence=names.get("version"))
        said: list[Appended] = []

        def intend(run_id: str) -> None:
            self.orders.effects[run_id] = lambda log, state, commit: self.cells(batch, False)
            if key is None:
                self.blind.add(run_id)
            else:
                self.appends[run_id] = key

        self._observe(self.orders)
        known = key is not None and key in self.now

        def run(process: Process) -> None:
            said.append(append_rows(process.context, self.orders.name, sql, options))

        if not self._attempt(f"append {key}", run, disturbance, None, intend):
            return None
        (done,) = said
        if disturbance is None or disturbance.kind != "meet":  # another run may roll it back in the middle
            assert done.written is not known
            assert key is None or key in self.now
        return bool(done.written)

    @property
    def now(self) -> frozenset[str]:
        """The keys in the current rows."""
        return self.keys[self.orders.current.head]

    def check(self) -> None:
        super().check()
        assert self.orders.shown is not None
        change = self.orders._side(self.orders.shown, "change", self.orders.shown.generation)
        assert change is not None
        for snapshot in change.history():
            found = appended_keys(change.history(snapshot.snapshot_id), change.properties)
            assert len(set(found)) == len(found)
            if set(found) != self.keys[snapshot.snapshot_id]:
                self._fail(f"the keys {set(found)}, expected {set(self.keys[snapshot.snapshot_id])}")

    def _observe(self, table: TableLog) -> None:
        super()._observe(table)
        if table is not self.orders or table.shown is None:
            return
        for log in table.generations.values():
            change = table._side(table.shown, "change", log.generation)
            commits = {} if change is None else {one.snapshot_id: one for one in change.snapshots}
            before: frozenset[str] = frozenset()
            for snapshot in log.order:
                if snapshot not in self.keys:
                    self.keys[snapshot] = self._after(before, commits[snapshot])
                before = self.keys[snapshot]

    def _after(self, before: frozenset[str], commit: Snapshot) -> frozenset[str]:
        if PROPERTY_ROLLBACK in commit.summary:
            return self.keys[Version.parse(commit.summary[PROPERTY_ROLLBACK]).change_snapshot]
        key = self.appends.get(commit.summary.get(PROPERTY_RUN, ""))
        if key is None or "arctic.txn" not in commit.summary:
            return before
        if key in before:
            self._fail(f"the batch {key} was committed twice")
        return before | {key}


@pytest.fixture
def story(memory_world: MemoryWorld) -> Appending:
    made = Appending(memory_world, thorough=1)
    made.build(FIRST)
    return made


@pytest.mark.parametrize("at", range(LAST_STATEMENT + 1))
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_batch_that_was_cut_off_is_written_once_when_it_is_sent_again(
    story: Appending, trouble: str, at: int
) -> None:
    batch = [Change(1, 11), Change(2, 20)]
    story.append("k", batch, Disturbance(trouble, at))
    story.append("k", batch)
    assert story.append("k", batch) is False
    # What is done in between is not undone by a repetition.
    story.upsert([Change(2, 21)])
    assert story.append("k", batch) is False
    assert story.now == {"k"}


@pytest.mark.parametrize("at", range(LAST_STATEMENT * 3))
@pytest.mark.parametrize("key", ["k", "other"])
def test_of_two_at_once_with_one_key_one_is_written(story: Appending, key: str, at: int) -> None:
    other = Disturbance("meet", at, lambda: story.append(key, [Change(2, 20)]))
    story.append("k", [Change(1, 11)], other)
    assert "k" in story.now
    assert story.append("k", [Change(1, 11)]) is False


@pytest.mark.parametrize("at", range(0, 40, 2))
def test_beside_a_full_refresh_it_is_in_the_new_rows_or_an_error(story: Appending, at: int) -> None:
    said: list[bool | None] = []
    other = Disturbance("meet", at, lambda: said.append(story.append("k", [Change(2, 20)])))
    story.build([Change(3, 30)], other)
    # It was refused, or landed before the build began (its rows are then replaced) or after its end. In each
    # case, the writer sends it again.
    written = story.append("k", [Change(2, 20)])
    assert written is True or said == [True]
    assert story.now == {"k"}


def test_a_full_refresh_forgets_what_it_has_replaced_and_its_undo_knows_it_again(story: Appending) -> None:
    assert story.append("k", [Change(2, 20)])
    story.build(FIRST)
    assert story.now == frozenset()
    assert story.undo_full_refresh(story.orders)
    assert story.append("k", [Change(2, 20)]) is False


@pytest.mark.parametrize("sequence", [False, True])
def test_a_batch_that_was_rolled_back_can_be_written_again(memory_world: MemoryWorld, sequence: bool) -> None:
    story = Appending(memory_world, sequence=sequence, thorough=1)
    story.build(FIRST)
    story.append("first", [Change(1, 11, sequence=1)])
    version = story.version()
    story.append("k", [Change(2, 20, sequence=2)])
    story.upsert([Change(1, 12, sequence=3)])
    story.compact(story.orders, GRACE_S)
    undone = story.version()
    assert story.roll_back(story.orders, version)
    assert story.now == {"first"}
    assert story.append("first", [Change(1, 11, sequence=1)]) is False
    assert story.append("k", [Change(2, 20, sequence=2)]) is True
    if not sequence:  # with a sequence, it is in the generation before
        assert story.roll_back(story.orders, undone)
        assert story.append("k", [Change(2, 20, sequence=2)]) is False


def test_keys_survive_compaction_and_the_expiry_of_their_commits(story: Appending) -> None:
    for number in range(3):
        assert story.append(f"k{number}", [Change(number, number)])
        story.advance(HOUR_MS)
        if number == 0:
            story.upsert([Change(3, 3)])  # the savepoint is of a commit without a key
            story.savepoint("kept")
            version = story.version()
    story.compact(story.orders, 0)
    story.put_together("full", story.orders)
    for _ in range(2):
        story.advance(2 * HOUR_MS)
        story.upsert([Change(1, 5)])
        story.compact(story.orders, 0)
        assert story.let_go(story.orders, HOUR_MS)
    change = story.orders._side(story.orders.shown, "change", story.orders.shown.generation)  # type: ignore[arg-type,union-attr]
    assert change is not None
    assert not any("arctic.append" in one.summary for one in change.history())
    assert [story.append(f"k{number}", []) for number in range(3)] == [False, False, False]
    assert story.roll_back(story.orders, version)
    assert story.now == {"k0"}
    assert story.append("k2", []) is True


def test_a_branch_that_is_left_keeps_a_commit_and_with_it_the_keys_before(story: Appending) -> None:
    assert story.append("a", [Change(1, 1)])
    story.advance(HOUR_MS)
    story.append("b", [Change(2, 2)], Disturbance("die", step="drop_branch"))
    story.advance(HOUR_MS)
    story.upsert([Change(1, 5)])
    story.advance(HOUR_MS)
    assert story.let_go(story.orders, HOUR_MS // 2)
    assert [story.append(key, []) for key in ("a", "b")] == [False, False]


def test_a_clone_has_the_keys_of_its_source(story: Appending) -> None:
    story.append("k", [Change(2, 20)])
    assert cloned_rows(story.world.catalog, story.orders.name, "clone").keys == ("k",)


def test_the_keys_of_commits_that_are_gone_are_bounded() -> None:
    def commit(number: int) -> Snapshot:
        summary = {"arctic.append": f"k{number}"}
        return Snapshot(number, number - 1 or None, number, number, "append", summary)

    history = [commit(number) for number in range(REMEMBERED + 50, 0, -1)]
    assert len(appended_keys(history, {})) == REMEMBERED + 50
    notes = keys_to_note([history[10:]], {})
    kept = appended_keys(history[:11], notes)
    assert kept == tuple(f"k{number}" for number in range(REMEMBERED + 50, 40, -1))
    assert keys_to_note([history[10:11]], notes) == {}
    longest = carried_keys(["k" * LONGEST_KEY] * 2 * REMEMBERED)["arctic.appended"]
    assert len(longest) < REMEMBERED * (LONGEST_KEY + 4)


@pytest.mark.parametrize("seed", range(extent(20, 400)))
def test_whatever_is_done_in_whatever_order_no_key_is_lost_or_doubled(seed: int) -> None:
    chance = random.Random(seed)
    story = Appending(MemoryWorld(seed, chance.choice([0, 1])), sequence=seed % 3 == 0, thorough=3)
    story.build(FIRST)
    for _ in range(25):
        step(story, chance)
    story.world.close()


def step(story: Appending, chance: random.Random, inside: bool = False) -> None:
    batch = [
        Change(key, chance.choice([None, 1, 2]), chance.randrange(3), story.oldest + chance.randrange(5))
        for key in chance.sample(range(4), chance.randrange(3))
    ]
    story.newest = max([story.newest, *(one.sequence for one in batch)])
    trouble = None
    if chance.random() < 0.4:
        kind = chance.choice([*TROUBLES, *([] if inside else ["meet"] * 3)])
        meet = None if kind != "meet" else lambda: step(story, chance, inside=True)
        trouble = Disturbance(kind, chance.randrange(14), meet)
    what = chance.choice(["append"] * 6 + ["upsert", "compact", "let go", "roll back", "roll back"] + OTHERS)
    if what == "append":
        key = chance.choice(["a", "b", "c", "d", None])
        story.append(key, batch, trouble)
    elif what == "upsert":
        story.upsert(batch, trouble)
    elif what == "compact":
        story.compact(story.orders, chance.choice([0, GRACE_S]), trouble)
    elif what == "let go":
        story.let_go(story.orders, chance.choice([GRACE_S * 1000, HOUR_MS // 2]), trouble)
    elif what == "roll back" and story.versions:
        story.roll_back(story.orders, chance.choice(story.versions), trouble)
    elif what == "undo" and story.orders.shown is not None and story.orders.shown.previous is not None:
        story.undo_full_refresh(story.orders, trouble)
    elif what == "build":
        story.build(batch, trouble)
    elif what == "time":
        story.advance(chance.choice([1000, HOUR_MS, 25 * HOUR_MS]))
    elif what in ("trim", "minor", "full"):
        story.put_together(what, story.orders, trouble)
    elif what == "savepoint" and not inside:
        if "s" in story.savepoints():
            story.drop_savepoint("s")
        else:
            story.savepoint("s", trouble)


OTHERS = ["undo", "build", "time", "time", "trim", "minor", "full", "savepoint"]


# Plain tables


@pytest.fixture
def events(memory_world: MemoryWorld) -> Name:
    memory_world.execute("CREATE TABLE `lake`.`s`.`events` (id BIGINT, amount INT) USING iceberg")
    return memory_world.name("events")


ROWS = (
    "SELECT CAST(id AS BIGINT) AS id, CAST(amount AS INT) AS amount "
    "FROM VALUES (1, 10), (2, 20) AS t(id, amount)"
)


def test_a_plain_table_takes_each_batch_once(memory_world: MemoryWorld, events: Name) -> None:
    expected = 0
    for number, (at, trouble) in enumerate((at, trouble) for at in range(6) for trouble in TROUBLES):
        process = memory_world.process("writer", Disturbance(trouble, at))
        with suppress(Killed, ArcticError):
            append_rows(process.context, events, ROWS, AppendOptions(f"k{number}"))
        for _ in range(2):
            append_rows(memory_world.process("writer").context, events, ROWS, AppendOptions(f"k{number}"))
        expected += 1
    found = memory_world.query(f"SELECT `id`, count(*) FROM {events.sql} GROUP BY `id`")
    assert sorted(found) == [(1, expected), (2, expected)]


@pytest.mark.parametrize("at", range(14))
def test_of_two_writers_to_a_plain_table_one_writes_the_batch(
    memory_world: MemoryWorld, events: Name, at: int
) -> None:
    def other() -> None:
        append_rows(memory_world.process("other").context, events, ROWS, AppendOptions("k"))
        append_rows(memory_world.process("other").context, events, ROWS, AppendOptions())

    process = memory_world.process("writer", Disturbance("meet", at, other))
    append_rows(process.context, events, ROWS, AppendOptions("k"))
    (count,) = memory_world.query(f"SELECT count(*) FROM {events.sql}")[0]
    assert count == (2 if not process._events > at else 4)


class Reached(Exception):
    """The first statement is about to run."""


class Counting:
    """A catalog that counts how often each relation is read."""

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog
        self.loads: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def of(self, name: Any) -> Counting:
        return self

    def load_table(self, schema: str, name: str) -> Any:
        self.loads[name] += 1
        return self._catalog.load_table(schema, name)

    def load_view(self, schema: str, name: str) -> Any:
        self.loads[name] += 1
        return self._catalog.load_view(schema, name)


def loads_before_the_write(process: Process, name: Name, sql: str, options: AppendOptions) -> Counter[str]:
    """How often each relation is read before the first statement of an append."""

    def run(step: str, sql: str, table: Any = None) -> int | None:
        raise Reached

    context = process.context
    catalog = Counting(context.catalog.of(name))
    counted = Context(cast(Any, catalog), run, context.query_schema, context.query)
    with pytest.raises(Reached):
        append_rows(counted, name, sql, options)
    return catalog.loads


def test_a_plain_table_is_read_once_before_the_first_statement(
    memory_world: MemoryWorld, events: Name
) -> None:
    process = memory_world.process("writer")
    loads = loads_before_the_write(process, events, ROWS, AppendOptions("k"))
    assert loads == {"events": 2}, "no view has its name, so it is a table"


def test_a_keyed_table_is_read_once_before_its_write_begins(story: Appending) -> None:
    process, name = story.world.process("writer"), story.orders.name
    sql = story.model([Change(5, 50)])
    loads = loads_before_the_write(process, name, sql, AppendOptions("k"))
    assert loads == {"orders": 2, "orders__change_1": 2}, "the write looks at them again"


def test_the_action_and_the_order_of_rows_may_be_in_columns_of_other_names(memory_world: MemoryWorld) -> None:
    story = Appending(memory_world, sequence=True, thorough=1)
    story.build([Change(1, 10, sequence=5), Change(2, 20, sequence=5), Change(3, 30, sequence=5)])
    batch = [Change(1, 11, sequence=4), Change(2, 21, sequence=6), Change(3, None, sequence=7)]
    assert story.append("k", batch, names={"_action": "op", "version": "lsn"})
    story.check()


# What is refused


@pytest.mark.parametrize(
    ("sql", "options", "error", "what"),
    [
        ("SELECT `id` FROM (ROWS)", {}, SchemaChanged, "no amount, day"),
        ("SELECT *, 1 AS `more` FROM (ROWS)", {}, SchemaChanged, "no more"),
        ("SELECT `id`, 1.5D AS `amount`, `day` FROM (ROWS)", {}, SchemaChanged, "amount is double"),
        ("SELECT * FROM (ROWS)", {"action": "op"}, ConfigError, "no column op"),
        ("SELECT * FROM (ROWS)", {"sequence": "amount"}, ConfigError, "no sequence"),
        ("SELECT *, 'U' AS `op` FROM (ROWS)", {"action": "op"}, ConfigError, "a column _action"),
        ("SELECT * FROM (ROWS)", {"key": ""}, ConfigError, "0 characters"),
        ("SELECT * FROM (ROWS)", {"key": "k" * 129}, ConfigError, "129 characters"),
    ],
)
def test_rows_that_the_table_cannot_take_exactly_are_refused(
    story: Appending, sql: str, options: dict[str, str], error: type[ArcticError], what: str
) -> None:
    text = sql.replace("ROWS", f"\n{story.model([Change(5, 50)])}\n")
    before = story.version()
    with pytest.raises(error) as caught:
        append_rows(
            story.world.process("writer").context,
            story.orders.name,
            text,
            AppendOptions(**{"key": "k", **options}),
        )
    assert what in f"{caught.value.what} {caught.value.why}"
    assert caught.value.fix
    assert caught.value.where == "append to s.orders"
    assert story.version() == before


@pytest.mark.parametrize("key", [None, "k"])
def test_keys_are_not_null_and_unique_and_an_order_decides(story: Appending, key: str | None) -> None:
    def append(sql: str, **more: object) -> None:
        options = AppendOptions(key, **more)  # type: ignore[arg-type]
        append_rows(story.world.process("writer").context, story.orders.name, sql, options)

    twice = f"{story.model([Change(5, 50)])}\nUNION ALL\n{story.model([Change(5, 51)])}"
    with pytest.raises(ArcticError, match="AR-304"):
        append(twice)
    null = story.model([Change(5, 50)]).replace("CAST(id AS BIGINT)", "CAST(NULL AS BIGINT)")
    with pytest.raises(ArcticError, match="AR-303"):
        append(null)
    story.orders.effects["writer"] = lambda log, state, commit: story.cells([Change(5, 51)], False)
    if key is not None:
        story.appends["writer"] = key
    append(twice, deduplicate_by=("amount",))
    story.check()


def test_an_action_under_another_name_deletes(story: Appending) -> None:
    story.orders.effects["writer"] = lambda log, state, commit: story.cells([Change(1, None)], False)
    sql = story.model([Change(1, None)]).replace("AS _action\n", "AS op\n")
    append_rows(story.world.process("writer").context, story.orders.name, sql, AppendOptions(action="op"))
    story.check()
    assert not story.orders.current.now[1].payload


def test_what_is_no_table_is_named(story: Appending, events: Name) -> None:
    context = story.world.process("writer").context
    with pytest.raises(UnknownRelation, match="does not exist"):
        append_rows(context, story.world.name("nothing"), ROWS, AppendOptions("k"))
    with pytest.raises(ConfigError, match="plain table"):
        append_rows(context, events, ROWS, AppendOptions("k", deduplicate_by=("id",)))
    for sql, what in (
        (f"SELECT `id`, 1.5D AS `amount` FROM (\n{ROWS}\n)", "amount is double"),
        (f"SELECT `id` FROM (\n{ROWS}\n)", "the rows have no amount"),
    ):
        with pytest.raises(SchemaChanged, match=what):
            append_rows(context, events, sql, AppendOptions("k"))
    assert story.world.query(f"SELECT count(*) FROM {events.sql}") == [(0,)]


def test_a_plain_table_that_becomes_keyed_keeps_its_keys(memory_world: MemoryWorld, events: Name) -> None:
    append_rows(memory_world.process("writer").context, events, ROWS, AppendOptions("k"))
    context = memory_world.process("adoption").context
    adoption = plan_adoption(context, events, key=("id",), owner="model.test")
    with suppress(NotImplementedError, ArcticError):  # the lake in memory moves no table
        adopt_table(context, adoption)
    change = memory_world.catalog.load_table(events.schema, adoption.table.change.identifier)
    assert change is not None
    assert appended_keys(change.history(), change.properties) == ("k",)
