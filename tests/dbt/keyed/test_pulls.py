"""Incremental pull from layer to layer: everything once, nothing twice, nothing if nothing changed."""

from __future__ import annotations

import re

import pytest

from dbt_arctic.adapter.impl import ArcticAdapter
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import PART
from tests.dbt.keyed.conftest import Shop

UPSTREAM = """
{{ config(materialized='incremental', unique_key='id', buckets=2, delete_when='amount < 0') }}
select id, amount from {{ source('raw', 'raw_orders') }}
"""
DOWNSTREAM = """
{{ config(materialized='incremental', unique_key='id', buckets=2) }}
select id, amount * 2 as doubled, _action from {{ incremental_pull(ref('orders')) }}
"""


def consumed_commits(shop: Shop, name: str) -> int:
    return sum("arctic.consumed" in snapshot.summary for snapshot in shop.log(name))


def commits(shop: Shop, name: str) -> list[int]:
    """The snapshots of a plain table, or of a change table."""
    state = shop.catalog.load_table(shop.schema, name)
    return [one.snapshot_id for one in (shop.log(name) if state is None else state.history())]


def test_a_layer_follows_its_upstream_whatever_becomes_of_it(shop: Shop) -> None:
    shop.source("raw_orders", "SELECT id, CAST(id AS DOUBLE) AS amount FROM range(1, 6)")
    shop.model("orders", UPSTREAM)
    shop.model("doubled", DOWNSTREAM)
    shop.dbt("run")

    # It takes just what has changed, and deletes travel on.
    change(shop, "(2L, 20.0D), (3L, -1.0D), (9L, 9.0D)")
    results = {result.node.name: result.adapter_response for result in shop.dbt("run").results}
    assert shop.rows("doubled") == [(1, 2.0), (2, 40.0), (4, 8.0), (5, 10.0), (9, 18.0)]
    assert results["doubled"]["rows_affected"] == 3
    # When nothing changed upstream, nothing is run and nothing committed.
    before = shop.log("doubled")
    result = shop.dbt("run", "--select", "doubled").results[0]
    assert result.adapter_response["code"] == "SKIP"
    assert shop.script.ran == []
    assert shop.log("doubled") == before

    # Neither compile nor show consumes anything.
    change(shop, "(8L, 8.0D)")
    shop.dbt("run", "--select", "orders")
    shop.dbt("compile")
    shop.dbt("show", "--inline", "select * from {{ changes(ref('orders'), table_version(ref('orders'))) }}")
    assert shop.log("doubled") == before

    # It reads what a compaction has taken out of the change table.
    shop.dbt("run-operation", "compact", "--args", "{table: orders, trim_grace: 0}")
    change(shop, "(2L, -1.0D)")
    shop.dbt("run", "--select", "orders", "doubled")
    assert shop.rows("doubled") == [(1, 2.0), (4, 8.0), (5, 10.0), (8, 16.0), (9, 18.0)]

    # A full refresh of the upstream is pulled as its difference. An empty run consumes nothing of it.
    shop.source("raw_orders", "SELECT id, CAST(id AS DOUBLE) AS amount FROM range(4, 8)")
    shop.dbt("run", "--select", "orders", "--full-refresh")
    consumed = consumed_commits(shop, "doubled")
    shop.dbt("run", "--select", "doubled", "--empty")
    assert consumed_commits(shop, "doubled") == consumed
    result = shop.dbt("run", "--select", "doubled").results[0]
    assert shop.rows("doubled") == [(4, 8.0), (5, 10.0), (6, 12.0), (7, 14.0)]
    assert result.adapter_response["rows_affected"] == 5  # 1, 8 and 9 are gone, 6 and 7 are new

    # Without a change of its rows, the consumed version advances.
    shop.model("doubled", DOWNSTREAM + " where amount < 10")
    change(shop, "(50L, 50.0D)")
    shop.dbt("run", "--select", "orders")
    consumed = consumed_commits(shop, "doubled")
    shop.dbt("run", "--select", "doubled")
    assert consumed_commits(shop, "doubled") == consumed + 1
    shop.dbt("run", "--select", "doubled")
    assert shop.script.ran == []

    # The upstream has a new name.
    shop.sql("ALTER VIEW {s}.orders RENAME TO {s}.sales")
    (shop.folder / "models" / "orders.sql").unlink()
    shop.model("sales", UPSTREAM)
    shop.model("doubled", DOWNSTREAM.replace("orders", "sales"))
    change(shop, "(9L, 9.0D)")
    results = {result.node.name: result.adapter_response for result in shop.dbt("run").results}
    assert results["doubled"]["rows_affected"] == 1
    rows = [(4, 8.0), (5, 10.0), (6, 12.0), (7, 14.0), (9, 18.0)]
    assert shop.rows("doubled") == rows

    # Another table as its upstream: it has to be built again.
    shop.model("others", UPSTREAM)
    shop.model("doubled", DOWNSTREAM.replace("orders", "others"))
    told = shop.fail("run", "--select", "others", "doubled")
    assert "AR-301" in told
    assert "no longer from" in told
    assert shop.rows("doubled") == rows
    shop.dbt("run", "--full-refresh", "--select", "doubled")
    assert shop.rows("doubled") == [(9, 18.0)]
    assert shop.dbt("run", "--select", "doubled").results[0].adapter_response["code"] == "SKIP"

    # A changed key is an error at once, and not only when there is something to pull.
    shop.model("doubled", DOWNSTREAM.replace("orders", "others").replace("'id'", "'doubled'"))
    assert "unique_key changed from id to doubled" in shop.fail("run", "--select", "doubled")


