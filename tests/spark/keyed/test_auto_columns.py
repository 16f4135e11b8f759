"""An automatic model with other columns than its table is built anew, unless its user does not want that."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.errors import ConfigError, SchemaChanged
from dbt_arctic.refresh.auto_model import plan_refresh, run_refresh
from tests.spark.keyed.auto import Model
from tests.spark.keyed.conftest import Orders

SQL = "SELECT id, amount * 2 AS twice FROM {}"


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table()
    made.build([{"id": number, "amount": number} for number in range(5)])
    return made


@pytest.fixture
def model(orders: Orders) -> Model:
    made = Model(orders, "id", SQL.format(orders.name.sql))
    assert made.refresh() == "FULL (build)"
    made.sql = made.sql.replace("twice", "twice, amount AS once")
    return made


def test_it_is_built_anew(orders: Orders, model: Model) -> None:
    assert model.refresh() == "FULL (changed-columns)"
    assert model.rows() == model.rows(model.sql)
    orders.upsert([{"id": 1, "amount": 7}])
    assert model.refresh() == "INCREMENTAL (1 keys)"


@pytest.mark.parametrize(
    ("setting", "error", "says"),
    [
        ({"auto": "strict"}, ConfigError, "changed-columns"),
        ({"on_schema_change": "fail"}, SchemaChanged, "other columns"),
    ],
)
def test_or_it_is_an_error(model: Model, setting: dict[str, Any], error: Any, says: str) -> None:
    before, plain = model.rows(), model.config
    model.config = replace(plain, **setting)
    with pytest.raises(error, match=says) as told:
        model.refresh()
    assert "--full-refresh" in str(told.value.fix)
    assert model.rows() == before
    edge = model.session.edge
    plan = plan_refresh(edge.catalog, model.name, model.config, model.sql, edge.query_schema, rebuild=True)
    outcome = run_refresh(edge, model.name, model.config, plan, owner="model.test")
    assert str(outcome.choice) == "FULL (build)", "which is what its user asked for"
    assert model.rows() == model.rows(model.sql)


def test_a_model_with_hidden_columns_too(orders: Orders) -> None:
    model = Model(
        orders, "part", f"SELECT id % 2 AS part, avg(amount) AS a FROM {orders.name.sql} GROUP BY 1"
    )
    model.refresh()
    model.sql = model.sql.replace("AS a", "AS a, count(*) AS n")
    assert model.plan().reason is not None
    assert model.refresh() == "FULL (changed-columns)"
    orders.upsert([{"id": 1, "amount": 7}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT id FROM {} WHERE day = DATE 'yesterday'", "time"),
        ("SELECT id FROM {} WHERE unix_timestamp() > 5 AND day IS NULL", "time"),
        # What else leaves them open does not hide it.
        ("SELECT id FROM {} WHERE day = DATE 'today' LIMIT 10", "time"),
        ("SELECT id FROM {} CROSS JOIN (VALUES (DATE 'today')) AS p(now) WHERE day = now", "unsupported"),
    ],
)
def test_the_time_is_asked_for_though_nothing_has_changed(shop: Any, sql: str, reason: str) -> None:
    orders = shop.table("orders", {"id": "bigint", "day": "date"})
    orders.build([{"id": 1, "day": "2026-01-01"}])
    model = Model(orders, "id", sql.format(orders.name.sql))
    model.refresh()
    first = model.refresh()
    assert first in (f"FULL ({reason})", "FULL (first-plan)")
    assert model.refresh() == f"FULL ({reason})" or reason == "unsupported"
    labelled = Model(orders, "id", f"SELECT id, 'today' AS label FROM {orders.name.sql}")
    labelled.name = orders.name.sibling("labelled")
    labelled.refresh()
    assert labelled.refresh() == "SKIP (no upstream change)", "a label is no time"


def test_settings_that_change_what_a_text_means(orders: Orders) -> None:
    model = Model(orders, "id", SQL.format(orders.name.sql))
    edge = model.session.edge

    def refresh(settings: str) -> str:
        plan = plan_refresh(
            edge.catalog, model.name, model.config, model.sql, edge.query_schema, settings=settings
        )
        return str(run_refresh(edge, model.name, model.config, plan, owner="model.test").choice)

    refresh("spark.sql.caseSensitive=true")
    assert refresh("spark.sql.caseSensitive=true") == "FULL (setting)"
    assert refresh("spark.sql.caseSensitive=false;spark.sql.ansi.enabled=true") == "FULL (first-plan)"
    assert refresh("spark.sql.caseSensitive=false;spark.sql.ansi.enabled=true") == "SKIP (no upstream change)"


def test_without_ansi_sums_are_not_added_to(orders: Orders) -> None:
    sql = f"SELECT id % 2 AS part, count(*) AS n FROM {orders.name.sql} GROUP BY 1"
    edge, model = orders.session.edge, Model(orders, "part", sql)
    for number, (ansi, told) in enumerate({"true": "sums", "False": "1 keys"}.items()):
        found = []
        for _ in range(2):
            orders.upsert([{"id": 2 * number, "amount": 9}, {"id": 20 + 2 * number, "amount": 7}])
            plan = plan_refresh(
                edge.catalog,
                model.name,
                model.config,
                sql,
                edge.query_schema,
                settings=f"spark.sql.ansi.enabled={ansi}",
            )
            found.append(str(run_refresh(edge, model.name, model.config, plan, owner="model.test").choice))
            orders.delete([{"id": 20 + 2 * number}])
        assert found[-1] == f"INCREMENTAL ({told})"
