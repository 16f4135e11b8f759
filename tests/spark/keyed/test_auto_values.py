"""Values that all rows of a model share are queried once, and again if their upstreams have changed."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.auto import plan_table
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.recorded_values import known_values
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.compaction.major import compact_major
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.state import load_change, load_keyed
from tests.extent import first
from tests.spark.keyed.conftest import Orders, Row

SALES = {"id": "bigint", "customer": "int", "amount": "decimal(10,2)", "day": "date", "note": "string"}
CUSTOMERS = {"id": "int", "credit": "decimal(12,2)", "since": "date", "name": "string"}

VALUES = {
    "smallest": "credit > (SELECT 20 * min(amount) FROM {sales} WHERE amount < 80)",
    "decimal": "credit > (SELECT avg(amount) FROM {sales} WHERE amount < 80)",
    "date and number": "since > (SELECT min(day) FROM {sales}) AND id < (SELECT count(*) - 50 FROM {sales})",
    "text": "name <> (SELECT max(note) FROM {sales}) OR credit > (SELECT max(amount) FROM {sales})",
    "no date in Python": "since < (SELECT max(date_add(day, 2920000)) FROM {sales}) AND credit > 5",
    "all": "credit > (SELECT avg(amount) FROM {sales}) AND name <> (SELECT max(note) FROM {sales}) "
    "AND since > (SELECT min(day) FROM {sales}) AND id < (SELECT count(*) - 50 FROM {sales})",
    "nothing": "credit > coalesce((SELECT max(amount) FROM {sales} WHERE amount > 1000), 40)",
}


class Shop:
    """Sales that seldom change, and customers that are compared with them."""

    def __init__(self, shop: Any) -> None:
        self.chance = random.Random(3)
        self.sales: Orders = shop.table("sales", SALES)
        self.customers: Orders = shop.table("customers", CUSTOMERS)
        self.sales.build([self.sale(number) for number in range(60)])
        self.customers.build([self.customer(number) for number in range(20)])
        self.session = self.sales.session
        self.name = self.sales.name.sibling("compared")

    def sale(self, number: int) -> Row:
        amount = f"{self.chance.randint(1, 9999) / 100:.2f}"
        day = f"2026-01-{number % 28 + 1:02}"
        return {"id": number, "customer": 1, "amount": amount, "day": day, "note": f"it's \\ '{number}'"}

    def customer(self, number: int) -> Row:
        credit = f"{self.chance.randint(1, 9999) / 100:.2f}"
        since = f"2026-01-{self.chance.randint(1, 9):02}"
        return {"id": number, "credit": credit, "since": since, "name": f"it's \\ '{number + 50}'"}

    def change(self) -> None:
        self.customers.upsert([self.customer(self.chance.randrange(30)) for _ in range(1)])
        self.customers.delete([{"id": self.chance.randrange(20)}])

    def sql(self, value: str) -> str:
        where = VALUES[value].format(sales=self.sales.name.sql)
        return f"SELECT id, credit FROM {self.customers.name.sql} WHERE {where}"

    def refresh(self, value: str) -> Outcome:
        given = {"unique_key": "id", "incremental_strategy": "auto"}
        config = replace(parse_config("compared", given), full_refresh_above=math.inf)
        context = self.session.context
        plan = plan_refresh(context.catalog, self.name, config, self.sql(value), context.query_schema)
        self.session.statements.ran.clear()
        return run_refresh(context, self.name, config, plan, owner="model.test")

    def is_right(self, value: str) -> bool:
        rows = sorted(map(tuple, self.session.query(f"SELECT * FROM {self.name.sql}")))
        return rows == sorted(map(tuple, self.session.query(self.sql(value))))

    def known(self) -> dict[str, str]:
        table = load_keyed(self.session.context.catalog, self.name)
        return known_values(load_change(self.session.context.catalog, table).history())

    def reads_sales(self) -> bool:
        return any(self.sales.table.base.sql in one.sql for one in self.session.statements.ran)


@pytest.fixture
def compared(shop: Any, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setattr(plan_table, "WORTH_ROWS", 1)
    return Shop(shop)


@pytest.mark.modelled
@pytest.mark.parametrize("value", first(1, VALUES))
def test_a_value_is_asked_for_once(compared: Shop, value: str) -> None:
    compared.refresh(value)
    assert not compared.known(), "a build computes it with all else"
    for number in range(3):
        compared.change()
        assert str(compared.refresh(value).choice).startswith("INCREMENTAL")
        assert compared.known()
        assert compared.reads_sales() == (number == 0)
        assert compared.is_right(value)
        if number == 1:
            compact_major(compared.session.context, compared.name, trim_grace_seconds=0)


@pytest.mark.modelled
def test_a_value_that_may_have_changed_is_computed(compared: Shop) -> None:
    value = "smallest"
    compared.refresh(value)
    compared.change()
    compared.refresh(value)
    (before,) = compared.known().values()
    compared.sales.upsert([{**compared.sale(number), "amount": "1.00"} for number in range(30)])
    compared.change()
    assert str(compared.refresh(value).choice).startswith("INCREMENTAL")
    assert compared.is_right(value)
    assert not compared.known()
    compared.change()
    compared.refresh(value)
    (after,) = compared.known().values()
    assert after != before
    # Changes of the table that do not change the value: it is compared, and queried again afterwards.
    compared.sales.upsert([{**compared.sale(99), "amount": "99.00"}])
    compared.change()
    assert str(compared.refresh(value).choice).startswith("INCREMENTAL")
    assert compared.is_right(value)
    compared.change()
    compared.refresh(value)
    assert tuple(compared.known().values()) == (after,)
    assert compared.is_right(value)


def test_values_of_all_types_are_read_as_they_were_written(compared: Shop) -> None:
    value = "all"
    compared.refresh(value)
    for number in range(2):
        compared.change()
        assert str(compared.refresh(value).choice).startswith("INCREMENTAL")
        assert len(compared.known()) == 4
        assert compared.reads_sales() == (number == 0)
        assert compared.is_right(value)


@pytest.mark.modelled
def test_small_tables_are_not_asked(compared: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_table, "WORTH_ROWS", 61)
    compared.refresh("decimal")
    compared.change()
    compared.refresh("decimal")
    assert not compared.known()
