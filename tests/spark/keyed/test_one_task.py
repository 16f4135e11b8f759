"""Few rows of a table with one bucket are computed and written in one task, without a shuffle."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.auto import fast_path
from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import ArcticError
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.upsert import upsert
from dbt_arctic.store.state import load_change, load_keyed
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Orders

ROWS = [{"id": number, "amount": number % 4, "label": f"{number % 3}"} for number in range(30)]
AS_IT_IS = "`use-table-distribution-and-ordering`='false'"


def _sums(shop: Any, buckets: int = 1) -> tuple[Orders, Model]:
    orders = shop.table(types={"id": "bigint", "amount": "bigint", "label": "string"}, buckets=1)
    orders.build(ROWS)
    sql = f"SELECT label, count(*) AS orders, sum(amount) AS amount FROM {orders.name.sql} GROUP BY label"
    model = Model(orders, "label", sql)
    model.config = replace(model.config, buckets=buckets, before_images=True)
    model.refresh()
    return orders, model


def _change(model: Model) -> TableState:
    catalog = model.session.catalog
    return load_change(catalog, load_keyed(catalog, model.name))


def _upsert(orders: Orders, rows: list[dict[str, Any]], few_rows: bool) -> str:
    """Returns the statement."""
    config = parse_config("orders", orders.config, small_data=few_rows)
    return upsert(orders.session.context, orders.name, config, orders.model(rows)).sql


def _plan(orders: Orders, statement: str) -> str:
    ((plan,),) = orders.session.query("EXPLAIN " + re.sub(r"\.`branch_\w+`", "", statement))
    assert "IcebergWrite" in plan
    return str(plan)


def test_few_rows_are_computed_and_written_in_one_task(shop: Any, monkeypatch: Any) -> None:
    orders, model = _sums(shop)
    orders.session.statements.count_jobs = True

    def refresh(amount: int) -> tuple[int, str]:
        """The number of jobs of the statement that writes, and its plan."""
        _upsert(orders, [{"id": 3, "amount": amount, "label": "1"}, {"id": 40, "label": "4"}], few_rows=True)
        orders.delete([{"id": amount}])
        orders.session.statements.ran.clear()
        assert model.refresh() == "INCREMENTAL (sums)"
        assert model.rows() == model.rows(model.sql)
        jobs = {one.step: one.jobs for one in orders.session.statements.ran}
        return jobs["refresh"], _plan(orders, model.written_by)

    refresh(10)
    jobs, plan = refresh(11)
    assert "Exchange hashpartitioning" not in plan
    assert _change(model).history()[0].summary["added-data-files"] == "1"
    monkeypatch.setattr(fast_path, "ROWS_OF_ONE_TASK", 0)
    with_broadcast, shuffled = refresh(12)
    assert "Exchange hashpartitioning" in shuffled
    assert jobs == with_broadcast - 1, "the other ones broadcast keys whose old rows are read"
    few, others = (_upsert(orders, ROWS[:2], few_rows=few_rows) for few_rows in (True, False))
    assert "Exchange hashpartitioning" not in _plan(orders, few)
    assert "Exchange hashpartitioning" in _plan(orders, others)


@pytest.mark.modelled
@pytest.mark.parametrize(
    ("buckets", "most_rows", "is_in_one_task"), [(1, 500, True), (1, 20, False), (2, 500, False)]
)
def test_only_few_rows_of_a_table_with_one_bucket_are_added_in_one_task(
    shop: Any, monkeypatch: Any, buckets: int, most_rows: int, is_in_one_task: bool
) -> None:
    monkeypatch.setattr(fast_path, "ROWS_OF_ONE_TASK", most_rows)
    orders, model = _sums(shop, buckets)
    for number in range(2):
        orders.upsert([{"id": 3, "amount": 9 - number, "label": "1"}, {"id": 40, "amount": 1, "label": "4"}])
        orders.delete([{"id": 10 + number}])
        assert model.refresh() == "INCREMENTAL (sums)"
        assert model.rows() == model.rows(model.sql)
    assert ("COALESCE(1)" in model.written_by) == is_in_one_task
    assert ("SHUFFLE_HASH" in model.written_by) == is_in_one_task
    assert (AS_IT_IS in model.written_by) == is_in_one_task


@pytest.mark.modelled
@pytest.mark.parametrize(("buckets", "few_rows"), [(1, True), (1, False), (2, True)])
def test_an_upsert_of_few_rows_to_one_bucket_is_one_task_with_the_same_checks(
    shop: Any, buckets: int, few_rows: bool
) -> None:
    orders = shop.table(buckets=buckets)
    orders.build([{"id": number, "amount": number} for number in range(5)])
    statement = _upsert(orders, [{"id": 3, "amount": 30}, {"id": 9, "amount": 90}], few_rows)
    assert ("COALESCE(1)" in statement) == (few_rows and buckets == 1)
    expected = {number: number for number in range(5)} | {3: 30, 9: 90}
    assert orders.rows() == [{"id": id_, "amount": amount} for id_, amount in expected.items()]
    for rows, error in (([{"id": 1}, {"id": 1}], "AR-304"), ([{"amount": 5}], "AR-303")):
        with pytest.raises(ArcticError, match=error):
            _upsert(orders, rows, few_rows)