def change(shop: Shop, rows: str) -> None:
    """What the next run of the upstream reads."""
    shop.source("raw_orders", f"SELECT * FROM VALUES {rows} AS t(id, amount)")


def test_a_plain_table_commits_the_version_with_its_merge(shop: Shop) -> None:
    change(shop, "(1L, 1.0D), (5L, 5.0D)")
    shop.model("orders", UPSTREAM)
    shop.model(
        "merged",
        """{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
        select id, amount from {{ incremental_pull(ref('orders')) }} where _action = 'U'""",
    )
    shop.model("filled", "{{ config(materialized='table') }} select id from {{ ref('orders') }}")
    shop.dbt("run")
    change(shop, "(5L, 55.0D)")
    shop.model(
        "filled",
        """{{ config(materialized='incremental', incremental_strategy='append') }}
        select id from {{ incremental_pull(ref('orders')) }}""",
    )
    # The rows of a table that begins to pull are not added a second time.
    filled = shop.catalog.load_table(shop.schema, "filled")
    assert "first time, and its table has rows already" in shop.fail("run")
    assert shop.catalog.load_table(shop.schema, "filled") == filled
    shop.dbt("run", "--select", "filled", "--full-refresh")
    assert shop.rows("filled") == [(1,), (5,)]
    assert shop.rows("merged")[-1] == (5, 55.0)
    state = shop.catalog.load_table(shop.schema, "merged")
    assert state is not None
    assert set(state.branches) == {"main"}
    assert sum("arctic.consumed" in snapshot.summary for snapshot in state.history()) == 2
    shop.dbt("run", "--select", "merged")
    assert shop.script.ran == []


def test_a_sample_run_writes_its_sample_and_the_next_run_the_whole(shop: Shop) -> None:
    shop.source("raw_orders", "SELECT 1L AS id, TIMESTAMP'2020-01-01' AS at")
    shop.model(
        "orders",
        """{{ config(materialized='incremental', unique_key='id', buckets=2, event_time='at') }}
        select id, at from {{ source('raw', 'raw_orders') }}""",
    )
    shop.model(
        "seen",
        """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
        select id, _action from {{ incremental_pull(ref('orders')) }}""",
    )
    shop.dbt("run")
    shop.source(
        "raw_orders", "SELECT 2L AS id, TIMESTAMP'2020-01-02' AS at UNION ALL SELECT 3L, current_timestamp()"
    )
    shop.dbt("run", "--select", "orders")
    shop.dbt("run", "--select", "seen", "--sample", "3 days")
    assert shop.rows("seen") == [(1,), (3,)]
    assert set(consumed_versions(shop.log("seen"))) == {PART}
    shop.dbt("run", "--select", "seen")
    assert shop.rows("seen") == [(1,), (2,), (3,)]
    assert set(consumed_versions(shop.log("seen"))) == {f"lake.{shop.schema}.orders"}


