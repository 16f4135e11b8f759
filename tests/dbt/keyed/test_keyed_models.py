"""Keyed models as dbt runs them: built, appended to, rebuilt, changed in shape, documented."""

from __future__ import annotations

import json

import pytest

from dbt_arctic.refresh import lease
from tests.dbt.keyed.conftest import Shop

ORDERS = """
{{ config(materialized='incremental', unique_key='id', buckets=2, delete_when="status = 'gone'") }}
select id, status, amount from {{ source('raw', 'raw_orders') }}
"""


def orders(*rows: str) -> str:
    """Rows of the source."""
    return f"SELECT * FROM VALUES {', '.join(rows)} AS t(id, status, amount)"


THREE = orders("(1L, 'new', 10.0D)", "(2L, 'new', 20.0D)", "(3L, 'new', 30.0D)")


def test_the_first_run_builds_and_later_ones_append_upserts_and_deletes(shop: Shop) -> None:
    shop.source("raw_orders", THREE)
    shop.model("orders", ORDERS)
    shop.dbt("run")
    base = shop.state("orders", "base").current_snapshot_id
    shop.source(
        "raw_orders",
        orders("(2L, 'paid', 21.0D)", "(3L, 'gone', 0.0D)", "(4L, 'new', 40.0D)"),
    )
    result = shop.dbt("run").results[0]

    assert shop.rows("orders") == [(1, "new", 10.0), (2, "paid", 21.0), (4, "new", 40.0)]
    assert result.adapter_response["rows_affected"] == 3
    assert shop.state("orders", "base").current_snapshot_id == base
    assert [snapshot.operation for snapshot in shop.log("orders")] == ["append", "append"]


def test_an_upsert_is_one_statement_and_reads_nothing_of_the_target(shop: Shop) -> None:
    shop.source("raw_orders", THREE)
    shop.model("orders", ORDERS)
    shop.dbt("run")
    shop.dbt("run")
    assert len(shop.script.ran) == 1, shop.script.ran
    assert "INSERT INTO" in shop.script.ran[0]
    assert "__base_" not in shop.script.ran[0]
    assert shop.script.jobs <= 3


def test_a_build_renews_its_lease_on_a_connection_of_its_own(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWALS", 100)  # a second: the statements of a build take longer than that
    shop.source("raw_orders", THREE)
    shop.model("orders", ORDERS.replace("buckets=2", "buckets=2, lease_timeout='1 second'"))
    shop.dbt("run")
    renewals = [sql for sql in shop.script.ran if lease.PROPERTY_RENEWED in sql]
    assert renewals
    assert '"connection_name": "beside"' in renewals[0]
    assert len(shop.rows("orders")) == 3


def test_a_full_refresh_builds_the_next_generation_and_keeps_one_before_it(shop: Shop) -> None:
    shop.source("raw_orders", THREE)
    shop.model("orders", ORDERS)
    for _ in range(3):
        shop.dbt("run", "--full-refresh")
    names = {entry.name for entry in shop.catalog.list_relations(shop.schema)} - {"raw_orders"}
    assert names == {"orders", "orders__base_2", "orders__change_2", "orders__base_3", "orders__change_3"}
    assert len(shop.rows("orders")) == 3


def test_an_action_column_decides_between_upsert_and_delete(shop: Shop) -> None:
    shop.source("raw_orders", "SELECT 1L AS id, 'a' AS name, 'U' AS op UNION ALL SELECT 2L, 'b', 'U'")
    shop.model(
        "named",
        """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
        select id, name, op as _action from {{ source('raw', 'raw_orders') }}""",
    )
    shop.dbt("run")
    shop.source("raw_orders", "SELECT 1L AS id, CAST(NULL AS STRING) AS name, 'D' AS op")
    shop.dbt("run")
    assert shop.rows("named") == [(2, "b")]


def test_a_composite_key_with_text_beyond_ascii(shop: Shop) -> None:
    shop.source(
        "raw_orders",
        "SELECT 'Zürich' AS city, DATE'2026-01-01' AS day, 1 AS n "
        "UNION ALL SELECT '東京', DATE'2026-01-01', 2",
    )
    shop.model(
        "visits",
        """{{ config(materialized='incremental', unique_key=['city', 'day'], partition_by='month(day)',
                     sort_by='day', buckets=2) }}
        select city, day, n from {{ source('raw', 'raw_orders') }}""",
    )
    shop.dbt("run")
    shop.source("raw_orders", "SELECT '東京' AS city, DATE'2026-01-01' AS day, 7 AS n")
    shop.dbt("run")
    assert sorted(row[2] for row in shop.rows("visits")) == [1, 7]


def test_the_greatest_row_of_a_key_wins_where_deduplicate_by_orders_them(shop: Shop) -> None:
    shop.source(
        "raw_orders",
        "SELECT * FROM VALUES (1L, 'old', 1), (1L, 'new', 2), (2L, 'only', NULL) AS t(id, name, seq)",
    )
    shop.model(
        "latest",
        """{{ config(materialized='incremental', unique_key='id', deduplicate_by='seq', buckets=2) }}
        select id, name, seq from {{ source('raw', 'raw_orders') }}""",
    )
    shop.dbt("run")
    assert shop.rows("latest", "id, name") == [(1, "new"), (2, "only")]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("append_new_columns", [(1, 10.0, None, None), (4, None, "new", 9)]),
        ("sync_all_columns", [(1, None, None), (4, "new", 9)]),
    ],
)
def test_schema_changes_reach_base_change_and_view(shop: Shop, mode: str, expected: list[object]) -> None:
    config = "{{ config(materialized='incremental', unique_key='id', buckets=2, on_schema_change='MODE') }}\n"
    config = config.replace("MODE", mode)
    shop.model("wide", config + "select 1L as id, 10.0D as amount")
    shop.dbt("run")
    shop.model("wide", config + "select 4L as id, 'new' as note, 9 as stars")
    shop.dbt("run")
    assert shop.rows("wide") == expected
    shop.dbt("run-operation", "compact", "--args", "{table: wide, trim_grace: 0}")
    assert shop.rows("wide") == expected


