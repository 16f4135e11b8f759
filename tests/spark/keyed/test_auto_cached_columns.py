"""Spark analyses a query's columns only if they may differ from those of the last refresh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dbt_arctic.auto import cached_columns
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.store.state import load_keyed
from tests.extent import first
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Orders

QUERIES = {
    "keys": ("id", "SELECT id, amount + 1 AS more FROM {} WHERE amount > 2"),
    "hidden": ("part", "SELECT amount % 3 AS part, avg(amount) AS mean FROM {} GROUP BY amount % 3"),
    "unnamed": ("part", "SELECT amount % 3 AS part, sum(amount) FROM {} GROUP BY amount % 3"),
}


class RecordingModel:
    """A model that records the analysed queries."""

    def __init__(self, model: Model) -> None:
        self.model, self.context, self.asked = model, model.session.context, 0

    def schema(self, sql: str) -> list[ColumnInfo]:
        self.asked += 1
        return self.context.query_schema(sql)

    def refresh(self) -> str:
        model = self.model
        plan = plan_refresh(self.context.catalog, model.name, model.config, model.sql, self.schema)
        return str(run_refresh(self.context, model.name, model.config, plan, owner="model.test").choice)

    def check(self) -> None:
        assert self.model.rows() == self.model.rows(self.model.sql)


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table()
    made.build([{"id": number, "amount": number} for number in range(20)])
    return made


@pytest.fixture(params=first(1, QUERIES))
def recording_model(request: Any, orders: Orders) -> Iterator[RecordingModel]:
    key, sql = QUERIES[request.param]
    made = RecordingModel(Model(orders, key, sql.format(orders.name.sql)))
    made.refresh()
    assert made.asked
    made.asked = 0
    orders.upsert([{"id": 1, "amount": 40}])
    yield made
    made.check()


@pytest.mark.modelled
def test_nothing_is_asked_again(recording_model: RecordingModel) -> None:
    assert recording_model.refresh().startswith("INCREMENTAL")
    assert recording_model.refresh().startswith("SKIP")
    assert recording_model.asked == 0


@pytest.mark.modelled
def test_another_name_of_a_column_is_seen(recording_model: RecordingModel) -> None:
    """Though what is computed for it is the same to the letter."""
    sql = recording_model.model.sql
    recording_model.model.sql = (
        sql.replace("mean", "average").replace("more", "and_more").replace("sum(amount)", "sum(amount) AS s")
    )
    assert recording_model.refresh() == "FULL (changed-columns)"
    assert recording_model.asked


@pytest.mark.modelled
def test_another_query_is_seen(recording_model: RecordingModel) -> None:
    recording_model.model.sql = recording_model.model.sql.replace("FROM", "FROM /* others */").replace(
        "> 2", "> 3"
    )
    recording_model.model.sql = recording_model.model.sql.replace("GROUP BY", "WHERE id <> 4 GROUP BY")
    assert recording_model.refresh() == "FULL (changed-sql)"
    assert recording_model.asked


@pytest.mark.modelled
def test_another_spark_is_asked(recording_model: RecordingModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_columns, "_spark", lambda: "5.0.0")
    assert recording_model.refresh().startswith("INCREMENTAL")
    assert recording_model.asked


@pytest.mark.modelled
def test_a_column_that_somebody_added_to_the_table_is_seen(recording_model: RecordingModel) -> None:
    table = load_keyed(recording_model.context.catalog, recording_model.model.name)
    for side in (table.base, table.change):
        recording_model.model.session.query(f"ALTER TABLE {side.sql} ADD COLUMN foreign_one int")
    recording_model.refresh()
    assert recording_model.asked
