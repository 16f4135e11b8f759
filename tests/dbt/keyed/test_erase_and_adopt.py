"""`erase`, `adopt` and `clean --files` as typed, and the models that go on afterwards."""

from __future__ import annotations

from tests.dbt.keyed.conftest import Shop, Terminal

ORDERS = """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
select id, amount from {{ source('raw', 'raw_orders') }}"""
DAILY = """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
select id, amount, _action from {{ incremental_pull(ref('orders')) }}"""


def test_a_key_is_erased_here_and_where_it_was_pulled_to(shop: Shop, type_in: Terminal) -> None:
    shop.source("raw_orders", "select col1 id, col2 amount from values (1L, 10), (770001L, 20)")
    shop.model("orders", ORDERS)
    shop.model("daily", DAILY)
    shop.dbt("run")
    type_in("savepoint", "orders", "opening")
    asked = type_in("erase", "orders", "--key", "id=770001", "--dry-run")
    assert "1 key of lake" in asked
    assert "opening of orders__base_1" in asked
    assert "daily" in asked
    assert "keep copies" in type_in("erase", "orders", "--key", "id=770001", code=2)
    type_in("erase", "orders", "--key", "id=770001", "--force", answer="n\n", code=1)
    assert len(shop.rows("orders")) == 2
    done = type_in("erase", "orders", "--where", "amount = 20", "--force", "--yes")
    assert "1 key of lake" in done
    assert f"erase there too: lake.{shop.schema}.daily" in done
    assert shop.rows("orders") == [(1, 10)]
    told = type_in.json("erase", "daily", "--key", "id=770001", "--yes")
    assert [side["rows"] for side in told["sides"]] == [1, 0]
    assert type_in.json("verify")["findings"] == []
    assert "No row" in type_in("erase", "orders", "--where", "amount = 20")
    for wrong in (["--key", "id"], ["--key", "id=1", "--where", "true"], []):
        type_in("erase", "orders", *wrong, code=2)
    # Both go on where they were.
    shop.source("raw_orders", "select 2L id, 30 amount")
    shop.dbt("run")
    assert shop.rows("daily") == [(1, 10), (2, 30)]
    assert type_in.json("history", "orders", "--limit", "1")[0]["kind"] == "upsert"


def test_a_merged_table_goes_on_as_a_keyed_one(shop: Shop, type_in: Terminal) -> None:
    shop.source("raw_orders", "select col1 id, col2 amount from values (1L, 10), (2L, 20)")
    merging = ORDERS.replace("buckets=2", "incremental_strategy='merge', partition_by=['bucket(4, id)']")
    shop.model("orders", merging)
    shop.dbt("run")
    shop.source("raw_orders", "select 2L id, 21 amount")
    shop.dbt("run")
    assert "no column nowhere" in type_in("adopt", "orders", "--key", "nowhere", code=2)
    plan = type_in.json("adopt", "orders", "--key", "id", "--dry-run")
    assert (plan["keyed"], plan["joins_in_place"]) == (False, True)
    type_in("adopt", "orders", "--key", "id", answer="n\n", code=1)
    assert "is a keyed table with the key id" in type_in("adopt", "orders", "--key", "id", "--yes")
    shop.model("orders", ORDERS.replace("buckets=2", "buckets=4"))
    shop.model("daily", DAILY)
    shop.source("raw_orders", "select col1 id, col2 amount from values (1L, 11), (3L, 30)")
    shop.dbt("run")
    assert "INSERT INTO" in str(shop.script.ran)
    assert shop.rows("orders") == [(1, 11), (2, 21), (3, 30)]
    assert [commit.operation for commit in shop.log("orders")] == ["append", "append"]
    assert type_in.json("verify")["findings"] == []
    assert "There are no leftovers" in type_in("clean", "--files")
    assert "is a keyed table" in type_in("adopt", "orders", "--key", "id", code=2)

    assert "not merged" in type_in("adopt", "orders", "--undo", "--yes", code=2)
    shop.dbt("run-operation", "compact", "--args", "{table: orders, trim_grace: 0}")
    assert "is a plain table" in type_in("adopt", "orders", "--undo", "--yes")
    assert shop.rows("orders") == [(1, 11), (2, 21), (3, 30)]


def test_the_next_run_shows_a_table_whose_adoption_was_cut_off(shop: Shop, type_in: Terminal) -> None:
    shop.source("raw_orders", "select 1L id, 10 amount")
    shop.model("orders", ORDERS.replace("buckets=2", "incremental_strategy='merge'"))
    shop.dbt("run")
    type_in("adopt", "orders", "--key", "id", "--yes")
    shop.sql("ALTER TABLE {s}.orders__base_1 SET TBLPROPERTIES ('arctic.moving'='true')")
    shop.sql("DROP VIEW {s}.orders")
    assert type_in.json("verify", code=1)["findings"][0]["kind"] == "view-missing"
    assert "is a side table" in type_in("adopt", "orders__base_1", "--key", "id", "--yes", code=2)
    assert "with the key id was interrupted" in type_in("adopt", "orders", "--key", "amount", code=2)
    shop.model("orders", ORDERS.replace("buckets=2, ", "").replace(", buckets=2", ""))
    shop.source("raw_orders", "select 2L id, 20 amount")
    shop.dbt("run")
    assert shop.rows("orders") == [(1, 10), (2, 20)], "it was not built anew"
