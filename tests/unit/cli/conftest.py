"""A report as an operator may meet it: hostile names, failures with paths in them, charts of all kinds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt_arctic.adapter.run_results import Refresh, RunResults
from dbt_arctic.compaction.lag import Lag
from dbt_arctic.compaction.metrics import SideMetrics
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.series import LagPoint, Point
from dbt_arctic.compaction.status import Pending, TableStatus
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.operations import Record
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.maintenance.expire_plan import Hold
from dbt_arctic.maintenance.overview import TableOverview
from dbt_arctic.maintenance.report import HeldVersions, Refreshed, Report, TableHistory, Unreadable, Writes

NOW = 1_800_000_000_000
MINUTE = 60_000
HOUR = 60 * MINUTE
MB = 1024 * 1024
HOSTILE = "<img src=x onerror=alert(1)> \"'&{{ 7 * 7 }}</script>"

ORDERS = Name("lake", "shop", "orders")
EVENTS = Name("lake", "shop", HOSTILE)


def record(**changes: object) -> Record:
    done = Record(
        at_ms=NOW - 30 * MINUTE,
        run="1:dbt-arctic compact",
        kind="major",
        table_name=ORDERS.dotted,
        scope="all",
        why="20% of the rows are pending",
        outcome="compacted",
        detail="2 commits merged",
        estimated_s=2.0,
        seconds=13.5,
        read_cost_before=4.3,
        read_cost_after=1.2,
        files_before=40,
        files_after=8,
        bytes_before=9 * MB,
        bytes_after=8 * MB,
    )
    return replace(done, **changes)  # type: ignore[arg-type]


@pytest.fixture
def report() -> Report:
    orders = TableStatus(
        name=ORDERS,
        table=KeyedTable(
            ORDERS,
            Generation(1, "base-1", "change-1"),
            ("id",),
            Layout(4, "id", (), ("id",)),
            (Column("id", "bigint"),),
        ),
        base=SideMetrics(4, 8 * MB, 2000),
        change=SideMetrics(36, MB, 400),
        pending=Pending(9, 400, NOW - HOUR),
        ideal_files=4,
        written_ms=NOW - MINUTE,
        measured_ms=NOW,
    )
    events = TableStatus(EVENTS, None, SideMetrics(60, MB, 1000), SideMetrics(), Pending(), 1, NOW, NOW)
    due = Operation("major", ORDERS, "20% of the rows are pending", 2.0, 1.5)
    return Report(
        since_ms=NOW - 24 * HOUR,
        now_ms=NOW,
        tables=[
            TableOverview(EVENTS, events),
            TableOverview(ORDERS, orders, lags=(Lag("lake.raw.feed", NOW - 2 * HOUR),), due=(due,)),
            TableOverview(Name("lake", "shop", "broken"), problem="its metadata cannot be read"),
        ],
        due=[due],
        past=[
            TableHistory(
                ORDERS,
                [Point(NOW - 2 * HOUR, None, None, 1.0, 4, 8 * MB), Point(NOW, 400, 0.2, 4.3, 40, 9 * MB)],
                [LagPoint(NOW - 2 * HOUR, 0.0), LagPoint(NOW, 7200.0)],
            ),
            TableHistory(
                EVENTS, [Point(NOW - HOUR, 0, 0.0, 58.8, 60, MB), Point(NOW, 0, 0.0, 58.8, 60, MB)], []
            ),
        ],
        writes=[Writes(NOW - 2 * HOUR, "upsert", 8), Writes(NOW - HOUR, "compaction", 1)],
        writes_every_ms=HOUR,
        refreshes=[
            Refreshed(NOW - 2 * HOUR, ORDERS, "incremental", 2.5, 1200),
            Refreshed(NOW - HOUR, EVENTS, "full", 20.0, None),
        ],
        operations=[
            record(),
            record(
                kind="merge",
                table_name=EVENTS.dotted,
                outcome="failed",
                detail="AR-201 no file /data/lake/shop/part-1.parquet password=hunter2\n  where: x",
            ),
        ],
        held=[
            HeldVersions(
                ORDERS,
                7,
                (Hold(f"lake.shop.{HOSTILE}", "has not read newer versions", NOW - 9 * 24 * HOUR),),
            )
        ],
        unreadable=[
            Unreadable("lake.shop.broken", "the file s3://mine/lake/broken/v1.metadata.json is gone")
        ],
    )


@pytest.fixture
def results() -> RunResults:
    return RunResults(
        "run",
        "2027-01-15T08:00:00.123456Z",
        31.5,
        (
            Refresh("orders", "success", 1.2, rows=400),
            Refresh("revenue", "success", 9.5, "incremental", "", 12, 12, 4 * MB, MB),
            Refresh(HOSTILE, "success", 20.0, "full", "window"),
            Refresh("late", "error", 0.5, reason="Database Error in /srv/shop/models/late.sql"),
        ),
    )
