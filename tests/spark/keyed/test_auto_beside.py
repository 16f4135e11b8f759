"""A model that ends in sums is its own state: what it does not show of it is in columns beside its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.restore import restore
from dbt_arctic.refresh.pull import plan_changes, plan_merge_on_read, plan_pull
from dbt_arctic.refresh.state import current_version
from tests.spark.keyed.auto import Model
from tests.spark.keyed.conftest import Orders

SHARES = """
SELECT amount % 3 AS part, sum(amount) AS amount, avg(amount) AS average,
  100 * max(amount) / count(*) AS share, 'x' AS label
FROM {} GROUP BY amount % 3
"""
SHOWN = ["part", "amount", "average", "share", "label"]


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table()
    made.build([{"id": number, "amount": number} for number in range(20)])
    return made


@pytest.fixture
def model(orders: Orders) -> Model:
    made = Model(orders, "part", SHARES.format(orders.name.sql))
    made.refresh()
    return made


def as_table(model: Model) -> Orders:
    return Orders(model.session, model.name, {}, {"unique_key": "part"})


def columns(model: Model, sql: str) -> list[str]:
    return [column.name for column in model.session.edge.query_schema(sql)]


def test_one_statement_adds_what_changed(orders: Orders, model: Model) -> None:
    orders.upsert([{"id": 1, "amount": 40}, {"id": 50, "amount": 7}])
    orders.delete([{"id": 3}])
    ran = model.session.statements.ran
    ran.clear()
    assert model.refresh() == "INCREMENTAL (sums)"
    assert [one.step for one in ran if one.sql.startswith("INSERT")] == ["refresh"]
    assert model.state is None
    assert model.rows() == model.rows(model.sql)
    assert model.refresh() == "SKIP (no upstream change)"


def test_a_group_comes_and_goes_and_extremes_leave(orders: Orders, model: Model) -> None:
    orders.delete([{"id": number} for number in range(20) if number % 3 == 1])
    model.refresh()
    assert [part for part, *_ in model.rows()] == [0, 2]
    assert model.rows() == model.rows(model.sql)
    orders.upsert([{"id": 1, "amount": 1}])
    model.refresh()
    assert model.rows() == model.rows(model.sql)
    orders.delete([{"id": 17}])
    model.refresh()
    assert model.rows() == model.rows(model.sql)


def test_a_single_row_is_its_own_state(orders: Orders) -> None:
    sql = f"SELECT 0 AS one, sum(amount) AS total, avg(amount) AS average FROM {orders.name.sql}"
    model = Model(orders, "one", sql)
    model.refresh()
    assert len(as_table(model).table.hidden) == 2
    orders.delete([{"id": number} for number in range(20)])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == [(0, None, None)]
    orders.upsert([{"id": 1, "amount": 5}])
    model.refresh()
    assert model.rows() == [(0, 5, 5.0)]


def test_nobody_sees_what_it_keeps(orders: Orders, model: Model) -> None:
    name, catalog = model.name, model.session.catalog
    table = as_table(model).table
    assert table.hidden
    assert columns(model, f"SELECT * FROM {name.sql}") == SHOWN
    before = current_version(catalog, table)
    orders.upsert([{"id": 1, "amount": 40}])
    model.refresh()
    for sql in (
        plan_merge_on_read(catalog, name, None, "test"),
        plan_merge_on_read(catalog, name, before.token, "test"),
    ):
        assert columns(model, sql) == SHOWN
    changes = plan_changes(catalog, name, before.token, None, "both", "test")
    pull = plan_pull(catalog, name, None, model="test")
    for sql in (changes, pull.sql):
        assert columns(model, sql) == [*SHOWN, "_action"]


def test_it_is_compacted_and_restored_like_any_other(orders: Orders, model: Model) -> None:
    orders.upsert([{"id": 1, "amount": 40}])
    model.refresh()
    assert as_table(model).compact().merged > 0
    table = as_table(model).table
    model.session.query(f"DROP VIEW {model.name.sql}")
    restore(model.session.edge, model.name)
    assert replace(as_table(model).table, previous=None) == replace(table, previous=None)
    orders.upsert([{"id": 2, "amount": 41}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)


def test_other_sql_may_keep_other_columns(orders: Orders, model: Model) -> None:
    model.sql = f"SELECT amount % 3 AS part, min(amount) AS low FROM {orders.name.sql} GROUP BY amount % 3"
    model.refresh()
    assert model.rows() == model.rows(model.sql)
    orders.upsert([{"id": 60, "amount": -3}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)
    # Rows of it and of a state are not one to one any more.
    model.sql += " HAVING count(*) > 6"
    model.refresh()
    assert model.rows() == model.rows(model.sql)
    assert as_table(model).table.hidden == ()
    assert model.state is not None


def test_a_model_over_it_reads_what_it_shows(orders: Orders, model: Model) -> None:
    other = Model(orders, "part", f"SELECT * FROM {model.name.sql}")
    other.name = Name(model.name.catalog, model.name.schema, "other")
    other.refresh()
    orders.upsert([{"id": 1, "amount": 40}])
    model.refresh()
    other.refresh()
    assert columns(model, f"SELECT * FROM {other.name.sql}") == SHOWN
    assert other.rows() == model.rows()
