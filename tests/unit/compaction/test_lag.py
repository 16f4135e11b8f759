"""How far a table is behind each upstream: from the versions that its newest commit says it consumed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.catalog.api import Snapshot, TableState, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.compaction.lag import Lag, Upstreams
from dbt_arctic.keyed.version import Consumed, encode_consumed
from tests.unit.compaction.conftest import MINUTE, NOW, Log, Orders

ORDERS, EVENTS = "lake.shop.orders", "lake.shop.events"


class Catalog(OneCatalog):
    """The keyed table ``orders``, and the plain one ``events`` where there is one."""

    def __init__(self, orders: Orders, events: TableState | None = None) -> None:
        change = replace(orders.change.state, properties={"arctic.id": "change-1"})
        self.tables = {change.name: change, **({} if events is None else {"events": events})}
        self.views = {"orders": ViewState("shop", "orders", orders.table.to_properties(), (), "")}
        self.looked = 0

    def load_table(self, schema: str, name: str) -> TableState | None:
        self.looked += 1
        return self.tables.get(name)

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self.views.get(name)


def lags(catalog: Catalog, **consumed: Consumed) -> list[Lag]:
    log = Log("copy")
    named = {name.replace("__", "."): one for name, one in consumed.items()}
    log.commit(1, rows=1, consumed=encode_consumed(named))
    return Upstreams(catalog).lags(log.state)  # type: ignore[arg-type]


def test_the_oldest_unconsumed_commit_determines_the_age(orders: Orders) -> None:
    orders.upsert(50, rows=5)
    orders.upsert(30, rows=5)
    orders.upsert(25, rows=0)
    orders.trim(20, rows=10)
    orders.change.commit(10, "replace")
    catalog = Catalog(orders)
    built, first, second = 1, 2, 3
    for read, behind in ((built, [50, 30]), (first, [30]), (second, []), (4, [])):
        (lag,) = lags(catalog, lake__shop__orders=Consumed("change-1", f"1.{read}.1"))
        since = NOW - behind[0] * MINUTE if behind else None
        rows = 5 * len(behind)
        assert lag == Lag(ORDERS, since, commits=len(behind), rows=rows, read=str(read), end="6"), read


def test_the_commit_of_an_erasure_contains_what_it_removed_from_the_log(orders: Orders) -> None:
    def behind(read: int) -> Lag:
        (lag,) = lags(catalog, lake__shop__orders=Consumed("change-1", f"1.{read}.1"))
        return lag

    first, second = ((NOW - minutes * MINUTE) << 20 for minutes in (50, 30))
    erased = Snapshot(7, 6, 7, NOW, "append", {"arctic.log": f"[[6,0],[5,{second}],[4,{first}],[3,0]]"})
    catalog = Catalog(orders)
    catalog.tables = {
        name: replace(state, snapshots=(erased,), current_snapshot_id=7, branches={"main": 7})
        for name, state in catalog.tables.items()
    }
    assert [behind(read) for read in (7, 6, 5, 4, 3)] == [
        *[Lag(ORDERS, read=read, end="7") for read in ("7", "6", "5")],
        Lag(ORDERS, NOW - 30 * MINUTE, commits=1, rows=None, read="4", end="7"),
        Lag(ORDERS, NOW - 50 * MINUTE, commits=2, rows=None, read="3", end="7"),
    ]
    assert behind(2).lost == "the version that was read last has expired"


@pytest.mark.parametrize(
    ("table_id", "version", "lost"),
    [
        ("change-0", "1.1.1", "it was rebuilt since then"),
        ("change-1", "1.99.1", "the version that was read last has expired"),
        ("change-1", "7", "it has become a keyed table"),
    ],
)
def test_lost_rows_are_reported(orders: Orders, table_id: str, version: str, lost: str) -> None:
    (found,) = lags(Catalog(orders), lake__shop__orders=Consumed(table_id, version))
    read = version.split(".")[len(version) > 1]
    assert found == Lag(ORDERS, None, lost, read=read, end="1")


def test_a_plain_upstream_that_was_replaced_has_all_of_its_commits_since(orders: Orders) -> None:
    log = Log("events")
    log.commit(60, rows=1)
    log.commit(40, rows=3)
    log.commit(30, rows=2)
    old, replaced, later = log.state.snapshots
    state = replace(log.state, snapshots=(old, replace(replaced, parent_id=None), later))

    def behind(version: str, state: TableState = state) -> Lag:
        return lags(Catalog(orders, state), lake__shop__events=Consumed("/", version))[0]

    assert behind("1") == Lag(EVENTS, NOW - 40 * MINUTE, commits=2, rows=5, read="1", end="3")
    # Not the rows of a table that was rolled back: those that are gone have no commit.
    back = replace(state, current_snapshot_id=1)
    assert behind("3", back).lost == "the version that was read last has expired"


def test_the_delay_of_a_plain_upstream_is_that_of_its_snapshots(orders: Orders) -> None:
    log = Log("events")
    log.commit(60, rows=1)
    log.commit(40, rows=3)
    log.commit(20, "replace", rows=4)
    catalog = Catalog(orders, log.state)

    def behind(version: str, table_id: str = "/") -> Any:
        return lags(catalog, lake__shop__events=Consumed(table_id, version))[0]

    assert behind("1") == Lag(EVENTS, NOW - 40 * MINUTE, commits=1, rows=3, read="1", end="3")
    assert behind("2") == Lag(EVENTS, read="2", end="3")
    found = Lag(EVENTS, NOW - 60 * MINUTE, commits=2, rows=4, end="3")
    assert behind("0") == found, "it was read when it had no rows"
    assert lags(Catalog(orders), lake__shop__events=Consumed("/", "1"))[0].lost == "it no longer exists"


def test_what_an_automatic_model_was_computed_by_is_no_upstream(orders: Orders) -> None:
    assert lags(Catalog(orders), fingerprint=Consumed("abc", "")) == []


def test_a_topic_is_not_looked_for_in_the_catalog(orders: Orders) -> None:
    # A table of the catalog may have the name of the source.
    topic = Consumed("topic:abc", "offsets:5,7")
    assert lags(Catalog(orders), kafka__shop__orders=topic) == []