def test_rows_of_a_sample_are_neither_doubled_nor_left_behind(shop: Shop) -> None:
    shop.source(
        "raw_events", "SELECT 1L AS id, TIMESTAMP'2020-01-01' AS at UNION ALL SELECT 2L, current_timestamp()"
    )
    shop.model(
        "events",
        "{{ config(materialized='incremental', unique_key='id', event_time='at', delete_when='gone') }}"
        "select *, at = TIMESTAMP'1990-01-01' as gone from {{ source('raw', 'raw_events') }}",
    )
    pulls = "select id, _action from {{ incremental_pull(ref('events')) }}"
    shop.model("appended", "{{ config(materialized='incremental', incremental_strategy='append') }}" + pulls)
    shop.model("kept", "{{ config(materialized='incremental', unique_key='id', buckets=2) }}" + pulls)
    shop.model("blank", "{{ config(materialized='incremental', unique_key='id', buckets=2) }}" + pulls)
    overwrite = "materialized='incremental', incremental_strategy='insert_overwrite'"
    touched = f"select id % 2 from ({pulls})"
    odd = f"select id, id % 2 as odd from {{{{ ref('events') }}}} where id % 2 in ({touched})"
    by_key = f"{overwrite}, unique_key='id', partition_by='odd', buckets=1"
    shop.model("parts", f"{{{{ config({by_key}) }}}}" + odd)
    shop.model("plain_parts", f"{{{{ config({overwrite}) }}}}" + odd)
    protected = "{{ config(materialized='incremental', unique_key='id', buckets=1, full_refresh=false) }}"
    shop.model("protected", protected + pulls)
    shop.dbt("run", "--select", "events")
    shop.dbt("run", "--select", "blank", "--empty")
    shop.dbt("run", "--select", "appended", "kept", "--sample", "3 days")
    assert (shop.rows("appended", "id"), shop.rows("kept", "id")) == ([(2,)], [(2,)])

    # Deleted before the next run reads the whole.
    shop.source(
        "raw_events",
        "SELECT 1L AS id, TIMESTAMP'2020-01-01' AS at UNION ALL SELECT 2L, TIMESTAMP'1990-01-01'",
    )
    whole = {one.node.name: one.adapter_response["_message"] for one in shop.dbt("run").results}
    assert all("generation 2" in whole[name] for name in ("kept", "blank")), whole
    assert (shop.rows("appended", "id"), shop.rows("kept", "id")) == ([(1,)], [(1,)])

    shop.source("raw_events", "SELECT 3L AS id, current_timestamp() AS at")
    shop.dbt("run", "--select", "events")
    sampled = shop.dbt("run", "--select", "appended", "kept", "--sample", "3 days").results
    assert [one.adapter_response["code"] for one in sampled] == ["SKIP", "OK"]
    shop.dbt("run")
    assert (shop.rows("appended", "id"), shop.rows("kept", "id")) == ([(1,), (3,)], [(1,), (3,)])

    # Where the next run, which has nothing to do, would not correct it, a part is not written at all.
    unwritten = ("appended", "parts", "plain_parts", "protected")
    rows = {name: shop.rows(name, "id") for name in unwritten}
    assert rows == {name: [(1,), (3,)] for name in unwritten}
    for options in (["--empty"], ["--sample", "3 days"]):
        results = shop.dbt("run", "--select", *unwritten, *options).results
        assert {one.adapter_response["_message"] for one in results} == {
            "SKIP (--empty and --sample read a part)"
        }
        assert {name: shop.rows(name, "id") for name in unwritten} == rows
    shop.dbt("run", "--select", "kept", *unwritten)
    assert shop.script.ran == []
    shop.model("plain_parts", f"{{{{ config({overwrite}) }}}}" + odd.replace("id % 2 as", "ids % 2 as"))
    assert "AR-201" in shop.fail("run", "--select", "plain_parts", "--empty"), "its query is analysed"


