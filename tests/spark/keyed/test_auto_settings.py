"""What an automatic model's config decides: how much may change, and what of its result is accepted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.auto.plan import RefreshPlan
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store.state import load_keyed
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Session

AUTOMATIC = {"incremental_strategy": "auto"}


def right(model: Model) -> bool:
    return model.rows() == model.rows(model.sql)


def passed(session: Session, name: Name) -> int:
    """How many rows a read of a table comes by: what is pending is a part of them."""
    table = load_keyed(session.catalog, name)
    return sum(session.query(f"SELECT count(*) FROM {side.sql}")[0][0] for side in (table.base, table.change))


@pytest.mark.modelled
def test_more_changed_rows_than_the_share_are_a_full_refresh_before_anything_runs(shop: Any) -> None:
    orders = shop.table()
    name = orders.name.sql
    orders.build([{"id": key, "amount": key} for key in range(20)])
    model = Model(orders, "part", f"SELECT id % 3 AS part, sum(amount) AS amount FROM {name} GROUP BY id % 3")
    config = parse_config("model", {**AUTOMATIC, "unique_key": "part"})
    model.refresh()

    def change(amount: int, share_for: float) -> RefreshPlan:
        """The plan after nine more changed rows, with the share that so many rows would be."""
        orders.upsert([{"id": key, "amount": amount} for key in range(9)])
        model.config = replace(config, full_refresh_above=share_for / passed(shop.main, orders.name))
        return model.plan()

    plan = change(50, 9.5)
    assert (plan.action, plan.changed_rows) == ("incremental", 9)
    assert model.refresh() == "INCREMENTAL (sums)"
    assert right(model)
    plan = change(60, 8.5)
    assert plan.reason is not None
    assert (plan.action, plan.reason.code, plan.changed_rows) == ("full", "many-changes", 9)
    assert str(orders.name) in plan.reason.what
    assert model.refresh() == "FULL (many-changes)"
    assert right(model)


@pytest.mark.modelled
def test_more_affected_keys_than_the_share_are_a_full_refresh_once_they_are_counted(shop: Any) -> None:
    """Few rows have changed, and a join is needed to find the affected keys."""
    orders, customers = shop.table(), shop.table("customers")
    owners = [0] * 10 + [1] * 6 + [2] * 4
    orders.build([{"id": key, "amount": owner} for key, owner in enumerate(owners)])
    customers.build([{"id": key, "amount": 0} for key in range(8)])
    model = Model(
        orders,
        "id",
        f"SELECT o.id, c.amount FROM {orders.name.sql} AS o "
        f"JOIN {customers.name.sql} AS c ON c.id = o.amount",
    )
    model.refresh()

    def change(*changed: int, margin: float) -> tuple[int, str]:
        """The number of orders of these customers, and the message with a share of about that size."""
        customers.upsert([{"id": customer, "amount": len(changed)} for customer in changed])
        keys = sum(owner in changed for owner in owners)
        share = (keys + margin) / passed(shop.main, model.name)
        model.config = replace(model.config, full_refresh_above=share)
        assert model.plan().action == "incremental"
        told = model.refresh()
        assert right(model)
        return keys, told

    assert change(0, margin=0.5) == (10, "INCREMENTAL (10 keys)")
    assert change(0, 1, margin=-0.5) == (16, "FULL (many-keys)")


@pytest.mark.modelled
@pytest.mark.parametrize("limit", [False, True])
def test_ties_are_decided_by_the_key_in_full_and_in_incremental_refreshes(shop: Any, limit: bool) -> None:
    orders = shop.table()
    orders.build([{"id": key, "amount": key % 3} for key in range(20)])
    number = "row_number() OVER (PARTITION BY id % 2 ORDER BY amount{}) AS n"
    sql = f"SELECT id, amount, {number} FROM {orders.name.sql} AS o"
    written, by_key = sql.format(""), sql.format(", o.id")
    if limit:
        sql = f"SELECT id, amount FROM {orders.name.sql} ORDER BY amount{{}} LIMIT 5"
        written, by_key = sql.format(""), sql.format(", id")
    model = Model(orders, "id", written)
    model.config = replace(model.config, ties="by_key")
    assert model.refresh() == "FULL (build)"
    assert model.rows() == model.rows(by_key)
    orders.upsert([{"id": 3, "amount": 1}, {"id": 21, "amount": 0}])
    orders.delete([{"id": 0}])
    assert model.refresh().startswith("INCREMENTAL")
    assert model.rows() == model.rows(by_key)
    model.config = replace(model.config, ties=None)
    orders.upsert([{"id": 6, "amount": 2}])
    assert model.refresh().startswith("FULL (ties")


@pytest.mark.modelled
def test_a_sum_of_floats_is_refreshed_incrementally_once_it_is_accepted(shop: Any) -> None:
    orders = shop.table()
    orders.build([{"id": key, "amount": key} for key in range(20)])
    # Quarters, of which sums are exact in any order.
    model = Model(
        orders,
        "part",
        f"SELECT id % 4 AS part, sum(amount / 4.0D) AS quarters FROM {orders.name.sql} GROUP BY id % 4",
    )
    given = {**AUTOMATIC, "unique_key": "part"}
    exact = replace(parse_config("model", given), full_refresh_above=1)
    accepted = parse_config("model", {**given, "auto": {"strict": True, "accept": ["float_sum"]}})
    model.config = exact
    model.refresh()
    orders.upsert([{"id": 1, "amount": 50}])
    assert model.refresh() == "FULL (float-sum)"
    assert right(model)
    orders.upsert([{"id": 2, "amount": 50}, {"id": 5, "amount": 50}])
    model.config = replace(exact, auto="strict")
    with pytest.raises(ConfigError, match=r"AR-301.*full one \(float-sum\)"):
        model.refresh()
    model.config = replace(accepted, full_refresh_above=1)
    assert model.refresh() == "INCREMENTAL (2 keys)"
    assert right(model)
