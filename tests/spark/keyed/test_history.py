"""Every version of a keyed table is a plain dict here, and reading it, going back to it, or pulling across
it has to come to the same."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.errors import (
    CatalogUnavailable,
    ConcurrentRun,
    ConfigError,
    ConstraintBroken,
    VersionUnavailable,
)
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.maintenance.claims import Claims
from dbt_arctic.maintenance.clean import remove_leftovers
from dbt_arctic.maintenance.expire import expire_versions
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.leftovers import Retention, find_leftovers
from dbt_arctic.maintenance.restore import restore_table, undo_full_refresh
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.savepoint import drop_savepoint, make_savepoint
from dbt_arctic.maintenance.timeline import history
from dbt_arctic.maintenance.verify import verify_schema
from dbt_arctic.maintenance.versions import list_savepoints, rows_at, rows_at_time
from dbt_arctic.refresh.pull import plan_changes
from dbt_arctic.store import computed_write
from dbt_arctic.store.state import load_change

Row = dict[str, Any]
ROWS = [{"id": number, "amount": number} for number in range(4)]


class Story:
    """What is done to a table, and its rows after each commit, by version."""

    def __init__(self, orders: Any) -> None:
        self.orders = orders
        self.session = orders.session
        self.versions: dict[str, list[Row]] = {}

    def note(self, rows: list[Row]) -> str:
        token = str(self.orders.version.token)
        self.versions[token] = sorted(rows, key=lambda row: row["id"])
        return token

    def read(self, sql: str) -> list[Row]:
        return self.orders._sorted(self.session.read(sql, list(self.orders.types)))

    def at(self, version: str) -> list[Row]:
        return self.read(rows_at(self.session.catalog, self.orders.name, version, "test"))

    def replayed(self, start: str, end: str) -> list[Row]:
        """The rows of a version with the changes up to another applied to them."""
        sql = plan_changes(self.session.catalog, self.orders.name, start, end, "both", "test")
        rows = {row["id"]: row for row in self.versions[start]}
        changes = self.session.read(sql, [*self.orders.types, "_action"])
        for change in sorted(changes, key=lambda row: row["_action"] == "U"):
            action = change.pop("_action")
            if action == "U":
                rows[change["id"]] = change
            else:
                assert rows.pop(change["id"], change) == change, "an old row is the one that was there"
        return sorted(rows.values(), key=lambda row: row["id"])

    def roll_back(self, version: str) -> str:
        roll_back(self.session.context, self.orders.name, version)
        return self.note(self.at("current"))


@pytest.fixture
def story(shop: Any) -> Story:
    return Story(shop.table())


@pytest.mark.modelled
def test_each_version_can_be_read_and_gone_back_to(story: Story) -> None:
    orders, session = story.orders, story.session
    orders.build(ROWS)
    built = story.note(ROWS)
    orders.apply([{"id": 1, "amount": 10}, {"id": 9, "amount": 9}], [{"id": 2}])
    story.note([ROWS[0], {"id": 1, "amount": 10}, ROWS[3], {"id": 9, "amount": 9}])
    make_savepoint(session.context, orders.name, "before-merge")
    orders.compact()  # merged and trimmed: two commits, the same rows
    orders.upsert([{"id": 3, "amount": 30}])
    pending = story.note([ROWS[0], {"id": 1, "amount": 10}, {"id": 3, "amount": 30}, {"id": 9, "amount": 9}])

    entries = history(session.catalog, orders.name)
    assert [entry.kind for entry in entries] == ["upsert", "trim", "compaction of 1", "upsert", "build"]
    assert [entry.rows for entry in entries][::-1][:2] == [4, 3]
    assert [entry.savepoints for entry in entries][::-1][1] == ("before-merge",)
    read = {entry.version.token: story.at(entry.version.token) for entry in entries if entry.version}
    assert len(read) == 4, "a commit and the compaction that merged it are one version"
    assert all(story.at(token) == rows for token, rows in story.versions.items())
    tokens = [entry.version.token for entry in entries if entry.version]
    changed = read[tokens[3]]
    assert changed == read[tokens[2]] == read[tokens[1]]
    for entry in (entries[0], entries[-1]):
        sql = rows_at_time(session.catalog, orders.name, f"{iso(entry.time_ms)}Z", "test")
        assert entry.version is not None
        assert story.read(sql) == read[entry.version.token]

    after = story.roll_back("before-merge")
    assert story.versions[after] == orders.rows() == changed
    again = story.roll_back(built)
    assert orders.rows() == ROWS
    assert story.replayed(pending, after) == story.versions[after]
    assert story.replayed(after, again) == ROWS
    orders.compact()
    assert orders.rows() == ROWS == orders.base_rows()
    found = session.statements.ran
    assert story.roll_back(pending) != pending
    assert orders.rows() == story.versions[pending]
    last = next(statement for statement in reversed(found) if statement.step == "rollback")
    assert last.rows == 4, "three upserts and a delete: only rows that differ"


def iso(time_ms: int) -> str:
    seconds, rest = divmod(time_ms, 1000)
    return dt.datetime.fromtimestamp(seconds, dt.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest:03}"


@pytest.mark.modelled
def test_a_rollback_is_pulled_as_changes_and_pulls_again_what_it_undid(shop: Any) -> None:
    source = shop.table("source")
    source.build(ROWS[:2])
    middle = shop.consumer("middle", source)
    middle.run()
    last = shop.consumer("last", middle.orders, unique_key="id")
    last.orders = replace(last.orders, types=source.types | {"source": "string"})
    first = middle.orders.version.token
    source.apply([{"id": 0, "amount": 5}], [{"id": 1}])
    middle.run()
    last.run()
    assert [row["amount"] for row in last.rows()] == [5]

    roll_back(shop.main.context, middle.orders.name, first)
    assert [row["amount"] for row in middle.rows()] == [0, 1]
    assert last.run() == "upserted"
    assert [row["amount"] for row in last.rows()] == [0, 1]
    change = middle.orders.table.change
    state = shop.main.catalog.load_table(change.schema, change.identifier)
    assert consumed_versions(state.history()) == consumed_versions(state.history()[2:])
    assert middle.run() == "upserted", "what was undone is pulled again"
    assert [row["amount"] for row in middle.rows()] == [5]


@pytest.mark.modelled
def test_a_savepoint_knows_what_it_was_computed_from_when_all_before_it_expired(shop: Any) -> None:
    source = shop.table("source")
    source.build(ROWS[:2])
    middle = shop.consumer("middle", source)
    middle.run()
    source.apply([{"id": 0, "amount": 5}], [{"id": 1}])
    middle.run()
    name, context, then, rows = middle.orders.name, shop.main.context, middle.expected, middle.rows()
    middle.orders.compact()  # its newest commit trims, and says nothing of upstreams
    steps = [shop.main.log_of(lambda: make_savepoint(context, name, "kept"))]
    steps.append(shop.main.log_of(lambda: make_savepoint(context, name, "again")))
    noted_first = ["note_consumed", "create_tag", "create_tag"]
    assert steps == [noted_first, noted_first[1:]], "cut off in between, no savepoint lacks it"
    source.upsert([{"id": 7, "amount": 7}])
    middle.run()
    middle.orders.compact()
    expire_versions(context, name, Claims(), context.now_ms() + 1000)
    change = load_change(shop.main.catalog, middle.orders.table)
    assert len(change.history(change.tags["savepoint_kept"])) == 1
    drop_savepoint(context, name, "again")
    roll_back(context, name, "kept")
    assert (middle.rows(), middle.expected) == (rows, then)
    assert middle.run() == "upserted", "what came after it is pulled again"
    assert [row["id"] for row in middle.rows()] == [0, 7]
    drop_savepoint(context, name, "kept")
    left = load_change(shop.main.catalog, middle.orders.table)
    assert not [name for name in left.properties if name.startswith("arctic.consumed-at")]


@pytest.mark.modelled
def test_a_full_refresh_is_undone_and_redone(story: Story, shop: Any, schema: str) -> None:
    orders, context, catalog = story.orders, story.session.context, story.session.catalog
    orders.build(ROWS)
    orders.upsert([{"id": 1, "amount": 10}])
    before = story.note([ROWS[0], {"id": 1, "amount": 10}, *ROWS[2:]])
    make_savepoint(context, orders.name, "good")
    follower = shop.consumer("follower", orders, unique_key="id")
    follower.run()
    wide = orders.with_types({**orders.types, "note": "string"})
    wide.build([{"id": 7, "amount": 7, "note": "x"}])
    assert story.at(before) == story.versions[before]
    assert undo_full_refresh(context, orders.name).generation.number == 1
    assert orders.rows() == story.versions[before]
    assert follower.run() == "skipped"
    restore_table(context, orders.name, 2)
    assert [row["note"] for row in wide.rows()] == ["x"]
    follower.run()
    assert [row["id"] for row in follower.rows()] == [7]

    # The rows of an earlier generation come back as changes, too.
    roll_back(context, orders.name, "good")
    assert wide.rows() == [{**row, "note": None} for row in story.versions[before]]
    follower.run()
    assert [row["id"] for row in follower.rows()] == [0, 1, 2, 3]

    # Two more: the first generation is not the one before any more, but it has a savepoint.
    wide.build([])
    wide.build([])
    assert set(list_savepoints(catalog, orders.table)) == {"good"}
    assert [row["amount"] for row in story.at("good")] == [0, 10, 2, 3]
    drop_savepoint(context, orders.name, "good")
    with pytest.raises(VersionUnavailable, match="savepoints are: none"):
        roll_back(context, orders.name, "good")
    later = replace(context, now_ms=lambda: context.now_ms() + 30 * 24 * 3600 * 1000)
    inventory = take_inventory(catalog, "lake", schema)
    removals = find_leftovers(inventory, later.now_ms(), Retention()).removals
    assert remove_leftovers(later, "lake", removals, Retention()) == len(removals) >= 4
    assert (
        verify_schema(catalog, take_inventory(catalog, "lake", schema), later.now_ms(), lambda _: None) == []
    )
    with pytest.raises(ConfigError, match="no previous generation"):
        undo_full_refresh(context, orders.name)


@pytest.mark.modelled
def test_a_time_is_read_as_it_was_seen_then_whatever_was_undone(story: Story) -> None:
    orders, context, catalog = story.orders, story.session.context, story.session.catalog
    seen: list[tuple[int, list[Row]]] = []

    def look() -> None:
        seen.append((context.now_ms(), orders.rows()))

    for amounts in ([1], [1, 2]):
        orders.build([{"id": number, "amount": number} for number in amounts])
        look()
        orders.upsert([{"id": 9, "amount": len(amounts)}])
        look()
    for number in (1, 2, 1):  # undo, redo, undo
        assert undo_full_refresh(context, orders.name).generation.number == number
        look()
        orders.upsert([{"id": 10 + len(seen), "amount": 1}])
        look()

    def at(time_ms: int) -> list[Row]:
        return story.read(rows_at_time(catalog, orders.name, f"{iso(time_ms)}Z", "test"))

    for time_ms, rows in seen:
        assert at(time_ms) == rows
    orders.build([{"id": 5, "amount": 5}])  # only generation 1 is kept
    of_first = [*seen[:2], *seen[4:6], *seen[8:]]
    for time_ms, rows in seen:
        if (time_ms, rows) in of_first:
            assert at(time_ms) == rows
        else:
            with pytest.raises(VersionUnavailable, match="generation 2, which was current then, is gone"):
                at(time_ms)


def test_a_view_that_was_lost_is_made_again(story: Story, schema: str, warehouse: Path) -> None:
    orders, session = story.orders, story.session
    orders.build(ROWS)
    orders.upsert([{"id": 1, "amount": 10}])
    table, rows = orders.table, orders.rows()
    for damage in (
        f"DROP VIEW {orders.name.sql}",
        f"CREATE OR REPLACE VIEW {orders.name.sql} AS SELECT 1 AS one",
        f"ALTER VIEW {orders.name.sql} SET TBLPROPERTIES ('arctic.key' = '')",
    ):
        session.query(damage)
        assert replace(restore_table(session.context, orders.name), owner=table.owner) == table
        assert orders.rows() == rows
    folder = warehouse / schema / orders.name.identifier / "metadata"
    newest = max(folder.glob("[0-9]*.metadata.json"), key=lambda path: path.name)
    newest.write_bytes(newest.read_bytes()[:100])
    catalog = EmbeddedCatalog("lake", warehouse)  # which has not read it before
    inventory = take_inventory(catalog, "lake", schema)
    (finding,) = verify_schema(catalog, inventory, session.context.now_ms(), lambda _: None)
    assert (finding.kind, finding.where) == ("metadata", str(newest))
    assert finding.fix.startswith(f"dbt-arctic restore {schema}.orders")
    context = replace(session.context, catalog=catalog)
    with pytest.raises(CatalogUnavailable, match="move that file away"):
        restore_table(context, orders.name)
    newest.rename(newest.with_suffix(".damaged"))
    restore_table(context, orders.name)
    assert orders.rows() == rows
    session.query(f"DROP VIEW {orders.name.sql}")
    session.query(f"CREATE VIEW {orders.name.sql} AS SELECT 1 AS one")
    with pytest.raises(ConfigError, match="would replace it"):
        restore_table(session.context, orders.name)


@pytest.mark.modelled
def test_a_rollback_yields_to_whoever_commits_first(
    story: Story, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders, session = story.orders, story.session
    orders.build(ROWS)
    built = story.note(ROWS)
    orders.upsert([{"id": 1, "amount": 10}])
    other = orders.on(shop.session())
    left = [1]

    def meanwhile(step: str) -> None:
        if step == "fast_forward" and left[0]:
            left[0] -= 1
            other.upsert([{"id": 50 + left[0], "amount": 1}])

    session.statements.before = meanwhile
    roll_back(session.context, orders.name, built)
    assert orders.rows() == ROWS, "it was computed again, with what came in between"
    left[0] = 1
    monkeypatch.setattr(computed_write, "ATTEMPTS", 1)
    with pytest.raises(ConcurrentRun):
        roll_back(session.context, orders.name, built)
    session.statements.before = None
    change = orders.table.change
    state = session.catalog.load_table(change.schema, change.identifier)
    assert set(state.branches) == {"main"}


@pytest.mark.modelled
def test_a_rollback_keeps_what_the_base_does_not_take_as_null(story: Story) -> None:
    orders, session = story.orders, story.session
    orders.build(ROWS[:1])
    before = story.note(ROWS[:1])
    orders.upsert([{"id": 0, "amount": None}])
    null = story.note([{"id": 0, "amount": None}])
    story.roll_back(before)
    table = orders.table
    properties = "'arctic.required' = '[\"amount\"]'"
    session.query(f"ALTER VIEW {table.name.sql} SET TBLPROPERTIES ({properties})")
    with pytest.raises(ConstraintBroken):
        roll_back(session.context, orders.name, null)
    assert orders.rows() == ROWS[:1]


@pytest.mark.modelled
@pytest.mark.parametrize("sequence_by", [None, "seq"])
def test_a_rollback_to_other_types_keeps_each_value_or_is_refused(shop: Any, sequence_by: str | None) -> None:
    then = {"id": "decimal(10,3)", "seq": "int", "amount": "decimal(10,4)", "note": "int"}
    order = {"sequence_by": sequence_by} if sequence_by else {}
    orders = shop.table("orders", then, **order)
    rows = [
        {"id": "1.001", "seq": 1, "amount": "1.0049", "note": 5},
        {"id": "1.002", "seq": 1, "amount": "0.0000", "note": None},
    ]
    orders.build(rows)
    version = orders.version.token

    def rebuilt(**types: str) -> Any:
        made = orders.with_types({**then, **types})
        made.build([{"id": "7", "seq": 1, "amount": "7", "note": None}])
        return made

    for column, type_ in (("id", "decimal(10,2)"), ("amount", "decimal(9,4)"), ("note", "boolean")):
        made = rebuilt(**{column: type_})
        before, commits = made.rows(), made.commits()
        with pytest.raises(VersionUnavailable, match=f"{column} was stored as {re.escape(then[column])} in"):
            roll_back(shop.main.context, orders.name, version)
        assert (made.rows(), made.commits()) == (before, commits)
        undo_full_refresh(shop.main.context, orders.name)
    made = rebuilt(id="string", amount="decimal(12,6)", note="string", seq="bigint")
    roll_back(shop.main.context, orders.name, version)
    assert made.rows() == [
        {"id": "1.001", "seq": 1, "amount": "1.004900", "note": "5"},
        {"id": "1.002", "seq": 1, "amount": "0.000000", "note": None},
    ]


@pytest.mark.modelled
def test_a_table_with_a_sequence_is_verified_read_back_and_restored(shop: Any, schema: str) -> None:
    orders = shop.table(sequence_by="amount")
    story = Story(orders)
    orders.build(ROWS)
    built = story.note(ROWS)
    orders.apply([{"id": 1, "amount": 10}], [{"id": 2, "amount": 20}])
    orders.compact()  # the delete stays behind
    orders.upsert([{"id": 1, "amount": 5}, {"id": 2, "amount": 6}])
    late = story.note([ROWS[0], {"id": 1, "amount": 10}, ROWS[3]])
    assert [story.at(token) for token in (built, late)] == [story.versions[built], story.versions[late]]
    catalog, context = story.session.catalog, story.session.context
    assert (
        verify_schema(catalog, take_inventory(catalog, "lake", schema), context.now_ms(), lambda _: None)
        == []
    )
    orders.build([])
    undo_full_refresh(context, orders.name)
    assert orders.rows() == story.versions[late]
    assert orders.table.sequence_by == "amount"
