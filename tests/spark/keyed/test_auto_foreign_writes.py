"""What something else writes to an automatic model is put right, whenever it was, whatever came after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt_arctic.keyed.log import versions_to_carry
from dbt_arctic.keyed.version import FINGERPRINT
from dbt_arctic.maintenance.erase import erase_keys
from dbt_arctic.maintenance.erase_plan import plan_by_values
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.refresh.dml import modify
from dbt_arctic.refresh.parse_dml import parse_modification
from dbt_arctic.store.state import current_version, load_change, load_keyed
from tests.extent import first
from tests.spark.keyed.automatic_models import Model
from tests.spark.keyed.conftest import Orders

QUERIES = {
    "keys": ("id", "SELECT id, amount * 2 AS twice FROM {}"),
    "sums": ("part", "SELECT id % 3 AS part, sum(amount) AS amount FROM {} GROUP BY id % 3"),
}


@pytest.fixture
def orders(shop: Any) -> Orders:
    made: Orders = shop.table()
    made.build([{"id": number, "amount": number} for number in range(12)])
    return made


@pytest.fixture(params=first(1, QUERIES))
def model(orders: Orders, request: pytest.FixtureRequest) -> Model:
    key, sql = QUERIES[request.param]
    made = Model(orders, key, sql.format(orders.name.sql))
    made.refresh()
    return made


def delete_by_hand(model: Model) -> None:
    name = model.name
    key = model.config.unique_key[0]
    modify(model.session.context, name, parse_modification(f"DELETE FROM {name.sql} WHERE {key} = 1"))


@pytest.mark.modelled
@pytest.mark.parametrize("step", ["create_branch", "refresh"])
def test_what_others_write_during_a_refresh_is_put_right(orders: Orders, model: Model, step: str) -> None:
    orders.upsert([{"id": 5, "amount": 70}])
    others: list[Callable[[Model], None]] = [delete_by_hand]

    def before(now: str) -> None:
        if now == step and others:
            others.pop()(model)

    model.session.statements.before = before
    assert model.refresh() == "FULL (written-to)"
    assert not others
    assert model.rows() == model.rows(model.sql)
    model.session.statements.before = None
    assert model.refresh() == "SKIP (no upstream change)"


@pytest.mark.modelled
def test_a_rollback_to_what_others_wrote_is_no_refresh(orders: Orders, model: Model) -> None:
    context = model.session.context
    delete_by_hand(model)
    written_to = current_version(context.catalog, load_keyed(context.catalog, model.name)).token
    orders.upsert([{"id": 5, "amount": 70}])
    assert model.refresh() == "FULL (written-to)"
    roll_back(context, model.name, written_to)
    assert model.refresh() == "FULL (first-plan)"
    assert model.rows() == model.rows(model.sql)


def test_after_an_erasure_everything_is_computed_once(orders: Orders, model: Model) -> None:
    context = model.session.context
    key = model.config.unique_key[0]
    erase_keys(context, plan_by_values(context, model.name, [(key, "1")]), force=True)
    assert len(model.rows()) == len(model.rows(model.sql)) - 1
    orders.upsert([{"id": 13, "amount": 70}])  # of the same group
    assert model.refresh() == "FULL (first-plan)"
    assert model.rows() == model.rows(model.sql)


@pytest.mark.modelled
def test_what_is_carried_on_says_of_no_query_that_rows_are_its(orders: Orders, model: Model) -> None:
    def carried() -> dict[str, Any]:
        table = load_keyed(model.session.catalog, model.name)
        return versions_to_carry(load_change(model.session.catalog, table).history())

    assert {FINGERPRINT, orders.name.dotted} <= set(carried())
    delete_by_hand(model)
    assert set(carried()) == {orders.name.dotted}
