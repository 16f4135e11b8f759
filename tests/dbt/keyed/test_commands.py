"""dbt's commands and flags on keyed models: retry, show, `--empty`, `--defer`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dbt.keyed.conftest import Shop

ORDERS = """{{ config(materialized='incremental', unique_key='id', delete_when='gone') }}
select id, amount, gone from {{ source('raw', 'raw_orders') }}"""
DOUBLED = """{{ config(materialized='incremental', unique_key='id') }}
select id, EXPRESSION as twice, _action from {{ incremental_pull(ref('orders')) }}"""


@pytest.fixture
def layers(shop: Shop) -> Shop:
    """A keyed model, and one that pulls from it."""
    shop.source("raw_orders", "select col1 id, col2 amount, false gone from values (1L, 10), (2L, 20)")
    shop.model("orders", ORDERS)
    shop.model("doubled", DOUBLED.replace("EXPRESSION", "amount * 2"))
    return shop


def statuses(results: Any) -> dict[str, str]:
    return {result.node.name: str(result.status) for result in results.results}


def test_empty_runs_are_filled_later_a_retry_takes_up_what_failed_and_show_commits_nothing(
    layers: Shop,
) -> None:
    shop = layers
    shop.dbt("run", "--empty")
    assert (shop.rows("orders"), shop.rows("doubled")) == ([], [])
    shop.dbt("run")
    assert shop.rows("doubled", "id, twice") == [(1, 20), (2, 40)]

    shop.source("raw_orders", "select 1L id, 11 amount, false gone union all select 2L, 0, true")
    shop.model("doubled", DOUBLED.replace("EXPRESSION", "cast(assert_true(false) as int)"))
    shop.fail("run")
    commits = len(shop.log("orders"))
    shop.model("doubled", DOUBLED.replace("EXPRESSION", "amount * 2"))
    assert statuses(shop.dbt("retry")) == {"doubled": "success"}
    assert shop.rows("doubled", "id, twice") == [(1, 22)]
    assert len(shop.log("orders")) == commits

    commits = len(shop.log("doubled"))
    shop.source("raw_orders", "select 3L id, 30 amount, false gone")
    shop.dbt("run", "--select", "orders")

    def shown(*arguments: str) -> list[tuple[Any, ...]]:
        table = shop.dbt("show", *arguments).results[0].agate_table
        return sorted(tuple(row.values()) for row in table.rows)

    assert shown("--inline", "select id, amount from {{ ref('orders') }}") == [(1, 11), (3, 30)]
    assert len(shown("--inline", "select id from {{ ref('orders') }}", "--limit", "1")) == 1
    # What the model's own next run would get: the change only.
    assert shown("--select", "doubled") == [(3, 60, "U")]
    assert len(shop.log("doubled")) == commits


def test_show_runs_the_statements_of_a_header(shop: Shop) -> None:
    shop.model(
        "zoned",
        """{% call set_sql_header(config) %} set spark.sql.session.timeZone=Asia/Tokyo; {% endcall %}
        select cast(timestamp'2026-01-01 00:00:00Z' as string) as at""",
    )
    table = shop.dbt("show", "--select", "zoned").results[0].agate_table
    assert [tuple(row.values()) for row in table.rows] == [("2026-01-01 09:00:00",)]


def test_an_automatic_model_keeps_its_rows_with_empty(layers: Shop) -> None:
    """What a part of the upstream's rows does not give is not gone."""
    shop = layers
    # With one bucket, a full refresh reads fewer files than an incremental one.
    shop.model("orders", ORDERS.replace("unique_key='id'", "unique_key='id', buckets=8"))
    auto = "{{ config(materialized='incremental', unique_key='id', incremental_strategy='auto', buckets=8) }}"
    shop.model("doubled", f"{auto} select id, amount * 2 as twice from {{{{ ref('orders') }}}}")
    shop.dbt("run")
    commits = len(shop.log("doubled"))
    results = shop.dbt("run", "--empty", "--select", "doubled").results
    assert results[0].adapter_response["_message"].startswith("SKIP")
    shop.source("raw_orders", "select 1L id, 11 amount, false gone union all select 2L, 0, true")
    shop.dbt("run", "--select", "orders")
    shop.dbt("run", "--sample", "3 days", "--select", "doubled")
    assert (len(shop.log("doubled")), shop.rows("doubled")) == (commits, [(1, 20), (2, 40)])
    results = shop.dbt("run", "--select", "doubled").results
    assert results[0].adapter_response["strategy"] == "incremental"
    assert shop.rows("doubled") == [(1, 22)]


def test_docs_have_the_tables_of_a_schema_with_capitals(shop: Shop) -> None:
    loud = "config(materialized='table', schema='Loud')"
    shop.model("loud", f"{{{{ {loud} }}}} select 1 as id")
    shop.dbt("run")
    shop.dbt("docs", "generate")
    catalog = json.loads((shop.folder / "target" / "catalog.json").read_text())
    assert "model.shop.loud" in catalog["nodes"]


@pytest.mark.usefixtures("dbt_log")
def test_a_table_that_cannot_be_read_is_missing_in_the_docs_and_the_others_are_there(shop: Shop) -> None:
    for name in ("good", "lost"):
        shop.model(name, "{{ config(materialized='table') }} select 1 as id")
    shop.dbt("run")
    lost = shop.catalog.load_table(shop.schema, "lost")
    assert lost is not None
    metadata = Path(lost.location.removeprefix("file:"), "metadata")
    metadata.rename(metadata.with_name("aside"))
    try:
        shop.dbt("docs", "generate")
    finally:
        metadata.with_name("aside").rename(metadata)
    catalog = json.loads((shop.folder / "target" / "catalog.json").read_text())
    assert list(catalog["nodes"]) == ["model.shop.good"]
    assert f"{shop.schema}.lost" in (shop.folder / "logs" / "dbt.log").read_text()


def test_a_deferred_model_pulls_from_the_keyed_table_of_another_schema(layers: Shop) -> None:
    shop = layers
    shop.dbt("run", "--select", "orders")
    shutil.copytree(shop.folder / "target", shop.folder / "state")
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text())
    profile["shop"]["outputs"]["ci"] = {**profile["shop"]["outputs"]["dev"], "schema": f"{shop.schema}_ci"}
    shop.file("profiles.yml", yaml.safe_dump(profile))

    def run_in_ci() -> tuple[str, list[tuple[Any, ...]]]:
        arguments = (
            "--select",
            "doubled",
            "--target",
            "ci",
            "--defer",
            "--state",
            str(shop.folder / "state"),
        )
        results = shop.dbt("run", *arguments)
        rows = shop.sql(f"SELECT id, twice FROM lake.{shop.schema}_ci.doubled")
        return results.results[0].adapter_response["_message"], sorted(rows)

    assert run_in_ci()[1] == [(1, 20), (2, 40)]
    shop.source("raw_orders", "select 1L id, 11 amount, false gone union all select 2L, 0, true")
    shop.dbt("run", "--select", "orders")
    assert run_in_ci() == ("UPSERT 2", [(1, 22)])
    assert not shop.catalog.list_relations(f"{shop.schema}_ci")[0].name.startswith("orders")
