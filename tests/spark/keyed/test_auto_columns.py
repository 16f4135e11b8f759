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