def test_a_sample_run_consumes_nothing_of_what_it_reads_as_a_whole(shop: Shop) -> None:
    shop.source("raw_orders", "SELECT 1L AS id, 1L AS customer")
    shop.source("raw_events", "SELECT 1L AS customer, TIMESTAMP'2020-01-01' AS at")
    shop.model(
        "orders",
        """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
        select id, customer from {{ source('raw', 'raw_orders') }}""",
    )
    shop.model(
        "customers",
        """{{ config(materialized='table', event_time='at') }}
        select * from {{ source('raw', 'raw_events') }}""",
    )
    shop.model(
        "seen",
        """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
        select o.id, o._action from {{ incremental_pull(ref('orders')) }} as o
        join {{ ref('customers') }} as c on c.customer = o.customer""",
    )
    shop.dbt("run")
    shop.source("raw_orders", "SELECT 2L AS id, 1L AS customer")
    shop.dbt("run", "--select", "orders")
    shop.dbt("run", "--select", "seen", "--sample", "3 days")
    assert shop.rows("seen") == [(1,)], "its customer is not in the sample"
    shop.dbt("run", "--select", "seen")
    assert shop.rows("seen") == [(1,), (2,)]


def test_before_images_name_the_group_that_a_row_left(shop: Shop) -> None:
    old, new = "TIMESTAMP'2020-01-01'", "current_timestamp()"
    shop.source(
        "raw_orders", f"SELECT 1L AS id, 'north' AS region, {old} AS at UNION ALL SELECT 2L, 'south', {old}"
    )
    shop.model(
        "orders",
        """{{ config(materialized='incremental', unique_key='id', buckets=2, event_time='at') }}
        select id, region, at from {{ source('raw', 'raw_orders') }}""",
    )
    groups = """{{ config(materialized='incremental', unique_key='region', SETTINGS) }}
        with touched as (select distinct region from {{ incremental_pull(ref('orders'), images='both') }})
        select t.region, count(o.id) as ordersDELETES
        from touched t left join {{ ref('orders') }} o on o.region = t.region group by t.region"""
    deletes = ", if(count(o.id) = 0, 'D', 'U') as _action"
    for name, settings in (
        ("regions", "buckets=2"),
        ("merged", "incremental_strategy='merge'"),
        ("replaced", "incremental_strategy='delete+insert'"),
    ):
        text = groups.replace("SETTINGS", settings)
        shop.model(name, text.replace("DELETES", deletes if name == "regions" else ""))
    shop.model(
        "total",
        """{{ config(materialized='incremental', unique_key='one', buckets=1) }}
        select 1 as one, count(*) as orders from {{ ref('orders') }}
        where (select count(*) from {{ incremental_pull(ref('orders')) }}) >= 0""",
    )
    shop.dbt("run")
    shop.source("raw_orders", f"SELECT 1L AS id, 'south' AS region, {new} AS at")
    shop.dbt("run")
    whole = {"regions": [("south", 2)], "merged": [("north", 0), ("south", 2)]}
    whole["replaced"] = whole["merged"]
    assert {name: shop.rows(name) for name in whole} == whole

    # A part without rows writes nothing, and a part of a group is corrected without a change of a row.
    before = {name: commits(shop, name) for name in whole}
    shop.dbt("run", "--select", "total", *whole, "--empty")
    assert {name: commits(shop, name) for name in whole} == before
    assert shop.rows("total") == [(1, 0)], "a row of no rows"
    results = shop.dbt("run", "--select", "total", *whole).results
    codes = {one.node.name: one.adapter_response["code"] for one in results}
    assert codes == {"total": "OK"} | dict.fromkeys(whole, "SKIP")
    assert shop.rows("total") == [(1, 2)]
    shop.dbt("run", "--select", *whole, "--sample", "3 days")
    assert {name: shop.rows(name)[-1] for name in whole} == dict.fromkeys(whole, ("south", 1))
    shop.dbt("run", "--select", *whole)
    whole["merged"] = whole["replaced"] = whole["regions"]
    assert {name: shop.rows(name) for name in whole} == whole
    shop.dbt("run", "--select", *whole)
    assert shop.script.ran == []


