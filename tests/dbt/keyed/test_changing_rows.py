"""Rows that are changed: `dbt-arctic sql`, `keyed_sql()`, models of some columns, overwrites."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.dbt.keyed.conftest import Shop, Terminal

ORDERS = """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
select id, amount, note from {{ source('raw', 'raw_orders') }}"""
COPY = """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
select id, amount, note, _action from {{ incremental_pull(ref('orders')) }}"""


def rows(*values: tuple[int, int, str]) -> str:
    listed = ", ".join(f"({id_}L, {amount}, '{note}')" for id_, amount, note in values)
    return f"select col1 id, col2 amount, col3 note from values {listed}"


@pytest.fixture
def sql(shop: Shop) -> Callable[..., str]:
    shop.source("raw_orders", rows((1, 10, "a"), (2, 20, "b"), (3, 30, "c")))
    shop.model("orders", ORDERS)
    shop.model("copy", COPY)
    shop.dbt("run")
    return partial(Terminal(shop), "sql")


REFUSED = {
    "insert into orders values (1, 2, 'x')": "MERGE INTO",
    "drop table orders": "DROP",
    "update raw_orders set amount = 1": "plain table",
    "update nothing set amount = 1": "there is no table",
    "update orders set amount": "column = value",
    "select 1; select 2": "several",
    "update `a.orders` set amount = 1": "contains a dot",
}
"""Statements that the command is not for, and what it says."""


def test_rows_are_changed_on_the_command_line_by_macros_and_downstream(
    shop: Shop, sql: Callable[..., str], tmp_path: Path
) -> None:
    before = shop.rows("orders"), shop.rows("raw_orders")
    for statement, words in REFUSED.items():
        assert words in sql(statement, code=2)
    assert (shop.rows("orders"), shop.rows("raw_orders")) == before

    assert sql("update orders set note = 'x' where amount > 10").strip().endswith("orders: 2 rows updated.")
    merge = """merge into orders using (select 1L id, 5 amount union all select 9L, 9) s on orders.id = s.id
        when matched then update set amount = s.amount
        when not matched then insert (id, amount) values (s.id, s.amount)
        when not matched by source and orders.id = 3 then delete"""
    file = tmp_path / "merge.sql"
    file.write_text(merge)
    plan = sql("-f", str(file), "--dry-run")
    assert "-- create_branch" in plan
    assert "fast_forward" in plan
    assert shop.rows("orders") == [(1, 10, "a"), (2, 20, "x"), (3, 30, "x")]
    assert json.loads(sql("--file", "-", "--json", answer=merge)) == {
        "table": f"lake.{shop.schema}.orders",
        "updated": 1,
        "inserted": 1,
        "deleted": 1,
    }
    expected = [(1, 5, "a"), (2, 20, "x"), (9, 9, None)]
    assert shop.rows("orders") == expected
    nobody = "delete from orders where id in (select id from raw_orders where id = 77)"
    assert "no row affected" in sql(nobody)
    assert json.loads(sql("select id from orders order by id", "--json")) == [{"id": 1}, {"id": 2}, {"id": 9}]
    assert "There are more than 1" in sql("with o as (select * from orders) select * from o;", "--limit", "1")
    assert json.loads(sql("select 1 as one; -- done", "--json")) == [{"one": 1}]
    assert "There are more than 1" in sql("describe orders", "--limit", "1")
    assert "several columns called id" in sql("select id, id from orders", "--json", code=2)
    assert "is not in the range" in sql("select 1", "--limit", "-1", code=2)
    file.write_bytes(b"select '\xff'")
    assert "not text in UTF-8" in sql("-f", str(file), code=2)
    shop.dbt("run", "--select", "copy")
    assert shop.rows("copy") == expected

    hook = "post_hook=\"{{ keyed_sql('delete from ' ~ this ~ ' where amount >= 30') }}\""
    shop.model("orders", ORDERS.replace("buckets=2", f"buckets=2, {hook}"))
    shop.dbt("run", "--select", "orders")
    assert shop.rows("orders", "id, amount") == [(1, 10), (2, 20), (9, 9)]
    operation = ("run-operation", "keyed_sql", "--args")
    shop.dbt(*operation, "{sql: update orders set amount = amount + 1}")
    assert shop.rows("orders", "id, amount") == [(1, 11), (2, 21), (9, 10)]
    assert not shop.try_dbt(*operation, "{sql: select 1}").success
    shop.file("macros/truncate.sql", "{% macro truncate(name) %}{% do adapter.truncate_relation(ref(name)) %}"
              "{% endmacro %}")  # fmt: skip
    shop.dbt("run-operation", "truncate", "--args", "{name: orders}")
    assert shop.rows("orders") == []


def test_a_model_that_produces_some_columns_keeps_the_others(shop: Shop, sql: Callable[..., str]) -> None:
    del sql
    partial = """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
    {{ config(merge_update_columns=['amount']) }}
    {% if is_incremental() %}
    select id, amount, _action from {{ incremental_pull(source('raw', 'raw_payments'), unique_key='id') }}
    {% else %}
    select id, amount, note from {{ source('raw', 'raw_orders') }}
    {% endif %}"""
    shop.file(
        "models/payments.yml",
        f"sources: [{{name: pay, schema: {shop.schema}, tables: [{{name: raw_payments}}]}}]",
    )
    shop.source("raw_payments", "select col1 id, col2 amount from values (2L, 21), (7L, 70)")
    shop.model("orders", partial.replace("source('raw', 'raw_payments')", "source('pay', 'raw_payments')"))
    shop.dbt("run", "--select", "orders")
    expected = [(1, 10, "a"), (2, 21, "b"), (3, 30, "c"), (7, 70, None)]
    assert shop.rows("orders") == expected
    (commit, *_) = shop.log("orders")
    assert "raw_payments" in commit.summary["arctic.consumed"]
    shop.sql("insert into {s}.raw_payments values (3L, 31)")
    shop.dbt("run", "--select", "orders", "copy")
    expected[2] = (3, 31, "c")
    assert shop.rows("orders") == shop.rows("copy") == expected


def test_an_overwrite_replaces_partitions(shop: Shop, sql: Callable[..., str]) -> None:
    del sql
    config = "unique_key='id', buckets=2, partition_by='note', incremental_strategy='insert_overwrite'"
    shop.model("orders", ORDERS.replace("unique_key='id', buckets=2", config))
    shop.dbt("run", "--select", "orders", "--full-refresh")
    shop.source("raw_orders", rows((4, 40, "a"), (2, 20, "c")))
    result: Any = shop.dbt("run", "--select", "orders").results[0]
    assert result.adapter_response["_message"] == "OVERWRITE 4"
    assert shop.rows("orders") == [(2, 20, "c"), (4, 40, "a")]
    shop.dbt("run", "--select", "copy")
    assert shop.rows("copy") == [(2, 20, "c"), (4, 40, "a")]
