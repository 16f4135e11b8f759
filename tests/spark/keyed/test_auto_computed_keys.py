"""Sums by a key that is computed from the groups: the groups are stored, and a key may get others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.errors import DuplicateKey
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Orders

HASHED = """
SELECT md5(concat_ws('-', coalesce(CAST(amount AS STRING), '_'), CAST(id % 2 AS STRING))) AS key,
  id % 2 AS part, sum(id) AS total, count_if(id > 5) AS late, max(id) FILTER (WHERE id < 9) AS last
FROM {} GROUP BY amount, id % 2
"""


@pytest.mark.modelled
def test_groups_with_null_are_added_by_a_hash_of_the_groups(shop: Any) -> None:
    orders: Orders = shop.table()
    orders.build([{"id": number, "amount": None if number % 3 == 0 else number % 3} for number in range(12)])
    model = Model(orders, "key", HASHED.format(orders.name.sql))
    model.refresh()
    table = Orders(model.session, model.name, {}, {"unique_key": "key"}).table
    assert "_group_1" in table.hidden
    assert "_group_2" not in table.hidden
    # A new group, one that is gone, and one whose maximum is another row's now.
    orders.upsert([{"id": 3, "amount": 7}, {"id": 20, "amount": None}])
    orders.delete([{"id": 6}, {"id": 1}, {"id": 7}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)
    assert model.state is None


@pytest.mark.modelled
@pytest.mark.parametrize("images", [False, True])
def test_a_name_that_changes_is_that_of_its_key(shop: Any, images: bool) -> None:
    orders: Orders = shop.table(types={"id": "bigint", "customer": "int", "amount": "int"})
    names: Orders = shop.table("names", {"id": "bigint", "name": "string"})
    orders.build([{"id": number, "customer": number % 4, "amount": number} for number in range(12)])
    names.build([{"id": number, "name": f"name {number}"} for number in range(4)])
    sql = (
        "SELECT n.id AS customer, n.name, upper(n.name) AS label, count(*) AS n, sum(o.amount) AS total, "
        f"count(o.amount) AS priced FROM {orders.name.sql} AS o JOIN {names.name.sql} AS n "
        "ON n.id = o.customer GROUP BY n.id, n.name"
    )
    model = Model(orders, "customer", sql)
    model.config = replace(model.config, before_images=images)
    model.refresh()
    names.upsert([{"id": 1, "name": None}, {"id": 2, "name": "another name"}])
    orders.upsert([{"id": 2, "customer": 2, "amount": 100}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_two_groups_of_one_key_are_refused(shop: Any) -> None:
    orders: Orders = shop.table()
    orders.build([{"id": 1, "amount": None}, {"id": 2, "amount": 3}])
    sql = f"SELECT coalesce(amount, 0) AS part, sum(id) AS total FROM {orders.name.sql} GROUP BY amount"
    model = Model(orders, "part", sql)
    model.refresh()
    orders.upsert([{"id": 3, "amount": 0}])
    with pytest.raises(DuplicateKey):
        model.refresh()
    # The group that has gone has the key of the new one.
    orders.delete([{"id": 1}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql) == [(0, 3), (3, 2)]


@pytest.mark.modelled
def test_a_state_may_have_a_group_that_is_null(shop: Any) -> None:
    orders: Orders = shop.table()
    orders.build([{"id": number, "amount": None if number > 3 else number} for number in range(8)])
    sql = (
        f"SELECT coalesce(amount, -1) AS part, sum(id) AS total FROM {orders.name.sql} "
        "GROUP BY amount HAVING sum(id) > 2"
    )
    model = Model(orders, "part", sql)
    model.refresh()
    assert model.state is not None
    orders.upsert([{"id": 9, "amount": None}, {"id": 1, "amount": 3}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql) == [(-1, 31), (3, 4)]


@pytest.mark.modelled
def test_aggregates_of_two_tables_are_one_row_of_sums(shop: Any) -> None:
    orders: Orders = shop.table()
    names: Orders = shop.table("names", {"id": "bigint", "name": "string"})
    orders.build([{"id": number, "amount": number} for number in range(8)])
    names.build([{"id": number, "name": f"name {number}"} for number in range(4)])
    sql = (
        f"SELECT 1 AS one, (SELECT count(*) FROM {names.name.sql}) AS names, n.total / n.orders AS average, "
        f"(SELECT count(*) FILTER (WHERE amount > 5) FROM {orders.name.sql}) AS large FROM "
        f"(SELECT sum(amount) AS total, count(*) AS orders FROM {orders.name.sql} WHERE id > 2) AS n"
    )
    model = Model(orders, "one", sql)
    model.refresh()
    orders.upsert([{"id": 3, "amount": 40}, {"id": 9, "amount": None}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)
    names.delete([{"id": 1}])
    orders.delete([{"id": number} for number in range(10)])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql) == [(1, 3, None, 0)]


@pytest.mark.modelled
def test_an_average_of_bigint_is_one_of_exact_sums(shop: Any) -> None:
    orders: Orders = shop.table(types={"id": "bigint", "amount": "bigint"})
    orders.build([{"id": number, "amount": 3 * number - 7} for number in range(12)])
    sql = f"SELECT id % 3 AS part, avg(amount) AS average FROM {orders.name.sql} GROUP BY id % 3"
    model = Model(orders, "part", sql)
    model.refresh()
    orders.upsert([{"id": 1, "amount": 40}, {"id": 5, "amount": None}, {"id": 20, "amount": -3}])
    assert model.refresh() == "INCREMENTAL (sums)"
    assert model.rows() == model.rows(model.sql)
    # Sums of such values are not exact as doubles.
    orders.upsert([{"id": 1, "amount": 2**53 + 1}])
    assert model.refresh().startswith("FULL")
    assert model.rows() == model.rows(model.sql)
    orders.upsert([{"id": 1, "amount": 4}])
    model.refresh()
    assert model.rows() == model.rows(model.sql)
