"""What a report gathers: from the logs alone, and what cannot be read hides nothing else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import astuple, replace
from typing import Any

import pytest

from dbt_arctic.auto.timings import note
from dbt_arctic.catalog.api import RelationEntry, TableState, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.compaction.settings import CompactionSettings
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.operations import Record
from dbt_arctic.maintenance.report import Refreshed, Report, collect_report
from dbt_arctic.store.context import Context
from tests.unit.compaction.conftest import MINUTE, NOW, Log, Orders

ORDERS, EVENTS = Name("lake", "shop", "orders"), Name("lake", "shop", "events")


class Catalog(OneCatalog):
    """``orders``, the plain ``events``, and a table of operations. No question reads a manifest."""

    def __init__(self, orders: Orders, records: Sequence[Record] = (), damaged: bool = False) -> None:
        table = orders.table
        events = Log("events")
        for minutes_ago in (50, 40):
            events.commit(minutes_ago, rows=10, files=5, size=1000)
        operations = Log("arctic_operations")
        operations.commit(1, rows=1, files=1, size=1000)
        base = replace(orders.base.state, properties={"arctic.id": "base-1", "arctic.of": "orders"})
        change = replace(orders.change.state, properties={"arctic.id": "change-1", "arctic.of": "orders"})
        self.tables = {state.name: state for state in (base, change, events.state, operations.state)}
        self.views = {"orders": ViewState("shop", "orders", table.to_properties(), (), "")}
        self.records, self.damaged = records, damaged

    def list_schemas(self) -> list[str]:
        return ["shop"]

    def list_names(self, schema: str) -> list[RelationEntry]:
        tables = [RelationEntry("shop", name, "table") for name in self.tables]
        return [*tables, *(RelationEntry("shop", name, "view") for name in self.views)]

    def load_table(self, schema: str, name: str) -> TableState | None:
        return self.tables.get(name)

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self.views.get(name)

    def read_rows(
        self, schema: str, name: str, columns: Sequence[str], snapshot_id: int | None = None
    ) -> list[tuple[Any, ...]]:
        if self.damaged:
            raise CatalogUnavailable("a file of it is gone")
        at = [dt.datetime.fromtimestamp(one.at_ms / 1000, dt.timezone.utc) for one in self.records]
        return [(time, *astuple(one)[1:]) for time, one in zip(at, self.records, strict=True)]


def record(minutes_ago: float, table: Name = ORDERS, seconds: float = 20.0) -> Record:
    numbers = (2.0, seconds, 2.0, 1.0, 10, 2, 1000, 900)
    at_ms = int(NOW - minutes_ago * MINUTE)
    return Record(at_ms, "run", "major", table.dotted, "all", "due", "compacted", "", *numbers)


def report_of(catalog: Catalog, hours: float = 2, now_ms: int = NOW, **options: Any) -> Report:
    context = Context(
        catalog=catalog,  # type: ignore[arg-type]
        run=lambda step, sql, table=None: pytest.fail("a report runs no statement"),
        query_schema=lambda sql: pytest.fail("a report runs no statement"),
        query=lambda sql: pytest.fail("a report runs no statement"),
        now_ms=lambda: now_ms,
    )
    since = NOW - int(hours * 60 * MINUTE)
    settings = CompactionSettings()
    return collect_report(
        context, "lake", ["shop"], ORDERS, since, lambda *_: settings, lambda name: name == EVENTS, **options
    )


@pytest.fixture
def shop() -> Orders:
    orders = Orders()
    orders.build()
    first = orders.upsert(60, rows=200)
    orders.merge(45, first)
    orders.upsert(30, rows=150)
    return orders


def test_what_is_due_takes_as_long_as_it_took(shop: Orders) -> None:
    rough = report_of(Catalog(shop)).due
    learned = report_of(Catalog(shop, [record(45)])).due
    assert [one.kind for one in rough] == [one.kind for one in learned] == ["trim", "major"]
    assert learned[1].cost_s == pytest.approx(10 * rough[1].cost_s)
    assert learned[0] == rough[0], "of a trim nothing is known yet"


def test_the_past_of_each_table_and_its_commits(shop: Orders) -> None:
    found = report_of(Catalog(shop))
    past = {one.name: one for one in found.past}
    assert [point.pending_rows for point in past[ORDERS].points] == [0, 200, 0, 150, 150]
    assert [point.files for point in past[EVENTS].points] == [5, 10, 10]
    counts: dict[str, int] = {}
    for one in found.writes:
        counts[one.kind] = counts.get(one.kind, 0) + one.count
    assert counts == {"upsert": 2, "compaction": 1, "write": 3}
    assert all(one.at_ms % found.writes_every_ms == 0 for one in found.writes)


def test_how_automatic_models_were_refreshed(shop: Orders) -> None:
    told = [note("full", NOW - 11 * MINUTE), note("incremental", NOW - 6 * MINUTE, 30)]
    for minutes_ago, one in zip((10, 5), told, strict=True):
        shop.change.commit(minutes_ago, **{name.removeprefix("arctic."): text for name, text in one.items()})
    assert report_of(Catalog(shop)).refreshes == [
        Refreshed(NOW - 10 * MINUTE, ORDERS, "full", 60.0, None),
        Refreshed(NOW - 5 * MINUTE, ORDERS, "incremental", 60.0, 30),
    ]


def test_what_was_done_before_or_was_not_requested_is_left_out(shop: Orders) -> None:
    catalog = Catalog(shop, [record(45), record(500), record(50, EVENTS)])
    assert [one.at_ms for one in report_of(catalog).operations] == [NOW - 45 * MINUTE, NOW - 50 * MINUTE]
    only = report_of(catalog, wanted=lambda name: name == EVENTS)
    assert [one.table_name for one in only.operations] == [EVENTS.dotted]
    assert [seen.name for seen in only.tables] == [EVENTS]
    assert [past.name for past in only.past] == [EVENTS]


def test_a_table_of_operations_that_cannot_be_read_hides_nothing_else(shop: Orders) -> None:
    found = report_of(Catalog(shop, damaged=True))
    assert found.unreadable == [("lake.shop.arctic_operations", "a file of it is gone")]
    assert [one.kind for one in found.due] == ["trim", "major"]
    assert len(found.tables) == 3


def test_the_holder_of_versions_is_reported(shop: Orders) -> None:
    catalog = Catalog(shop)
    assert report_of(catalog).held == []
    base = shop.base.state.name
    catalog.tables[base] = replace(catalog.tables[base], tags={"savepoint_opening": 1})
    (held,) = report_of(catalog).held
    assert (held.name, held.versions) == (ORDERS, 5)
    assert [hold.holder for hold in held.holds] == ["savepoint opening"]


def test_neither_rows_nor_manifests_are_read_for_it(shop: Orders) -> None:
    """A week on, a plan of the expiry would ask what is pending; and a manifest may be damaged."""
    catalog, base = Catalog(shop), shop.base.state.name
    catalog.tables[base] = replace(catalog.tables[base], tags={"savepoint_opening": 1})
    later = report_of(catalog, now_ms=NOW + 8 * 24 * 60 * MINUTE)
    assert ([one.name for one in later.held], later.unreadable) == ([ORDERS], [])
