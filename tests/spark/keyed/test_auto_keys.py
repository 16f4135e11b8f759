"""Keys of automatic models: their uniqueness is proved if possible, and queried otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from tests.extent import first
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Orders


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table()
    made.build([{"id": number, "amount": number} for number in range(20)])
    return made


@pytest.mark.modelled
@pytest.mark.parametrize(
    "twice", first(1, [{"id": 3, "amount": 7}, {"id": 50, "amount": 7}]), ids=["moved", "new"]
)
def test_rows_that_come_to_share_a_key_are_refused(orders: Orders, twice: dict[str, int]) -> None:
    model = Model(orders, "amount", f"SELECT amount, id FROM {orders.name.sql}")
    model.refresh()
    before = model.rows()
    orders.upsert([twice])
    with pytest.raises(Exception, match=r"AR-304.*amount.*7"):
        model.refresh()
    assert model.rows() == before
    orders.upsert([{"id": 7, "amount": 100}])
    assert model.refresh().startswith("INCREMENTAL")
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
@pytest.mark.parametrize(
    ("key", "sql"),
    [
        ("id", "SELECT id, amount * 2 AS twice FROM {0}"),
        ("part", "SELECT amount % 3 AS part, count(*) AS orders, sum(amount) AS amount, count(amount) AS n "
                 "FROM {0} GROUP BY amount % 3"),
    ],
    ids=["rows", "sums"],
)  # fmt: skip
def test_what_is_proved_is_not_counted(orders: Orders, key: str, sql: str) -> None:
    """One commit is pending, so that nothing else has to be ranked."""
    model = Model(orders, key, sql.format(orders.name.sql))
    model.refresh()
    for amount in (30, 40):
        orders.apply([{"id": 3, "amount": amount}, {"id": 60, "amount": amount}], [{"id": amount - 20}])
        assert model.refresh().startswith("INCREMENTAL")
        assert model.rows() == model.rows(model.sql)
        assert " OVER (" not in model.written_by


@pytest.mark.modelled
def test_what_is_not_proved_is_counted_once(orders: Orders) -> None:
    model = Model(orders, "amount", f"SELECT amount, id FROM {orders.name.sql}")
    model.refresh()
    orders.apply([{"id": 3, "amount": 30}], [{"id": 10}])
    assert model.refresh() == "INCREMENTAL (3 keys)"
    assert model.written_by.count(" OVER (") == 1
