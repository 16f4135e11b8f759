"""Keyed models as dbt runs them: built, appended to, rebuilt, changed in shape, documented."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.store import lease
from tests.dbt.keyed.conftest import Shop, opened_shop

ORDERS = """
{{ config(materialized='incremental', unique_key='id', buckets=2, delete_when="status = 'gone'") }}
select id, status, amount from {{ source('raw', 'raw_orders') }}
"""


def orders(*rows: str) -> str:
    """Rows of the source."""
    return f"SELECT * FROM VALUES {', '.join(rows)} AS t(id, status, amount)"


THREE = orders("(1L, 'new', 10.0D)", "(2L, 'new', 20.0D)", "(3L, 'new', 30.0D)")


def test_the_first_run_builds_later_ones_append_and_a_full_refresh_keeps_one_generation(shop: Shop) -> None:
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
    # An upsert is one statement, which reads nothing of the table.
    assert len(shop.script.ran) == 1, shop.script.ran
    assert "INSERT INTO" in shop.script.ran[0]
    assert "__base_" not in shop.script.ran[0]
    assert shop.script.jobs <= 3

    for _ in range(2):
        shop.dbt("run", "--full-refresh")
    names = {entry.name for entry in shop.catalog.list_relations(shop.schema)} - {"raw_orders"}
    assert names == {"orders", "orders__base_2", "orders__change_2", "orders__base_3", "orders__change_3"}
    assert [row[0] for row in shop.rows("orders")] == [2, 4]


def test_a_build_renews_its_lease_on_a_connection_of_its_own(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RENEWALS", 100)  # a second: the statements of a build take longer than that
    shop.source("raw_orders", THREE)
    shop.model("orders", ORDERS.replace("buckets=2", "buckets=2, lease_timeout='1 second'"))
    shop.dbt("run")
    renewals = [sql for sql in shop.script.ran if lease.PROPERTY_RENEWED in sql]
    assert renewals
    assert '"connection_name": "second"' in renewals[0]
    assert len(shop.rows("orders")) == 3


KEYED = "materialized='incremental', unique_key='id', buckets=2"
VISITS = KEYED.replace("'id'", "['city', 'day'], partition_by='month(day)', sort_by='day'")
TWO_RUNS = {
    "named": (
        KEYED,
        "select 1L as id, 'a' as name, 'U' as _action union all select 2L, 'b', 'U'",
        "select 1L as id, cast(null as string) as name, 'D' as _action",
    ),
    "visits": (
        VISITS,
        "select city, date'2026-01-01' as day, n from values ('Zürich', 1), ('東京', 2) as t(city, n)",
        "select '東京' as city, date'2026-01-01' as day, 7 as n",
    ),
    "latest": (
        f"{KEYED}, deduplicate_by='seq'",
        "select * from values (1L, 'old', 1), (1L, 'new', 2), (2L, 'only', null) as t(id, name, seq)",
        "select * from values (2L, 'newer', 4), (2L, 'older', 3) as t(id, name, seq)",
    ),
    "appended": (
        f"{KEYED}, on_schema_change='append_new_columns'",
        "select 1L as id, 10.0D as amount",
        "select 4L as id, 'new' as note, 9 as stars",
    ),
    "synced": (
        f"{KEYED}, on_schema_change='sync_all_columns'",
        "select 1L as id, 10.0D as amount",
        "select 4L as id, 'new' as note, 9 as stars",
    ),
    "strict": (
        f"{KEYED}, on_schema_change='fail'",
        "select 1L as id, 10.0D as amount",
        "select 1L as id, 10.0D as amount, 1 as more",
    ),
    "narrow": (
        KEYED,
        "select 1L as id, 10.0D as amount",
        "select 2L as id, 20.0D as amount, 1 as more",
    ),
    "cased": (
        "materialized='incremental', unique_key='ID', buckets=2",
        "select 1L as id, 'a' as Name",
        "select 1L as Id, 'b' as NAME",
    ),
}
"""Models, each with its config, its SQL in the first run, and its SQL in the second."""


@dataclass
class TwoRuns:
    """What two runs of these models left."""

    shop: Shop
    refused: dict[str, str]
    """What the second run said of the models that it did not write."""
    compacted: dict[str, list[tuple[Any, ...]]]
    """The rows of the models whose columns changed, after a compaction."""
    before: dict[str, list[tuple[Any, ...]]]
    """The rows of all models before it."""


@pytest.fixture(scope="module")
def two_runs(
    tmp_path_factory: pytest.TempPathFactory, shop_warehouse: Path, shop_connection: SessionConnection
) -> TwoRuns:
    with opened_shop(tmp_path_factory.mktemp("two_runs"), shop_warehouse, shop_connection) as shop:
        for turn in (0, 1):
            for name, (config, *queries) in TWO_RUNS.items():
                shop.model(name, f"{{{{ config({config}) }}}}\n{queries[turn]}")
            outcome = shop.try_dbt("run")
            results = outcome.result.results
            assert outcome.success or turn, shop.messages(outcome)
        refused = {one.node.name: str(one.message) for one in results if str(one.status) != "success"}
        before = {name: shop.rows(name) for name in TWO_RUNS}
        changed = [name for name, (config, *_) in TWO_RUNS.items() if "_columns" in config]
        shop.dbt("run-operation", "compact", "--args", "{trim_grace: 0}")
        return TwoRuns(shop, refused, {name: shop.rows(name) for name in changed}, before)


def test_an_action_column_decides_between_upsert_and_delete(two_runs: TwoRuns) -> None:
    assert two_runs.before["named"] == [(2, "b")]


def test_a_composite_key_with_text_beyond_ascii(two_runs: TwoRuns) -> None:
    assert sorted((row[0], row[2]) for row in two_runs.before["visits"]) == [("Zürich", 1), ("東京", 7)]


def test_the_greatest_row_of_a_key_wins_where_deduplicate_by_orders_them(two_runs: TwoRuns) -> None:
    assert two_runs.before["latest"] == [(1, "new", 2), (2, "newer", 4)]


def test_schema_changes_reach_base_change_and_view(two_runs: TwoRuns) -> None:
    for rows in (two_runs.before, two_runs.compacted):
        assert rows["appended"] == [(1, 10.0, None, None), (4, None, "new", 9)]
        assert rows["synced"] == [(1, None, None), (4, "new", 9)]
    assert [two_runs.shop.rows(f"{name}__base_1") for name in two_runs.compacted] == list(
        two_runs.compacted.values()
    )


def test_a_changed_schema_is_refused_where_the_model_says_so(two_runs: TwoRuns) -> None:
    assert list(two_runs.refused) == ["strict"]
    assert "AR-305" in two_runs.refused["strict"]
    assert two_runs.before["strict"] == [(1, 10.0)]


def test_with_ignore_a_new_column_is_left_out(two_runs: TwoRuns) -> None:
    assert two_runs.before["narrow"] == [(1, 10.0), (2, 20.0)]


def test_a_column_is_the_same_in_any_case(two_runs: TwoRuns) -> None:
    assert two_runs.before["cased"] == [(1, "b")]


def test_side_tables_do_not_show_and_a_keyed_table_is_documented_as_one(shop: Shop) -> None:
    shop.source("raw_orders", THREE)
    shop.model(
        "orders", ORDERS.replace("buckets=2", "buckets=2, persist_docs={'relation': true, 'columns': true}")
    )
    shop.file(
        "models/orders.yml",
        "version: 2\nmodels:\n- name: orders\n  description: Orders it's\n"
        "  columns: [{name: id, description: The key}]\n"
        "- name: doubled\n  columns: [{name: ID, description: The key, meta: {owner: me}}]\n",
    )
    shop.model(
        "doubled",
        "{{ config(materialized='incremental', unique_key='id') }} "
        "select id, _action from {{ incremental_pull(ref('orders')) }}",
    )
    shop.dbt("run")
    shop.dbt("docs", "generate")
    catalog, manifest = (
        json.loads((shop.folder / "target" / name).read_text()) for name in ("catalog.json", "manifest.json")
    )
    assert sorted(catalog["nodes"]) == ["model.shop.doubled", "model.shop.orders"]
    (column,) = manifest["nodes"]["model.shop.doubled"]["columns"].values()
    assert column["meta"] == {"owner": "me", "computed from": "orders.id"}
    node = catalog["nodes"]["model.shop.orders"]
    assert node["metadata"]["comment"] == "Orders it's"
    assert node["columns"]["id"]["comment"] == "The key"
    assert [column["type"] for column in node["columns"].values()] == ["bigint", "string", "double"]
    stats = {name: one["value"] for name, one in node["stats"].items()}
    assert (stats["num_rows"], stats["pending_rows"]) == (3, 0)
    assert stats["num_files"] >= 1


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
