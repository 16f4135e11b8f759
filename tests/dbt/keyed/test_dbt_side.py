"""What dbt hands to an adapter in its own form: seeds as numbers, headers, fixtures, what is in the way."""

from __future__ import annotations

import pytest

from tests.dbt.keyed.conftest import Shop

DECLARES = "{% call set_sql_header(config) %} declare variable least int default 2; {% endcall %}"


def test_a_seed_of_whole_numbers_that_are_written_with_a_point(shop: Shop) -> None:
    shop.file("seeds/prices.csv", "id,price,share\n1,10.00,0.50\n2,250.00,1.00\n")
    shop.dbt("seed")
    assert shop.rows("prices") == [(1, 10, 0.5), (2, 250, 1.0)]


@pytest.mark.parametrize("key", ["", "unique_key='id', buckets=1,"], ids=["plain", "keyed"])
def test_a_header_runs_once_for_each_batch(shop: Shop, key: str) -> None:
    shop.source("raw_orders", "select id, date '2024-01-01' + int(id % 3) as day from range(6)")
    shop.model(
        "batched",
        DECLARES
        + "{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='day', "
        + key
        + "batch_size='day', begin='2024-01-01') }} "
        "select id, day from {{ source('raw', 'raw_orders') }} where id >= least",
    )
    times = ("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04")
    for _ in range(2):
        shop.dbt("run", "--select", "batched", *times)
        assert [row[0] for row in shop.rows("batched")] == [2, 3, 4, 5]


def test_a_header_runs_once_for_a_snapshot(shop: Shop) -> None:
    shop.source("raw_orders", "select id, id * 2 as amount from range(4)")
    shop.file(
        "snapshots/kept.sql",
        "{% snapshot kept %}"
        + DECLARES
        + "{{ config(unique_key='id', strategy='check', check_cols=['amount']) }} "
        "select * from {{ source('raw', 'raw_orders') }} where id >= least{% endsnapshot %}",
    )
    for _ in range(2):
        shop.dbt("snapshot")
        assert shop.rows("kept", "id, amount") == [(2, 4), (3, 6)]


def test_a_mistake_in_a_view_leaves_the_table_that_it_was_to_replace(shop: Shop) -> None:
    shop.model("shown", "{{ config(materialized='table') }} select 1 as id")
    shop.dbt("run")
    shop.model("shown", "{{ config(materialized='view') }} select no_such_column from (select 1 as id)")
    assert "no_such_column" in shop.fail("run")
    assert shop.rows("shown") == [(1,)]
    shop.model("shown", "{{ config(materialized='view') }} select 2 as id")
    shop.dbt("run")
    assert shop.rows("shown") == [(2,)]


def test_fixtures_of_unit_tests_are_the_text_that_they_are(shop: Shop) -> None:
    shop.source("raw_orders", "select 'x' as path, array('x') as parts")
    shop.model(
        "paths", "select path, parts[0] as first, length(path) as n from {{ source('raw', 'raw_orders') }}"
    )
    shop.file(
        "models/paths.yml",
        r"""
unit_tests:
  - name: backslashes
    model: paths
    given:
      - input: source('raw', 'raw_orders')
        rows: [{path: 'C:\temp\new it''s\', parts: "array('it''s', 'a\\b')"}]
    expect:
      rows: [{path: 'C:\temp\new it''s\', first: "it's", n: 17}]
""",
    )
    shop.dbt("run")
    shop.dbt("test", "--select", "test_type:unit")


def test_what_a_pull_has_staged_goes_where_the_next_one_fails(shop: Shop) -> None:
    shop.source("raw_orders", "select 1L as id")
    shop.source("raw_events", "select 1L as id")
    shop.model(
        "both",
        "{{ config(materialized='incremental', unique_key='id', buckets=1) }} "
        "select id from {{ incremental_pull(source('raw', 'raw_orders')) }} "
        "union select id from {{ incremental_pull(source('raw', 'raw_events')) }}",
    )
    shop.dbt("run")
    shop.sql("INSERT INTO {s}.raw_orders VALUES (2)")
    shop.sql("DROP TABLE {s}.raw_events")
    shop.source("raw_events", "select 5L as id")
    assert "AR-403" in shop.fail("run")
    names = {entry.name for entry in shop.catalog.list_names(shop.schema)}
    assert not [name for name in names if "__pull_" in name]
