"""Automatic incremental models: plain SQL, refreshed by the keys that changed, always equal to a full refresh."""

from __future__ import annotations

from typing import Any

from tests.dbt.keyed.conftest import Shop

ORDERS = """
{{ config(materialized='incremental', unique_key='id', buckets=2, delete_when='amount < 0') }}
select id, customer, amount from {{ source('raw', 'raw_orders') }}
"""
BY_CUSTOMER = """
{{ config(materialized='incremental', incremental_strategy='auto', unique_key='customer', buckets=2) }}
select o.customer, count(*) as orders, sum(o.amount) as amount
from {{ ref('orders') }} as o
group by o.customer
"""
BIG = """
{{ config(materialized='incremental', incremental_strategy='auto', unique_key='customer', buckets=2) }}
select customer, amount from {{ ref('by_customer') }} where amount > 3
"""


def rows(*values: tuple[int, int, int]) -> str:
    return " UNION ALL ".join(
        f"SELECT {id}L AS id, {customer}L AS customer, {amount}L AS amount" for id, customer, amount in values
    )


def layered(shop: Shop) -> None:
    shop.source("raw_orders", rows(*((n, n % 4, n) for n in range(1, 41))))
    shop.model("orders", ORDERS)
    shop.model("by_customer", BY_CUSTOMER)
    shop.model("big", BIG)
    shop.dbt("run")


def messages(result: Any) -> dict[str, str]:
    return {entry.node.name: entry.adapter_response["_message"] for entry in result.results}


def expected(shop: Shop) -> list[tuple[Any, ...]]:
    return sorted(
        shop.sql("SELECT customer, count(*), sum(amount) FROM {s}.orders GROUP BY customer"), key=repr
    )


def test_only_the_groups_that_changed_are_computed_and_only_what_differs_is_written(shop: Shop) -> None:
    layered(shop)
    assert shop.rows("by_customer") == expected(shop)
    # An update, a move to another group, a delete, and a new row: groups 1, 2 and 3
    shop.source("raw_orders", rows((1, 1, 100), (2, 3, 2), (3, 3, -1), (20, 3, 7)))
    told = messages(shop.dbt("run"))
    assert shop.rows("by_customer") == expected(shop)
    assert told["by_customer"] == "INCREMENTAL (3 keys), 3 rows"
    assert told["big"].startswith("INCREMENTAL")
    assert shop.rows("big") == [row[::2] for row in expected(shop) if row[2] > 3]


def test_nothing_changed_nothing_runs(shop: Shop) -> None:
    layered(shop)
    told = messages(shop.dbt("run", "--select", "by_customer", "big"))
    assert told == {"by_customer": "SKIP (no upstream change)", "big": "SKIP (no upstream change)"}


def test_changed_sql_is_computed_anew_and_compared(shop: Shop) -> None:
    layered(shop)
    shop.model("by_customer", BY_CUSTOMER.replace("sum(o.amount)", "max(o.amount)"))
    told = messages(shop.dbt("run", "--select", "by_customer"))
    assert told["by_customer"] == "FULL (changed-sql), 4 rows"
    assert [row[2] for row in shop.rows("by_customer")] == [40, 37, 38, 39]
