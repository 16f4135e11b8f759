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


FIXTURES = {
    "kept": ("{n: 10.0, price: 1.50, day: '2024-01-01', at: '2024-01-01 10:00:00', path: 5}", ""),
    "fraction": ("{n: 10.7}", "the column n is INT, and the fixture has the value 10.7"),
    "rounded": ("{price: 1.555}", "the column price is DECIMAL(10,2), and the fixture has the value 1.555"),
    "no_day": ("{day: '2024-02-31'}", "the column day is DATE, and the fixture has the value 2024-02-31"),
    "cut": ("{day: '2024-01-01 23:59'}", "the column day is DATE"),
    "word": ("{n: ten}", "the column n is INT, and the fixture has the value ten"),
    "zone": ("{at: '2024-01-01T10:00:00+02:00'}", "the column at is TIMESTAMP_NTZ"),
}
"""Rows of fixtures, and what is said of those that their columns cannot hold."""


def test_a_fixture_of_a_unit_test_is_refused_if_its_columns_cannot_hold_it(shop: Shop) -> None:
    shop.source(
        "raw_orders",
        "select 1 as n, cast(1 as decimal(10, 2)) as price, date'2024-01-01' as day, "
        "timestamp_ntz'2024-01-01 10:00:00' as at, 'x' as path",
    )
    shop.model("orders", "select n, price, day, at, path from {{ source('raw', 'raw_orders') }}")
    expected = {
        "expected": ("{n: 10}", "{n: 10.4}"),
        **{name: (row, row) for name, (row, _) in FIXTURES.items()},
    }
    tests = "".join(
        f"  - name: {name}\n    model: orders\n    given:\n      - input: source('raw', 'raw_orders')\n"
        f"        rows: [{given}]\n    expect:\n      rows: [{rows}]\n"
        for name, (given, rows) in expected.items()
    )
    shop.file("models/tests.yml", f"unit_tests:\n{tests}")
    shop.dbt("run")
    outcome = shop.try_dbt("test", "--select", "test_type:unit")
    assert outcome.exception is None, outcome.exception
    told = {result.node.name: (str(result.status), str(result.message)) for result in outcome.result.results}
    assert told.pop("kept")[0] == "pass"
    assert told.pop("expected")[0] == "error"
    for name, (status, message) in told.items():
        assert status == "error", name
        assert "AR-311" in message, name
        assert FIXTURES[name][1] in message, name


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
