"""The history of a table from its logs equals what was measured at each of these times."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from dbt_arctic.catalog.api import TableState, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.compaction.lag import Upstreams
from dbt_arctic.compaction.series import LagPoint, Point, lag_series, state_at, table_series
from dbt_arctic.compaction.status import measure_keyed
from dbt_arctic.keyed.version import Consumed, encode_consumed
from tests.unit.compaction.conftest import MB, MINUTE, NOW, Files, Log, Orders


def measured(orders: Orders, minutes_ago: float) -> Point:
    """What `status` would have said then."""
    at_ms = NOW - int(minutes_ago * MINUTE)
    one = measure_keyed(Files(), orders.table, orders.base.state, orders.change.state, at_ms)  # type: ignore[arg-type]
    return Point(
        at_ms,
        one.pending.rows,
        one.pending_ratio,
        one.read_amplification,
        one.files,
        one.size_bytes,
    )


@pytest.mark.parametrize("seed", range(20))
def test_each_point_is_what_was_measured_then(seed: int) -> None:
    chance = random.Random(seed)
    orders, pending, waiting = Orders(), [], []
    orders.build(minutes_ago=1000)
    expected = {NOW - 1000 * MINUTE: measured(orders, 1000)}
    for minutes_ago in range(999, 979, -1):
        step = chance.choice(["upsert", "upsert", "merge", "trim"])
        if step == "merge" and pending:
            orders.merge(minutes_ago, *pending, hidden=len(pending))
            waiting, pending = waiting + pending, []
        elif step == "trim" and waiting:
            orders.trim(minutes_ago, rows=10 * len(waiting), files=2 * len(waiting), size=MB * len(waiting))
            waiting = []
        else:
            pending.append(orders.upsert(minutes_ago))
        expected[NOW - minutes_ago * MINUTE] = measured(orders, minutes_ago)
    expected[NOW] = measured(orders, 0)
    told = table_series(
        orders.table.name, orders.table, orders.base.state, orders.change.state, NOW - 2000 * MINUTE, NOW
    )
    assert {point.at_ms: point for point in told} == expected


def test_the_series_begins_with_what_was_there_already(orders: Orders) -> None:
    orders.upsert(50)
    since = NOW - 20 * MINUTE
    told = table_series(orders.table.name, orders.table, orders.base.state, orders.change.state, since, NOW)
    assert [(point.at_ms, point.pending_rows) for point in told] == [(since, 10), (NOW, 10)]


def test_what_an_expired_log_does_not_contain_is_left_out(orders: Orders) -> None:
    for minutes_ago in (50, 40, 30):
        orders.upsert(minutes_ago)
    orders.change.expire(2)
    told = table_series(
        orders.table.name, orders.table, orders.base.state, orders.change.state, NOW - 60 * MINUTE, NOW
    )
    assert [(point.pending_rows, point.files) for point in told] == [(None, 6), (None, 8), (None, 8)]


def test_of_many_commits_some_are_shown_the_newest_among_them(orders: Orders) -> None:
    for minutes_ago in range(500, 0, -1):
        orders.upsert(minutes_ago, rows=1)
    told = table_series(
        orders.table.name, orders.table, orders.base.state, orders.change.state, NOW - 10000 * MINUTE, NOW
    )
    assert len(told) <= 60
    assert told[-1].pending_rows == told[-2].pending_rows == 500


def test_a_plain_table_has_files_and_a_read_cost() -> None:
    log = Log("events")
    for minutes_ago in (50, 40, 30):
        log.commit(minutes_ago, rows=10, files=5, size=MB)
    name = Orders().table.name
    unpartitioned = replace(log.state, partitioning=())
    told = table_series(name, None, unpartitioned, None, NOW - 60 * MINUTE, NOW)
    assert [(point.files, point.pending_rows) for point in told] == [(5, 0), (10, 0), (15, 0), (15, 0)]
    assert told[-1].read_cost > told[0].read_cost > 1


def test_a_state_of_then_ends_with_the_commit_of_then(orders: Orders) -> None:
    orders.upsert(50)
    orders.upsert(30)
    state = orders.change.state
    then = state_at(state, NOW - 40 * MINUTE)
    assert then is not None
    assert [one.snapshot_id for one in then.history()] == [2, 1]
    assert state_at(state, NOW - 99999 * MINUTE) is None


class Catalog(OneCatalog):
    def __init__(self, orders: Orders) -> None:
        self.change = replace(orders.change.state, properties={"arctic.id": "change-1"})
        self.view = ViewState("shop", "orders", orders.table.to_properties(), (), "")

    def load_table(self, schema: str, name: str) -> TableState | None:
        return self.change if name == self.change.name else None

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self.view if name == "orders" else None


def consumer(*reads: tuple[float, int]) -> TableState:
    """A table that at some minutes read up to a snapshot of orders."""
    log = Log("copy")
    for minutes_ago, snapshot in reads:
        read = Consumed("change-1", f"1.{snapshot}.1")
        log.commit(minutes_ago, rows=1, consumed=encode_consumed({"lake.shop.orders": read}))
    return log.state


def test_lag_grows_from_the_first_commit_that_was_not_read(orders: Orders) -> None:
    orders.upsert(90)
    orders.upsert(70)
    orders.upsert(20)
    copy = consumer((100, 1), (60, 3))
    upstreams = Upstreams(Catalog(orders))  # type: ignore[arg-type]
    told = lag_series(upstreams, copy, NOW - 200 * MINUTE, NOW)
    assert told == [
        LagPoint(NOW - 100 * MINUTE, 0.0),
        LagPoint(NOW - 90 * MINUTE, 0.0),
        LagPoint(NOW - 60 * MINUTE - 1, 30 * 60 - 0.001),
        LagPoint(NOW - 60 * MINUTE, 0.0),
        LagPoint(NOW - 20 * MINUTE, 0.0),
        LagPoint(NOW, 20 * 60),
    ]


def test_lag_behind_a_generation_that_is_gone_is_not_known(orders: Orders) -> None:
    log = Log("copy")
    log.commit(50, rows=1, consumed=encode_consumed({"lake.shop.orders": Consumed("change-0", "1.1.1")}))
    upstreams = Upstreams(Catalog(orders))  # type: ignore[arg-type]
    assert [point.seconds for point in lag_series(upstreams, log.state, NOW - 60 * MINUTE, NOW)] == [
        None,
        None,
    ]