def test_a_changed_schema_is_refused_where_the_model_says_so(shop: Shop) -> None:
    config = "{{ config(materialized='incremental', unique_key='id', buckets=2, on_schema_change='fail') }}\n"
    shop.model("strict", config + "select 1L as id, 10.0D as amount")
    shop.dbt("run")
    shop.model("strict", config + "select 1L as id, 10.0D as amount, 1 as more")
    assert "AR-305" in shop.fail("run")
    assert shop.rows("strict") == [(1, 10.0)]


def test_with_ignore_a_new_column_is_left_out(shop: Shop) -> None:
    config = "{{ config(materialized='incremental', unique_key='id', buckets=2) }}\n"
    shop.model("narrow", config + "select 1L as id, 10.0D as amount")
    shop.dbt("run")
    shop.model("narrow", config + "select 2L as id, 20.0D as amount, 1 as more")
    shop.dbt("run")
    assert shop.rows("narrow") == [(1, 10.0), (2, 20.0)]


def test_side_tables_do_not_show_and_a_keyed_table_is_documented_as_one(shop: Shop) -> None:
    shop.source("raw_orders", THREE)
    shop.model(
        "orders", ORDERS.replace("buckets=2", "buckets=2, persist_docs={'relation': true, 'columns': true}")
    )
    shop.file(
        "models/orders.yml",
        "version: 2\nmodels:\n- name: orders\n  description: Orders it's\n"
        "  columns: [{name: id, description: The key}]\n",
    )
    shop.dbt("run")
    shop.dbt("docs", "generate")
    catalog = json.loads((shop.folder / "target" / "catalog.json").read_text())
    assert list(catalog["nodes"]) == ["model.shop.orders"]
    node = catalog["nodes"]["model.shop.orders"]
    assert node["metadata"]["comment"] == "Orders it's"
    assert node["columns"]["id"]["comment"] == "The key"
    assert [column["type"] for column in node["columns"].values()] == ["bigint", "string", "double"]


def test_a_column_is_the_same_in_any_case(shop: Shop) -> None:
    config = "{{ config(materialized='incremental', unique_key='ID', buckets=2) }}\n"
    shop.model("cased", config + "select 1L as id, 'a' as Name")
    shop.dbt("run")
    shop.model("cased", config + "select 1L as Id, 'b' as NAME")
    shop.dbt("run")
    assert shop.rows("cased") == [(1, "b")]


def test_a_plain_table_that_becomes_keyed_is_built_from_all_rows(shop: Shop) -> None:
    model = """{{ config(materialized='incremental', unique_key='id', incremental_strategy='STRATEGY') }}
        select * from range(3) {% if is_incremental() %} where false {% endif %}"""
    shop.model("m", model.replace("STRATEGY", "merge"))
    shop.dbt("run")
    shop.model("m", model.replace("STRATEGY", "upsert"))
    shop.dbt("run")
    assert shop.rows("m") == [(0,), (1,), (2,)]
    shop.model("m", model.replace("STRATEGY", "merge"))
    shop.dbt("run")
    assert shop.rows("m") == [(0,), (1,), (2,)]
