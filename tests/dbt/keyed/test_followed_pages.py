"""Pages of docs/how-to are followed: their files, commands and outputs are as they are written there.

The short form has two pages. Tests of the features have their own text, and unit tests parse all pages.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from decimal import Decimal
from typing import Any

import pytest
import yaml

from tests.dbt.keyed.conftest import Shop
from tests.dbt.keyed.followed_pages import Guide

KEYED = "{{ config(materialized='incremental', unique_key='order_id') }}\n"
ORDERS = """{{ config(materialized='incremental', unique_key='order_id', delete_when="status = 'gone'") }}
select order_id, status, amount from {{ source('raw', 'raw_events') }}"""
LINES = """{{ config(materialized='incremental', unique_key=['order_id', 'line']) }}
select order_id, 2 as line, status from {{ source('raw', 'raw_events') }}"""
SOURCE = "select * from {{ source('raw', 'raw_orders') }}"
AMOUNT = "cast(20 + (order_id - 17) * 15.5 / 6 as decimal(10, 2)) as amount"


def orders(status: str = "'open'") -> str:
    """Orders 17 to 56, of which number 17 costs 20.00 and number 23 costs 35.50."""
    return f"select order_id, {status} as status, {AMOUNT} from range(17, 57) as t(order_id)"


def pulled(upstream: str, key: str = "order_id") -> str:
    head = KEYED.replace("order_id", key)
    return f"{head}select * from {{{{ incremental_pull(ref('{upstream}')) }}}}"


def version(shop: Shop, name: str, at: int = -1) -> str:
    return f"1.{shop.log(name)[at].snapshot_id}"


@pytest.mark.long
def test_a_row_is_explained_and_a_run_undone(shop: Shop) -> None:
    shop.source("raw_events", orders())
    shop.model("raw_orders", ORDERS)
    shop.model("orders", pulled("raw_orders"))
    shop.model("customer_sales", pulled("orders"))
    shop.model("order_lines", LINES)
    shop.dbt("run")
    before = shop.rows("orders")
    changed = "case order_id when 17 then 'paid' when 23 then 'gone' when 50 then 'paid' else 'open' end"
    shop.source("raw_events", orders(changed))
    shop.dbt("run", "--select", "raw_orders", "orders")

    known = {
        "1.4410027.6299035": version(shop, "raw_orders"),
        "1.5120933.6299035": version(shop, "raw_orders", 0),
    }
    Guide(shop, "explain-a-row", known=known).follow()
    guide = Guide(shop, "undo-a-run", known={"1.6402915": version(shop, "orders")})
    full: list[Any] = []

    def refreshed() -> None:
        assert shop.rows("orders") == before
        shop.dbt("run", "--full-refresh", "--select", "orders")
        full.extend(shop.rows("orders"))

    guide.follow({"Undo a full refresh": refreshed})
    assert len(full) == len(before) - 1
    assert shop.rows("orders") == before


@pytest.mark.long
def test_a_key_is_erased(shop: Shop) -> None:
    shop.source("raw_orders", orders())
    shop.model(
        "customers",
        f"{KEYED.replace('order_id', 'customer_id')}select order_id + 25 as customer_id, "
        "'ann@example.com' as email from {{ source('raw', 'raw_orders') }}",
    )
    shop.model("orders_by_customer", pulled("customers", "customer_id"))
    shop.dbt("run")
    shop.dbt("run", "--full-refresh", "--select", "customers")
    guide = Guide(shop, "erase-a-key")
    guide.type_in(["savepoint", "customers", "opening"])
    guide.follow()
    for table in ("customers", "orders_by_customer"):
        assert [key for (key,) in shop.rows(table, "customer_id")] == [*range(43, 82)]


def test_a_table_is_adopted(shop: Shop) -> None:
    shop.sql(
        "CREATE TABLE {s}.orders USING iceberg PARTITIONED BY (months(ordered_at)) AS "
        "SELECT id AS order_id, timestamp'2026-01-01 00:00:00' AS ordered_at, 1 AS amount FROM range(10)"
    )
    shop.source("raw_orders", "select 3L order_id, timestamp'2026-02-01 00:00:00' ordered_at, 2 amount")
    guide = Guide(shop, "adopt-a-table")

    def upserted() -> None:
        config = guide.text("config(")
        shop.model("orders", f"{config}select * from {{{{ source('raw', 'raw_orders') }}}}")
        shop.dbt("run")
        assert "upsert" in guide.type_in(["history", "orders"])

    guide.follow({"Undo": upserted})
    assert shop.catalog.load_table(shop.schema, "orders") is not None
    assert shop.rows("orders", "order_id, amount") == [(key, 2 if key == 3 else 1) for key in range(10)]


@pytest.mark.long
def test_rows_are_changed(shop: Shop) -> None:
    days = {key: dt.date.today() - dt.timedelta(days=key * 100) for key in range(1, 6)}
    days[6] = dt.date(2019, 12, 31)
    rows = " union all ".join(
        f"select {key}L order_id, '{'draft' if key == 1 else 'open'}' status, "
        f"1.00 amount, 'x' note, date'{day}' ordered_at, date'{day}' day, "
        "cast(null as timestamp) paid_at, cast(null as decimal(3, 2)) paid_amount"
        for key, day in days.items()
    )
    shop.source("raw_orders", rows)
    shop.source(
        "corrections",
        "select 3L order_id, 5.00 amount union all select 9L, 9.00 union all select 4L, null",
    )
    shop.source("payments", "select 2L order_id, timestamp'2026-01-01' paid_at, 1.50 paid_amount")
    named = [{"name": "orders", "identifier": "raw_orders"}]
    erp = {"name": "erp", "schema": shop.schema, "tables": named}
    shop.file("models/erp.yml", yaml.safe_dump({"version": 2, "sources": [erp]}))
    payments = f"{{{{ config(materialized='ephemeral') }}}} select * from lake.{shop.schema}.payments"
    shop.model("payments", payments)
    shop.model("orders", KEYED + SOURCE)
    shop.dbt("run")

    guide = Guide(shop, "change-rows")
    guide.follow()
    assert shop.rows("orders", "order_id, status, amount, note") == [
        (2, "paid", 1, None),
        (3, "open", 5, None),
        (5, "open", 1, None),
        (9, None, 9, None),
    ]
    counts = "1 row updated, 1 row inserted, 2 rows deleted"
    assert counts in guide.printed["dbt-arctic sql --file merge.sql"]

    shop.model("orders", guide.text("post_hook") + KEYED + SOURCE)
    shop.dbt("run")
    assert shop.rows("orders", "order_id") == [(1,), (2,), (3,), (9,)]

    shop.model("orders", guide.text("merge_update_columns"))
    shop.dbt("run")
    paid = shop.rows("orders", "order_id, status, paid_amount")
    assert paid == [(1, "draft", None), (2, "open", Decimal("1.50")), (3, "open", None), (9, None, None)]

    shop.model("orders_by_day", guide.text("insert_overwrite"))
    shop.dbt("run", "--select", "orders_by_day", "--vars", "{from_day: 2000-01-01}")
    # In the partitions of the batch, what the batch lacks is deleted. The others stay.
    again = rows.replace("select 2L", "select 20L").replace("'open'", "'again'")
    shop.source("raw_orders", again)
    from_day = (days[3]).isoformat()
    shop.dbt("run", "--select", "orders_by_day", "--vars", f"{{from_day: {from_day}}}")
    kept = [(4, "open"), (5, "open"), (6, "open")]
    replaced = [(1, "draft"), (20, "again"), (3, "again")]
    assert shop.rows("orders_by_day", "order_id, status") == sorted([*kept, *replaced], key=repr)


@pytest.mark.long
def test_a_change_is_tried_on_clones_and_reviewed(shop: Shop) -> None:
    profiles = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    prod = profiles["shop"]["outputs"]["dev"]
    ci = {**prod, "schema": f"{shop.schema}_ci"}
    profiles["shop"] = {"target": "prod", "outputs": {"prod": prod, "ci": ci}}
    shop.file("profiles.yml", yaml.safe_dump(profiles))
    shop.source("raw_events", orders())
    shop.model("orders", ORDERS)
    shop.model("customers", LINES)
    shop.dbt("run")
    before = shop.rows("orders")
    shutil.copytree(shop.folder / "target", shop.folder / "prod-state")
    taxed = (
        "select order_id, status, cast(amount * if(order_id in (17, 23), 1.21, 1) as decimal(10, 2)) amount, "
        "cast(0 as decimal(10, 2)) as tax"
    )
    head = "config(on_schema_change='append_new_columns', "
    changed = ORDERS.replace("config(", head).replace("select order_id, status, amount", taxed)
    shop.model("orders", changed)

    def reviewed() -> None:
        shop.dbt("clone", "--target", "ci", "--state", "prod-state", "--select", "customers")
        Guide(shop, "review-a-change", numbers=True).follow()

    Guide(shop, "test-on-clones").follow({"Drop the schema": reviewed})
    assert shop.sql(f"SHOW SCHEMAS IN lake LIKE '{ci['schema']}'") == []
    assert shop.rows("orders") == before


def land(shop: Shop, path: str, *lines: str) -> None:
    shop.file(f"landing/{path}", "".join(f"{line}\n" for line in lines))


def click(number: int, page: str = "home") -> str:
    return json.dumps({"click_id": number, "page": page, "at": "2026-01-01 10:00:00", "day": "2026-01-01"})


@pytest.mark.long
def test_files_are_loaded(shop: Shop) -> None:
    land(shop, "clicks/a.json", click(1), click(2))
    land(shop, "clicks/c.json", click(3))
    land(shop, "visits/a.csv", "at,page,seconds", "2026-01-01 10:00:00,home,3")
    landing = shop.folder / "models" / "landing.yml"
    written = shop.folder / "models" / "landing"
    tables: dict[str, Any] = {}

    def change(old: str, new: str) -> None:
        landing.write_text(landing.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

    def loaded() -> None:
        shop.dbt("build", "--select", "models/landing")
        assert shop.rows("clicks", "click_id") == [(1,), (2,), (3,)]
        (source,) = yaml.safe_load((written / "landing.yml").read_text(encoding="utf-8"))["sources"]
        tables.update({table["name"]: table["config"] for table in source["tables"]})
        shutil.rmtree(written)

    def rejected() -> None:
        (source,) = yaml.safe_load(landing.read_text(encoding="utf-8"))["sources"]
        settings = source["tables"][0]["config"]["meta"]["arctic"]
        assert settings == tables["clicks"]["meta"]["arctic"], "as ingest init has written it"
        shop.dbt("run", "--full-refresh")
        change("format: json", "format: json\n              on_bad_row: quarantine")
        lines = [click(number) for number in range(100, 140)]
        lines[16], lines[39] = '{"click_id": 9, "at": "soon"}', '{"click_id":'
        land(shop, "clicks/b.json", *lines)

    def corrected() -> None:
        change("at: timestamp", "at: string")
        model = shop.folder / "models" / "clicks.sql"
        text = model.read_text(encoding="utf-8")
        shop.model("clicks", text.replace("page, at,", "page, try_cast(at as timestamp) at,"))

    def more_files() -> None:
        assert (9, None) in shop.rows("clicks", "click_id, at")
        land(shop, "clicks/d.json", click(4))
        land(shop, "clicks/a.json", click(1), click(5))
        shop.sql("DROP TABLE {s}.visits")
        other = {"name": "landing", "tables": [{"name": "visits", "config": tables["visits"]}]}
        shop.file("models/visits.yml", yaml.safe_dump({"sources": [other]}))
        pull = "select * from {{ incremental_pull(source('landing', 'visits')) }}"
        shop.model("visits", "{{ config(materialized='incremental') }}" + pull)

    first = {"dbt-arctic ingest init": 6}
    guide = Guide(shop, "load-files", schema="dev", only=first)
    guide.follow(
        {
            "Declare the source": loaded,
            "Rows that do not fit": rejected,
            "Replay rejected rows": corrected,
            "What the next run reads": more_files,
        }
    )


def test_tables_are_kept_current(shop: Shop) -> None:
    columns = "{click_id: bigint, page: string, at: timestamp}"
    settings = f"{{arctic: {{from: files, path: landing/clicks, format: json, columns: {columns}}}}}"
    table = f"{{name: clicks, config: {{meta: {settings}}}}}"
    shop.file("models/landing.yml", f"sources: [{{name: landing, tables: [{table}]}}]")
    land(shop, "clicks/1.json", click(1), click(2, "cart"))

    def later() -> None:
        land(shop, "clicks/2.json", click(3))

    Guide(
        shop,
        "keep-tables-current",
        more={"dbt-arctic keep": ("--for", "1s")},
        only={"dbt-arctic keep": 5},
    ).follow({"See how late a model is": later})
    assert shop.rows("clicks_by_page") == [("cart", 1), ("home", 1)]


@pytest.mark.long
def test_tables_are_compacted(shop: Shop) -> None:
    shop.source("raw_orders", "select id as order_id, id % 5 as customer, 1 as amount from range(100)")
    shop.source("raw_events", "select 1 as n")
    shop.model("orders", KEYED + SOURCE)
    summed = "select customer, sum(amount) as amount from {{ ref('orders') }} group by customer"
    auto = "{{ config(materialized='incremental', incremental_strategy='auto', unique_key='customer') }}"
    shop.model("revenue", auto + summed)
    events = "{{ config(materialized='incremental') }} select 1 as n from {{ source('raw', 'raw_events') }}"
    shop.model("events", events)
    shop.dbt("run")
    for amount in (2, 3):
        changed = f"select id as order_id, id % 5 as customer, {amount} as amount from range(50)"
        shop.source("raw_orders", changed)
        shop.dbt("run")

    def again() -> None:
        shop.dbt("run")
        shop.dbt("run", "--vars", "{shed: true}")

    guide = Guide(
        shop,
        "compact",
        schema="sales",
        only={"dbt-arctic status": 1, "dbt-arctic expire": 1, "dbt-arctic history": 1},
        subset=("dbt-arctic compact",),
    )
    guide.follow({"Compaction history": again})
    done = guide.printed["dbt-arctic history --compaction"]
    assert "  major  " in done
    assert "  full   " in done, "at the end of a run"
    Guide(shop, "a-day-of-an-operator").follow()
    assert (shop.folder / "public" / "tables.html").stat().st_size > 10_000