def test_new_rows_of_a_plain_source_are_pulled_once_beside_all_rows_and_no_table_is_made(shop: Shop) -> None:
    shop.source("raw_events", "SELECT 1L AS id, 'a' AS name")
    shop.model(
        "events",
        """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
        select new.id, max(new.name) as name, count(*) as known
        from {{ incremental_pull(source('raw', 'raw_events')) }} as new
        join {{ source('raw', 'raw_events') }} as every on every.id <= new.id
        group by new.id""",
    )
    shop.dbt("run")
    shop.sql("INSERT INTO {s}.raw_events VALUES (2, 'b')")
    result = shop.dbt("run").results[0]
    assert result.adapter_response["rows_affected"] == 1
    assert shop.rows("events") == [(1, "a", 1), (2, "b", 2)]
    assert [sql.split("`")[0].split("*/")[-1].strip() for sql in shop.script.ran] == [
        "CREATE OR REPLACE TEMPORARY VIEW",
        "ALTER TABLE",
        "INSERT INTO",
        "CALL",
        "ALTER TABLE",
        "DROP VIEW IF EXISTS",
    ]


def test_updates_and_deletes_of_a_plain_source_need_a_key(shop: Shop) -> None:
    pull = "incremental_pull(source('raw', 'raw_events'){})"
    model = """{{ config(materialized='incremental', unique_key='id', buckets=2) }}
        select id, name, _action from {{ PULL }}"""
    shop.source(
        "raw_events", "SELECT 1L AS id, 'a' AS name UNION ALL SELECT 2L, 'b' UNION ALL SELECT 3L, 'c'"
    )
    shop.model("events", model.replace("PULL", pull.format("")))
    shop.dbt("run")
    shop.sql("UPDATE {s}.raw_events SET name = 'B' WHERE id = 2")
    shop.sql("DELETE FROM {s}.raw_events WHERE id = 3")
    message = shop.fail("run")
    assert "AR-301" in message
    assert "unique_key=" in message
    shop.model("events", model.replace("PULL", pull.format(", unique_key='id'")))
    shop.dbt("run")
    assert shop.rows("events") == [(1, "a"), (2, "B")]


TWO_PULLS = """
{{ config(materialized='incremental', unique_key='id', buckets=2) }}
select id, _action from {{ incremental_pull(ref('orders')) }}
union all
select id, _action from {{ incremental_pull(source('raw', 'raw_events'), unique_key='id') }}
"""


@pytest.fixture
def staged(shop: Shop) -> Shop:
    """A model that pulls twice, and something of a table without a key that it has not read."""
    shop.source("raw_orders", "SELECT 1L AS id, 1.0D AS amount")
    shop.source("raw_events", "SELECT 100L AS id")
    shop.model("orders", UPSTREAM)
    shop.model("seen", TWO_PULLS)
    shop.dbt("run")
    shop.sql("INSERT INTO {s}.raw_events VALUES (101)")
    shop.source("raw_orders", "SELECT 2L AS id, 2.0D AS amount")
    shop.dbt("run", "--select", "orders")
    return shop


def test_all_pulls_of_a_model_begin_at_one_commit_of_it(
    staged: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Name] = []
    consumed = ArcticAdapter._consumed

    def once(adapter: ArcticAdapter, target: Name) -> object:
        asked.append(target)
        return consumed(adapter, target)

    monkeypatch.setattr(ArcticAdapter, "_consumed", once)
    staged.dbt("run", "--select", "seen")
    assert [name.identifier for name in asked] == ["seen"]
    assert staged.rows("seen", "id") == [(1,), (100,), (101,), (2,)]


def test_a_table_that_is_dropped_after_its_pulls_is_not_built_of_them(
    staged: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = staged.script.run

    def beside(sql: str, execute: object) -> None:
        run(sql, execute)  # type: ignore[arg-type]
        if re.search("TEMPORARY VIEW .*seen__pull", sql):
            staged.sql("DROP VIEW {s}.seen")

    monkeypatch.setattr(staged.script, "run", beside)
    assert "the table for which the model was compiled no longer exists" in staged.fail(
        "run", "--select", "seen"
    )
    monkeypatch.undo()
    assert staged.dbt("run", "--select", "seen").results[0].adapter_response["code"] != "SKIP"
    assert staged.rows("seen", "id") == [(1,), (100,), (101,), (2,)]
