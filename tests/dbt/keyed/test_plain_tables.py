"""Incremental models without a key: what a run replaces, and of what moment its rows are."""

from __future__ import annotations

import pytest
import yaml

from tests.dbt.keyed.conftest import Shop


def test_an_overwrite_replaces_the_partitions_of_the_batch(shop: Shop) -> None:
    shop.model(
        "days",
        """{{ config(materialized='incremental', incremental_strategy='insert_overwrite',
                     partition_by='day') }}
        select day, amount from {{ source('raw', 'raw_orders') }}""",
    )
    shop.source("raw_orders", "SELECT col1 AS day, col2 AS amount FROM VALUES (1, 10), (1, 11), (2, 20)")
    shop.dbt("run")
    shop.source("raw_orders", "SELECT col1 AS day, col2 AS amount FROM VALUES (2, 21), (3, 30)")
    shop.dbt("run")
    assert shop.rows("days") == [(1, 10), (1, 11), (2, 21), (3, 30)]
    shop.source("raw_orders", "SELECT 1 AS day, 10 AS amount WHERE false")
    shop.dbt("run")
    assert len(shop.rows("days")) == 4, "a batch without rows has no partition"


def test_without_partitions_it_replaces_the_table(shop: Shop) -> None:
    shop.model(
        "days",
        """{{ config(materialized='incremental', incremental_strategy='insert_overwrite') }}
        select day from {{ source('raw', 'raw_orders') }}""",
    )
    shop.source("raw_orders", "SELECT 1 AS day")
    shop.dbt("run")
    shop.source("raw_orders", "SELECT 2 AS day")
    shop.dbt("run")
    assert shop.rows("days") == [(2,)]


def test_delete_and_insert_are_of_one_batch(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.model(
        "orders",
        """{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='id') }}
        select id, amount, null as note from {{ source('raw', 'raw_orders') }}""",
    )
    shop.source("raw_orders", "SELECT id, id AS amount FROM range(3)")
    shop.sql("CREATE TABLE {s}.orders (id BIGINT, amount BIGINT, note INT) USING iceberg")
    shop.sql("INSERT INTO {s}.orders SELECT id, 10 + id, 5 FROM range(6)")
    run = shop.script.run

    def beside(sql: str, execute: object) -> None:
        run(sql, execute)  # type: ignore[arg-type]
        if "delete from" in sql.lower():
            shop.sql("INSERT OVERWRITE {s}.raw_orders VALUES (2, 2), (4, 4)")

    monkeypatch.setattr(shop.script, "run", beside)
    shop.dbt("run")
    expected = [(0, 0, None), (1, 1, None), (2, 2, None), (3, 13, 5), (4, 14, 5), (5, 15, 5)]
    assert shop.rows("orders") == expected
    left = [name for _, name, *_ in shop.sql("SHOW TABLES IN {s}")]
    assert not [name for name in left if "__pull_" in name]


@pytest.mark.parametrize("strategy", ["merge", "delete+insert", "append"])
def test_a_header_is_run_each_time_and_once(shop: Shop, strategy: str) -> None:
    key = "" if strategy == "append" else ", unique_key='id'"
    shop.model(
        "orders",
        f"""{{{{ config(materialized='incremental', incremental_strategy='{strategy}'{key}) }}}}
        {{% call set_sql_header(config) %}} set spark.sql.session.timeZone=Asia/Tokyo; {{% endcall %}}
        select id, cast(timestamp'2026-01-01 00:00:00Z' as string) as at
        from {{{{ source('raw', 'raw_orders') }}}}""",
    )
    shop.source("raw_orders", "SELECT 1 AS id")
    shop.dbt("run")
    shop.source("raw_orders", "SELECT 2 AS id")
    shop.dbt("run")
    assert shop.rows("orders") == [(1, "2026-01-01 09:00:00"), (2, "2026-01-01 09:00:00")]


def test_a_header_is_run_for_each_snapshot(shop: Shop) -> None:
    shop.file(
        "snapshots/seen.sql",
        """{% snapshot seen %}
        {{ config(unique_key='id', strategy='check', check_cols=['at']) }}
        {% call set_sql_header(config) %} set spark.sql.session.timeZone=Asia/Tokyo; {% endcall %}
        select id, cast(timestamp'2026-01-01 00:00:00Z' as string) as at
        from {{ source('raw', 'raw_orders') }}
        {% endsnapshot %}""",
    )
    shop.source("raw_orders", "SELECT 1 AS id")
    for _ in range(2):
        shop.dbt("snapshot")
        assert shop.rows("seen", "id, at") == [(1, "2026-01-01 09:00:00")]


def test_a_view_is_not_of_the_versions_of_its_run(shop: Shop) -> None:
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text())
    profile["shop"]["outputs"]["dev"]["consistent_reads"] = True
    shop.file("profiles.yml", yaml.safe_dump(profile))
    shop.source("raw_orders", "SELECT 1 AS id")
    shop.model(
        "shown", "{{ config(materialized='view') }} select o.id from {{ source('raw', 'raw_orders') }} as o"
    )
    shop.dbt("run")
    shop.sql("INSERT INTO {s}.raw_orders VALUES (2)")
    assert shop.rows("shown") == [(1,), (2,)]


@pytest.mark.parametrize("keyed_first", [True, False])
def test_a_table_that_is_never_rebuilt_does_not_change_its_form(shop: Shop, keyed_first: bool) -> None:
    def model(keyed: bool) -> None:
        key = "unique_key='id', buckets=2" if keyed else "incremental_strategy='append'"
        shop.model(
            "orders",
            f"""{{{{ config(materialized='incremental', full_refresh=false, {key}) }}}}
            select id from {{{{ source('raw', 'raw_orders') }}}}""",
        )

    shop.source("raw_orders", "SELECT 1 AS id")
    model(keyed_first)
    shop.dbt("run")
    shop.source("raw_orders", "SELECT 2 AS id")
    model(not keyed_first)
    assert "full_refresh is false" in shop.fail("run")
    assert shop.rows("orders") == [(1,)]
    model(keyed_first)
    shop.dbt("run")
    assert shop.rows("orders") == [(1,), (2,)]
