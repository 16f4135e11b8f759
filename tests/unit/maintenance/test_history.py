"""Versions and commits as a person names and reads them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.catalog.api import TableState, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.cli.options import duration_ms
from dbt_arctic.cli.output import shown_time
from dbt_arctic.errors import ArcticError, ConfigError, DamagedKeyedTable, VersionUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.savepoint import tag_of
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.generations import load_generation
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.restore import restore_table
from dbt_arctic.maintenance.timeline import timeline
from dbt_arctic.maintenance.versions import as_time, resolve, rows_at_time, version_at
from dbt_arctic.store.context import Context
from tests.unit.maintenance.conftest import Orders


class Catalog(OneCatalog):
    """Answers from values. The first listing of a schema may be overtaken: names without a relation."""

    def __init__(
        self, *tables: TableState, view: ViewState | None = None, gone: tuple[str, ...] = ()
    ) -> None:
        self.tables = {table.name: table for table in tables}
        self.view = view
        self.gone = gone

    def has_views(self) -> bool:
        return True

    def list_names(self, schema: str) -> list[Any]:
        from dbt_arctic.catalog.api import RelationEntry

        names = [*self.tables, *self.gone]
        return [RelationEntry(schema, name, "table") for name in names]

    def load_table(self, schema: str, name: str) -> TableState | None:
        return self.tables.get(name)

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self.view


def catalog_of(orders: Orders, *tables: TableState, **properties: str) -> Any:
    view = replace(orders.view, properties={**orders.view.properties, **properties})
    return Catalog(*tables, view=view)


@pytest.fixture
def refreshed() -> tuple[Orders, list[TableState]]:
    """Generation 1 with a commit each second from 1 s on, generation 2 from 11 s on."""
    orders = Orders(generation=2, previous=1)
    old = [orders.side("base", 1, "b"), orders.side("change", 1, "b", "a10", "a20")]
    new = [orders.side("base", 2, "b"), orders.side("change", 2, "b", "a30")]
    for state in new:
        moved = tuple(
            replace(commit, timestamp_ms=commit.timestamp_ms + 10_000) for commit in state.snapshots
        )
        new[new.index(state)] = replace(state, snapshots=moved)
    return orders, [*old, *new]


@pytest.mark.parametrize(
    ("at_ms", "expected"),
    [(1000, "1.1.1"), (2500, "1.2.1"), (10_999, "1.3.1"), (11_000, "2.1.1"), (99_000, "2.2.1")],
)
def test_a_time_is_the_last_commit_up_to_then(refreshed: Any, at_ms: int, expected: str) -> None:
    orders, tables = refreshed
    assert version_at(catalog_of(orders, *tables), orders.table, at_ms).token == expected


def test_a_time_before_everything_is_not_on_record(refreshed: Any) -> None:
    orders, tables = refreshed
    with pytest.raises(VersionUnavailable, match="1970-01-01 00:00:01 UTC"):
        version_at(catalog_of(orders, *tables), orders.table, 999)


def switched(shown: dict[int, int]) -> dict[str, str]:
    """The properties of a view that has shown generations since these times."""
    return {f"arctic.shown-{at << 20}": f'[{one}, "base-{one}", "change-{one}"]' for at, one in shown.items()}


def test_after_an_undo_a_time_is_of_the_generation_that_was_shown_then(refreshed: Any) -> None:
    _, tables = refreshed
    undone = Orders(generation=1, previous=2)
    catalog = catalog_of(undone, *tables, **switched({1100: 1, 11_100: 2, 20_000: 1}))
    found = [version_at(catalog, undone.table, at).token for at in (2500, 12_500, 20_001)]
    assert found == ["1.2.1", "2.2.1", "1.3.1"]


def test_after_a_redo_a_time_is_of_the_generation_that_was_shown_then(refreshed: Any) -> None:
    """Generation 1 was shown again between 20 s and 30 s, and generation 3, which is gone, until 40 s."""
    orders, tables = refreshed
    shown = {1100: 1, 11_100: 2, 20_000: 1, 30_000: 2, 35_000: 3, 40_000: 2}
    catalog = catalog_of(orders, *tables, **switched(shown))
    times = {1000: "1.1.1", 2500: "1.2.1", 11_000: "2.1.1", 19_999: "2.2.1"}
    times |= {20_000: "1.3.1", 29_999: "1.3.1", 30_000: "2.2.1", 40_000: "2.2.1"}
    assert {at: version_at(catalog, orders.table, at).token for at in times} == times
    with pytest.raises(VersionUnavailable, match="generation 3, which was current then, is gone"):
        version_at(catalog, orders.table, 36_000)
    with pytest.raises(VersionUnavailable, match="1970-01-01 00:00:01 UTC"):
        version_at(catalog, orders.table, 999)


def test_of_two_switches_at_one_moment_the_one_that_gave_way_was_never_current(refreshed: Any) -> None:
    orders, tables = refreshed
    catalog = catalog_of(orders, *tables, **switched({1100: 1, 11_100: 2, 11_101: 3}))
    assert version_at(catalog, orders.table, 12_500).token == "2.2.1"


def test_a_version_is_a_token_a_savepoint_a_time_or_now(refreshed: Any) -> None:
    orders, tables = refreshed
    tables[0] = replace(tables[0], tags={"savepoint_good": 1, "savepoint_half": 1})
    tables[1] = replace(tables[1], tags={"savepoint_good": 2})
    catalog = catalog_of(orders, *tables)
    for text, expected in (
        ("1.2.1", "1.2.1"),
        ("good", "1.2.1"),
        ("1970-01-01 00:00:12", "2.2.1"),
        (" current ", "2.2.1"),
    ):
        assert resolve(catalog, orders.table, text, "here").token == expected
    with pytest.raises(VersionUnavailable, match="its savepoints are: good"):
        resolve(catalog, orders.table, "half", "here")
    with pytest.raises(ConfigError, match="not a time"):
        rows_at_time(catalog, orders.table.name, "good", "here")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1970-01-02", 86_400_000), ("1970-01-01T00:00:00Z", 0), ("1970-01-01 00:00:01.500", 1500), ("x", None)],
)
def test_times_are_utc_where_they_say_nothing_else(text: str, expected: int | None) -> None:
    assert as_time(text) == expected


def test_a_time_is_taken_back_as_it_is_shown() -> None:
    assert as_time(shown_time(1_795_000_000_123)) == 1_795_000_000_123


@pytest.mark.parametrize("name", ["1.2.3", "", "a b", "current", "NOW", "2026-01-31", "a`b", "é", "a" * 101])
def test_a_savepoint_has_a_name_that_is_nothing_else(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid name"):
        tag_of(name)


def test_commits_are_classified_by_what_they_did(orders: Orders) -> None:
    base = orders.side("base", 1, "b", "m10,20", "r", "x")
    change = orders.side("change", 1, "b", "a10", "a20", "d", "r", "x")
    back = replace(change.snapshots[-1], snapshot_id=7, parent_id=6, timestamp_ms=7000)
    back = replace(back, summary={"arctic.txn": "30", "arctic.rollback": "1.2.1", "added-records": "4"})
    change = replace(change, snapshots=(*change.snapshots, back), current_snapshot_id=7)
    entries = timeline(orders.table, base, change, {(1, 2): ["good"]})
    assert [(entry.time_ms, entry.kind) for entry in entries] == [
        (7000, "rollback to 1.2.1"),
        (6000, "manual"),
        (5000, "rewrite"),
        (4000, "manual"),
        (4000, "trim"),
        (3000, "rewrite"),
        (3000, "upsert"),
        (2000, "compaction of 2"),
        (2000, "upsert"),
        (1000, "build"),
    ]
    assert entries[0].rows == 4
    assert [entry.savepoints for entry in entries if entry.savepoints] == [("good",)]
    # By its clock the compaction was before what it merged: a version never says so.
    assert [str(entry.version) for entry in entries if entry.time_ms == 2000] == ["1.2.1", "1.2.1"]


def test_a_commit_whose_base_was_expired_has_no_version(orders: Orders) -> None:
    base = orders.side("base", 1, ".", "m10")
    entries = timeline(orders.table, base, orders.side("change", 1, "b", "a10"), {})
    assert [entry.version for entry in entries if entry.kind == "build"] == [None]


def test_a_generation_is_known_by_its_side_tables(orders: Orders) -> None:
    name = Name("lake", "shop", "orders")
    base, change = orders.sides(1)
    assert load_generation(Catalog(base, change), name, "orders", 1) == orders.table  # type: ignore[arg-type]

    def refused(*tables: TableState) -> ArcticError:
        with pytest.raises((VersionUnavailable, DamagedKeyedTable)) as caught:
            load_generation(Catalog(*tables), name, "orders", 1)  # type: ignore[arg-type]
        return caught.value

    assert "does not exist" in refused(base).why
    assert "not created by dbt-arctic" in refused(replace(base, properties={}), change).why
    assert "was interrupted" in refused(base, replace(change, current_snapshot_id=None)).why
    without = {key: value for key, value in base.properties.items() if key != "arctic.key"}
    assert refused(replace(base, properties=without), change).code == "AR-401"


def test_what_disappears_while_a_schema_is_read_is_left_out(orders: Orders) -> None:
    catalog: Any = Catalog(*orders.sides(1), gone=("dropped",))
    inventory = take_inventory(catalog, "lake", "shop")
    assert set(inventory.tables) == {"orders__base_1", "orders__change_1"}
    assert not inventory.has_unreadable_views


@pytest.mark.parametrize(("text", "expected"), [("90s", 90_000), ("24h", 86_400_000), (" 7 d", 604_800_000)])
def test_durations(text: str, expected: int) -> None:
    assert duration_ms(None, None, text) == expected  # type: ignore[arg-type]


def test_a_version_reads_as_one() -> None:
    assert str(Version(1, 2, 3)) == "1.2.3"


def test_a_build_that_was_cut_off_is_not_what_a_lost_view_showed(orders: Orders) -> None:
    ran: list[str] = []
    cut_off = orders.side("change", 2)
    cut_off = replace(cut_off, properties={**cut_off.properties, "write.metadata.metrics.default": "none"})
    catalog: Any = Catalog(*orders.sides(1), orders.side("base", 2), cut_off)

    def run(step: str, sql: str, table: Any = None) -> int | None:
        ran.append(step)
        catalog.view = replace(orders.view, properties=table.to_properties())
        return None

    context = Context(catalog, run, list, list)  # type: ignore[arg-type] # no query is run
    assert restore_table(context, orders.table.name) == orders.table
    assert restore_table(context, orders.table.name, 2).generation.number == 2
    assert ran == ["publish_view", "publish_view"]
    with pytest.raises(DamagedKeyedTable, match="no generation of"):
        restore_table(Context(Catalog(), run, list, list), orders.table.name)  # type: ignore[arg-type]
