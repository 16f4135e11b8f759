"""Automatic models that ask for the time: moving windows move, with and without other changes."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.refresh.config import parse_config
from tests.extent import extent
from tests.spark.keyed import automatic_models

START = datetime(2026, 11, 22, 12, 0, tzinfo=timezone.utc)


class Model:
    """An automatic model that is refreshed at given days."""

    def __init__(self, table: Any, name: str, key: str, sql: str, meant: str = "") -> None:
        """:param meant: the same query without views."""
        self.context, self.name, self.sql = table.session.context, table.name.sibling(name), sql
        self.meant = meant or sql
        config = parse_config(name, {"unique_key": key, "incremental_strategy": "auto"})
        self.config = replace(config, full_refresh_above=math.inf)

    def refresh(self, day: int, hours: int = 0) -> str:
        """How it was refreshed; its rows are compared with those of the query at that time."""
        at = START + timedelta(days=day, hours=hours)
        terms = RefreshParameters(now=Clock.at(at, "UTC"))
        plan = plan_refresh(
            self.context.catalog, self.name, self.config, self.sql, self.context.query_schema, terms=terms
        )
        outcome = run_refresh(self.context, self.name, self.config, plan, owner="model.test")
        expected = self.meant.replace("current_date()", f"DATE '{at:%Y-%m-%d}'")
        expected = expected.replace("current_timestamp", f"TIMESTAMP '{at:%Y-%m-%d %H:%M:%S}'")
        rows = [
            sorted(map(tuple, self.context.query(text)))
            for text in (f"SELECT * FROM {self.name.sql}", expected)
        ]
        assert rows[0] == rows[1]
        return str(outcome.choice)


def days(first: int, last: int) -> list[dict[str, Any]]:
    """A row for each day, its number as the amount."""
    return [{"id": number, "amount": number} for number in range(first, last)]


def of_day(column: str) -> str:
    return f"date_add(DATE '{START:%Y-%m-%d}', CAST({column} AS INT))"


@pytest.mark.modelled
def test_a_window_moves_with_the_days(shop: Any) -> None:
    orders = shop.table("orders")
    orders.build(days(-9, 9))
    sql = (
        f"SELECT id, amount, {of_day('amount')} AS day FROM {orders.name.sql} "
        f"WHERE {of_day('amount')} >= date_sub(current_date(), 3) AND {of_day('amount')} < current_date()"
    )
    model = Model(orders, "recent", "id", sql)
    assert model.refresh(0) == "FULL (build)"
    assert model.refresh(0, hours=3) == "SKIP (no upstream change)"
    assert model.refresh(1) == "INCREMENTAL (2 keys)"
    orders.upsert([{"id": 1, "amount": 0}, {"id": 20, "amount": 2}])
    # Two days are over (-2, -1), two have come (2 and 20 on the second of them), and one row has moved (1).
    assert model.refresh(3) == "INCREMENTAL (5 keys)"
    orders.delete([{"id": 20}])
    assert model.refresh(3, hours=1) == "INCREMENTAL (1 key)"
    # Back in time, as a clock that was wrong would have it.
    assert model.refresh(-2).startswith("INCREMENTAL")


@pytest.mark.modelled
def test_sums_of_a_window_move_with_the_days(shop: Any) -> None:
    orders = shop.table("orders")
    orders.build(days(-9, 9))
    sql = (
        f"SELECT amount % 2 AS part, sum(amount) AS total, avg(amount) AS mean FROM {orders.name.sql} "
        f"WHERE {of_day('amount')} > date_sub(current_date(), 4) GROUP BY amount % 2"
    )
    model = Model(orders, "totals", "part", sql)
    assert model.refresh(0) == "FULL (build)"
    assert model.refresh(0) == "SKIP (no upstream change)"
    assert model.refresh(1) == "INCREMENTAL (sums)"
    orders.upsert([{"id": -3, "amount": 5}, {"id": 30, "amount": 1}])
    assert model.refresh(6) == "INCREMENTAL (sums)"


@pytest.mark.modelled
def test_the_time_of_day_moves_each_time(shop: Any) -> None:
    orders = shop.table("orders")
    orders.build(days(0, 5))
    sql = (
        f"SELECT id, amount FROM {orders.name.sql} "
        f"WHERE CAST({of_day('amount')} AS TIMESTAMP) < current_timestamp"
    )
    model = Model(orders, "past", "id", sql)
    model.refresh(0)
    assert model.refresh(0, hours=1) == "INCREMENTAL (0 keys)"
    assert model.refresh(2) == "INCREMENTAL (2 keys)"


@pytest.mark.modelled
def test_a_date_that_is_shown_is_the_same_all_day(shop: Any) -> None:
    orders = shop.table("orders")
    orders.build(days(0, 5))
    sql = f"SELECT id, datediff(current_date(), {of_day('amount')}) AS age FROM {orders.name.sql}"
    model = Model(orders, "ages", "id", sql)
    model.refresh(0)
    orders.upsert([{"id": 1, "amount": 3}])
    assert model.refresh(0, hours=2) == "INCREMENTAL (1 key)"
    assert model.refresh(1) == "FULL (time)"
    assert model.refresh(1) == "SKIP (no upstream change)"


@pytest.mark.modelled
def test_a_view_that_asks_for_the_time(shop: Any) -> None:
    orders = shop.table("orders")
    orders.build(days(-2, 4))
    view = orders.name.sibling("not_yet")
    inner = f"SELECT id, amount FROM {orders.name.sql} WHERE {of_day('amount')} > current_date()"
    orders.session.context.run("", f"CREATE VIEW {view.sql} AS {inner}")
    sql = "SELECT id, amount FROM {} WHERE amount <> 2"
    model = Model(orders, "waiting", "id", sql.format(view.sql), sql.format(f"({inner})"))
    assert model.refresh(0) == "FULL (build)"
    assert model.refresh(0) == "SKIP (no upstream change)"
    assert model.refresh(3) == "INCREMENTAL (2 keys)"


@pytest.mark.modelled
def test_without_a_clock_nothing_is_left_out(shop: Any) -> None:
    """The time is not known to have stayed the same, so a refresh is a full one."""
    orders = shop.table("orders")
    orders.build(days(0, 2))
    context, name = orders.session.context, orders.name.sibling("unclocked")
    config = parse_config("unclocked", {"unique_key": "id", "incremental_strategy": "auto"})
    sql = f"SELECT id FROM {orders.name.sql} WHERE {of_day('amount')} < current_date()"
    for expected in ("build", "full"):
        plan = plan_refresh(context.catalog, name, config, sql, context.query_schema)
        assert plan.action == expected
        run_refresh(context, name, config, plan, owner="model.test")
    assert plan.reason is not None
    assert plan.reason.code == "time"


OPEN = [
    ("SELECT id FROM {} WHERE day = DATE 'yesterday'", "time"),
    ("SELECT id FROM {} WHERE unix_timestamp() > 5 AND day IS NULL", "time"),
    # What else leaves them open does not hide it.
    ("SELECT id FROM {} WHERE day = DATE 'today' LIMIT 10", "time"),
    ("SELECT id FROM {} CROSS JOIN (VALUES (DATE 'today')) AS p(now) WHERE day = now", "unsupported"),
]


def test_the_time_is_asked_for_though_nothing_has_changed(shop: Any) -> None:
    orders = shop.table("orders", {"id": "bigint", "day": "date"})
    orders.build([{"id": 1, "day": "2026-01-01"}])
    for number, (sql, reason) in enumerate(extent((OPEN[0], OPEN[3]), OPEN)):
        model = automatic_models.Model(orders, "id", sql.format(orders.name.sql))
        model.name = orders.name.sibling(f"open_{number}")
        model.refresh()
        first = model.refresh()
        assert first in (f"FULL ({reason})", "FULL (first-plan)")
        assert model.refresh() == f"FULL ({reason})" or reason == "unsupported"
    labelled = automatic_models.Model(orders, "id", f"SELECT id, 'today' AS label FROM {orders.name.sql}")
    labelled.name = orders.name.sibling("labelled")
    labelled.refresh()
    assert labelled.refresh() == "SKIP (no upstream change)", "a label is no time"
