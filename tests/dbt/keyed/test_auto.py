"""Automatic incremental models: plain SQL, refreshed by the keys that changed, equal to a full refresh."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dbt_arctic.adapter import result_inputs
from dbt_arctic.auto import execute_table, expected_requests, shared_reads
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.cli.main import main
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.keyed.names import Name
from tests.dbt.keyed.conftest import Shop
from tests.planner import printed_plan

ORDERS = """
{{ config(materialized='incremental', unique_key='id', buckets=2, delete_when='amount < 0') }}
select id, customer, amount from {{ source('raw', 'raw_orders') }};
"""
BY_CUSTOMER = """
{{ config(materialized='incremental', incremental_strategy='auto', unique_key='customer', buckets=2) }}
select o.customer, count(*) as orders, sum(o.amount) as amount
from {{ ref('orders') }} as o
group by o.customer
"""
HAVING = f"{BY_CUSTOMER}having count(*) > 0"
"""Over a state in a table of its own: not every group needs to be a row."""
TOP = BY_CUSTOMER.replace("sum(o.amount) as amount", "max(cast(o.amount as double)) as amount")
FIRST = """
{{ config(materialized='incremental', incremental_strategy='auto', unique_key='customer', buckets=2) }}
select customer, avg(cast(amount as decimal(15, 2))) as mean, count(*) * 2 as twice
from {{ ref('orders') }} group by customer having count(*) > 1 order by mean desc, customer limit 5
"""
BIG = """
{{ config(materialized='incremental', incremental_strategy='auto', unique_key='customer', buckets=2) }}
select customer, amount from {{ ref('by_customer') }} where amount > 3; -- the large ones
"""

UNTIL_TODAY = """
{{ config(materialized='incremental', incremental_strategy='auto', unique_key='id', buckets=2) }}
select id, amount from {{ ref('orders') }}
where date_add(DATE '2026-11-01', cast(id as int)) <= current_date()
"""


def rows(*values: tuple[int, int, int]) -> str:
    return " UNION ALL ".join(
        f"SELECT {key}L AS id, {customer}L AS customer, {amount}L AS amount"
        for key, customer, amount in values
    )


def layered(shop: Shop, by_customer: str = BY_CUSTOMER) -> None:
    shop.source("raw_orders", rows(*((n, n % 20, n) for n in range(1, 41))))
    shop.model("orders", ORDERS)
    shop.model("by_customer", by_customer)
    shop.model("big", BIG)
    shop.dbt("run")


def messages(result: Any) -> dict[str, str]:
    """The reported message of each model, without the bytes."""
    return {
        entry.node.name: re.sub(r", [\d.]+ .B read.*", "", entry.adapter_response["_message"])
        for entry in result.results
    }


def expected(shop: Shop) -> list[tuple[Any, ...]]:
    return sorted(
        shop.sql("SELECT customer, count(*), sum(amount) FROM {s}.orders GROUP BY customer"), key=repr
    )


def test_only_the_groups_that_changed_are_computed_as_planned_and_only_what_differs_is_written(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("by_customer", "first_five", "top")
    day = datetime(2026, 11, 21, 23, 50)
    monkeypatch.setattr(result_inputs, "get_invocation_started_at", lambda: day)
    shop.model("top", TOP)
    shop.model("first_five", FIRST)
    shop.model("until_today", UNTIL_TODAY)
    layered(shop)
    assert shop.rows("by_customer") == expected(shop)
    assert shop.rows("until_today") == sorted(((n, n) for n in range(1, 21)), key=repr)
    # Nothing has changed, so nothing is planned and nothing runs.
    planned = plans(shop)
    assert {planned[name]["refresh"] for name in (*names, "big")} == {"nothing"}
    told = messages(shop.dbt("run", "--exclude", "orders"))
    assert told == dict.fromkeys((*names, "big", "until_today"), "SKIP (no upstream change)")
    # Only the day on which dbt was started, which one model asks for.
    day += timedelta(minutes=20)
    told = messages(shop.dbt("run", "--select", "big", "until_today"))
    assert told == {"big": "SKIP (no upstream change)", "until_today": "INCREMENTAL (1 key), 1 row"}
    assert shop.rows("until_today") == sorted(((n, n) for n in range(1, 22)), key=repr)

    # An update, a move to another group, a delete, and a new row: groups 1, 2 and 3
    shop.source("raw_orders", rows((1, 1, 100), (2, 3, 2), (3, 3, -1), (50, 3, 7)))
    shop.dbt("run", "--select", "orders")
    shown = plans(shop, "--sql")
    refreshes = {name: shown[name]["refresh"] for name in (*names, "big")}
    assert refreshes == {**dict.fromkeys(names, "incremental"), "big": "nothing"}
    assert shown["by_customer"]["upstreams"][0]["changed_rows"] == 4
    (_, rows_of_keys) = shown["top"]["stages"]
    assert rows_of_keys["result"] == "difference"
    assert shown["top"]["falls_back_if"] == ["a statement fails"]
    explained = told_by_plan(shop, "--explain")
    assert [line.partition(":")[0] for line in explained.splitlines() if line[:1].strip()] == [*shown]
    for name, entry in shown.items():
        for text in (entry["explanation"]["does"], *entry["explanation"]["advice"]):
            assert text in " ".join(explained.split()), name
    analysed, query_schema = Counter[str](), SessionConnection.query_schema

    def counted(connection: SessionConnection, sql: str) -> list[ColumnInfo]:
        analysed[sql] += 1
        return query_schema(connection, sql)

    # What several models of a run read is read once, so each would have another text.
    with monkeypatch.context() as alone:
        alone.setattr(execute_table, "with_shared_rows", lambda context, target, plan: plan)
        alone.setattr(SessionConnection, "query_schema", counted)
        done = shop.dbt("run", "--threads", "1", "--select", *names)
    assert set(analysed.values()) == {1}, analysed
    recorded = shop.recorded
    stages = [stage for entry in done.results for stage in printed_plan.of_json(shown[entry.node.name])]
    assert {stage.name for stage in stages} == {"affected_keys", "rows", "changes", "query"}
    assert printed_plan.differing(stages, shop.script.ran) == []
    for name in names:
        walked = recorded[name]["stages"]
        assert [one["stage"] for one in walked] == [one["name"] for one in shown[name]["stages"]], name
        assert all(one["seconds"] >= 0 for one in walked)
        assert recorded[name]["fell_back"] == []
    keys, written = recorded["top"]["stages"]
    assert (keys["rows"], written["rows"]) == tuple(recorded["top"][one] for one in ("keys", "rows_affected"))

    told = messages(done) | messages(shop.dbt("run", "--select", "big"))
    assert shop.rows("by_customer") == expected(shop)
    assert told["by_customer"] == "INCREMENTAL (sums), 3 rows"
    assert told["top"] == "INCREMENTAL (3 keys), 3 rows"
    assert told["first_five"].startswith("INCREMENTAL (sums), ")
    assert shop.rows("top") == sorted(
        shop.sql("SELECT customer, count(*), max(double(amount)) FROM {s}.orders GROUP BY customer"), key=repr
    )
    means = (
        "SELECT customer, avg(cast(amount AS decimal(15, 2))) AS mean, count(*) * 2 FROM {s}.orders "
        "GROUP BY customer HAVING count(*) > 1 ORDER BY mean DESC, customer LIMIT 5"
    )
    assert shop.rows("first_five") == sorted(shop.sql(means), key=repr)
    assert told["big"].startswith("INCREMENTAL")
    assert shop.rows("big") == [row[::2] for row in expected(shop) if row[2] > 3]
    # Before-images are stored for `big`, which reads it; no model reads `big`.
    images = "SELECT customer FROM {{s}}.{}__change_1 WHERE _action = '-U' AND _txn > 0"
    assert sorted(shop.sql(images.format("by_customer"))) == [(1,), (2,), (3,)]
    assert shop.sql(images.format("big")) == []
    old = {key: (key % 20, key) for key in range(1, 41)}
    new = {**old, 1: (1, 100), 2: (3, 2), 50: (3, 7)}
    del new[3]
    touched = {customer for _, (customer, _) in old.items() ^ new.items()}
    noted = ("strategy", "reason", "keys", "rows_affected")
    assert [recorded["top"].get(one) for one in noted] == ["incremental", None, len(touched), 3]
    assert [recorded["by_customer"].get(one) for one in noted] == ["incremental", None, None, 3]
    for model in ("top", "by_customer"):
        assert min(recorded[model][one] for one in ("bytes_read", "bytes_written", "jobs")) > 0


@pytest.mark.long
def test_the_models_of_a_run_are_known_to_the_first_that_reads_a_table(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, Any] = {}

    def noting(catalog: Any, alongside: Any, target: Name, upstream: Upstream, *more: Any) -> Any:
        told = expected_requests.expected_requests(catalog, alongside, target, upstream, *more)
        found[target.identifier] = told and sorted(told[0])
        return told

    monkeypatch.setattr(expected_requests, "WORTH_BYTES", 0)
    monkeypatch.setattr(shared_reads, "expected_requests", noting)
    shop.model("named", "select * from {{ ref('orders') }}")
    shop.model("viewed", BY_CUSTOMER.replace("ref('orders')", "ref('named')"))
    layered(shop)
    selections = [("by_customer", None), ("by_customer viewed", ["amount", "customer"])]
    for number, (selection, first) in enumerate(selections):
        shop.source("raw_orders", rows((number + 1, 3, 500 + number)))
        shop.dbt("run", "--select", "orders")
        found.clear()
        shop.dbt("run", "--threads", "1", "--select", *selection.split())
        assert next(iter(found.values())) == first, selection
        # A model that has fallen behind needs the changes since another version.
        shop.dbt("run")
    assert shop.rows("by_customer") == shop.rows("viewed") == expected(shop)


def test_changed_sql_is_computed_anew_and_compared(shop: Shop) -> None:
    layered(shop)
    shop.model("by_customer", BY_CUSTOMER.replace("sum(o.amount)", "max(o.amount)"))
    done = shop.dbt("run", "--select", "by_customer")
    assert messages(done)["by_customer"] == "FULL (changed-sql), 20 rows"
    response = done.results[0].adapter_response
    told = [response[name] for name in ("strategy", "reason", "rows_affected")]
    assert told == ["full", "changed-sql", 20]
    assert min(response[name] for name in ("bytes_read", "bytes_written", "jobs")) > 0
    assert "keys" not in response
    assert sorted(row[2] for row in shop.rows("by_customer")) == list(range(21, 41))
    assert states(shop) == []
    shop.model("by_customer", BY_CUSTOMER + "having count(*) > 1")
    shop.dbt("run", "--full-refresh", "--select", "by_customer")
    assert states(shop) == ["by_customer__state"]
    shop.model("by_customer", BY_CUSTOMER.replace("materialized='incremental'", "materialized='table'"))
    shop.dbt("run", "--select", "by_customer")
    assert states(shop) == []


def states(shop: Shop) -> list[str]:
    return sorted(
        entry.name for entry in shop.catalog.list_relations(shop.schema) if entry.name.endswith("__state")
    )


def told_by_plan(shop: Shop, *options: str) -> str:
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    done = CliRunner().invoke(main, ["plan", *options, *folders])
    assert done.exit_code == 0, done.output
    return done.output


def plans(shop: Shop, *options: str) -> dict[str, dict[str, Any]]:
    return {entry["model"]: entry for entry in json.loads(told_by_plan(shop, "--json", *options))}


@pytest.mark.usefixtures("dbt_log")
def test_the_plan_is_that_of_the_run_with_a_contract_and_with_consistent_reads(shop: Shop) -> None:
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text())
    profile["shop"]["outputs"]["dev"]["consistent_reads"] = True
    shop.file("profiles.yml", yaml.safe_dump(profile))
    columns = [{"name": name, "data_type": "bigint"} for name in ("amount", "customer", "orders")]
    described = {"name": "by_customer", "config": {"contract": {"enforced": True}}, "columns": columns}
    shop.file("models/by_customer.yml", yaml.safe_dump({"version": 2, "models": [described]}))
    layered(shop, BY_CUSTOMER.replace("buckets=2", "buckets=2, on_schema_change='append_new_columns'"))
    assert {name: entry["refresh"] for name, entry in plans(shop).items()} == {
        "by_customer": "nothing",
        "big": "nothing",
    }
    shop.source("raw_orders", rows((1, 1, 100)))
    shop.dbt("run", "--select", "orders")
    told = plans(shop)["by_customer"]
    assert (told["refresh"], told["reason"], told["advice"]) == ("incremental", None, [])
    assert messages(shop.dbt("run", "--select", "by_customer"))["by_customer"].startswith("INCREMENTAL")
    log = shop.folder / "logs" / "dbt.log"
    log.parent.mkdir(exist_ok=True)
    log.write_text("")
    shop.dbt("compile")
    assert "refreshed incrementally" not in log.read_text()
    shop.model("big", BIG.replace("buckets=2", "buckets=2, full_refresh=true"))
    assert plans(shop)["big"]["refresh"] == "build"


def test_an_upstream_that_is_a_view_a_seed_or_a_plain_table_is_followed(shop: Shop) -> None:
    shop.source("raw_orders", rows(*((n, n % 4, n) for n in range(1, 41))))
    shop.file("seeds/customers.csv", "id,name\n0,Ann\n1,Ben\n2,Cid\n3,Dan\n")
    shop.model("recent", "{{ config(materialized='view') }} select * from {{ source('raw', 'raw_orders') }}")
    shop.model(
        "named",
        """{{ config(materialized='incremental', incremental_strategy='auto', unique_key='id', buckets=2) }}
        with named as (select id, name as customer from {{ ref('customers') }})
        select recent.id, named.customer, amount
        from {{ ref("recent") }} join named on named.id = recent.customer""",
    )
    shop.dbt("build")
    everything = (
        "SELECT r.id, c.name, r.amount FROM {s}.raw_orders r JOIN {s}.customers c ON c.id = r.customer"
    )
    shop.sql("INSERT INTO {s}.raw_orders VALUES (50, 2, 50)")
    assert messages(shop.dbt("run", "--select", "named"))["named"] == "INCREMENTAL (1 key), 1 row"
    shop.sql("UPDATE {s}.raw_orders SET customer = 0 WHERE id = 7")
    shop.sql("DELETE FROM {s}.raw_orders WHERE id = 9")
    assert messages(shop.dbt("run", "--select", "named"))["named"] == "INCREMENTAL (2 keys), 2 rows"
    assert shop.rows("named") == sorted(shop.sql(everything), key=repr)


def test_a_value_that_the_query_itself_never_computes_may_not_fail_a_run(shop: Shop) -> None:
    shop.source("raw_orders", rows(*((n, n % 20 + 1, n) for n in range(1, 41))))
    shop.source("raw_events", "SELECT id FROM range(1, 21)")
    shop.model("orders", ORDERS)
    shop.model(
        "shares",
        """
        {{ config(materialized='incremental', incremental_strategy='auto', unique_key='share', buckets=2) }}
        select 1000 div o.customer as share, max(cast(o.amount as double)) as amount
        from {{ ref('orders') }} as o join {{ source('raw', 'raw_events') }} as e on e.id = o.customer
        group by 1000 div o.customer""",
    )
    shop.dbt("run")
    shop.source("raw_orders", rows((1, 0, 100), (2, 3, 7)))
    # No event has the id 0, so the query never divides by it; the search for affected keys does.
    assert messages(shop.dbt("run"))["shares"].startswith("FULL (failed)")
    amounts = "SELECT 1000 div customer, max(double(amount)) FROM {s}.orders WHERE customer > 0 GROUP BY ALL"
    assert shop.rows("shares") == sorted(shop.sql(amounts), key=repr)


@pytest.mark.long
def test_a_model_does_without_a_state_that_is_lost_or_cannot_be_kept(shop: Shop) -> None:
    layered(shop, HAVING)
    # Computed here: the expected rows from what the model reads.
    shop.sql("DROP VIEW {s}.by_customer__state")
    shop.source("raw_orders", rows((1, 1, 100)))
    assert messages(shop.dbt("run", "--select", "orders", "by_customer"))["by_customer"].startswith("FULL")
    assert shop.rows("by_customer") == expected(shop)
    # A full refresh makes a new one.
    shop.model(
        "by_kind",
        """
        {{ config(materialized='incremental', incremental_strategy='auto', unique_key='customer') }}
        select customer, nullif(customer, 3) as kind, sum(amount) as amount
        from {{ ref('orders') }} group by customer, nullif(customer, 3)""",
    )
    shop.dbt("run", "--full-refresh", "--select", "by_customer", "by_kind")
    shop.source("raw_orders", rows((2, 1, 50)))
    told = messages(shop.dbt("run"))
    assert told["by_customer"] == "INCREMENTAL (sums), 2 rows"
    assert shop.rows("by_customer") == expected(shop)
    # A group with NULL among its values cannot be a key of a state.
    assert told["by_kind"] == "INCREMENTAL (2 keys), 2 rows"
    kinds = "SELECT customer, nullif(customer, 3), sum(amount) FROM {s}.orders GROUP BY customer"
    assert shop.rows("by_kind") == sorted(shop.sql(kinds), key=repr)


@pytest.mark.long
def test_a_run_that_ended_between_state_and_model_is_finished_by_the_next(shop: Shop) -> None:
    layered(shop, HAVING)
    ended = set()
    for amount, at in enumerate((1, 4, 7, 10), 100):
        shop.source("raw_orders", rows((1, 1, amount)))
        shop.dbt("run", "--select", "orders")
        shop.end({"by_customer": (at, False)})
        shop.try_dbt("run", "--select", "by_customer")
        shop.end({})
        ended.add(messages(shop.dbt("run", "--select", "by_customer"))["by_customer"])
        assert shop.rows("by_customer") == expected(shop)
    # Before the state, in between, and after both
    assert {"INCREMENTAL (sums), 1 row", "INCREMENTAL (state), 1 row"} <= ended


def test_what_a_header_sets_is_a_part_of_what_a_model_means(shop: Shop) -> None:
    config = "config(materialized='incremental', incremental_strategy='auto', unique_key='id')"
    text = f"{{{{ {config} }}}} select id, cast(at as date) as day from {{{{ source('raw', 'raw_orders') }}}}"
    zone = "{% call set_sql_header(config) %} set spark.sql.session.timeZone=Asia/Tokyo; {% endcall %}"
    shop.source("raw_orders", "SELECT id, timestamp'2026-01-01 20:00:00Z' AS at FROM range(3)")
    shop.model("seen", text)
    shop.dbt("run")
    days = [str(day) for _, day in shop.rows("seen")]
    assert days == ["2026-01-01"] * 3
    shop.model("seen", text + zone)
    results = shop.dbt("run").results
    assert results[0].adapter_response["reason"] == "changed-sql"
    assert [str(day) for _, day in shop.rows("seen")] == ["2026-01-02"] * 3
    assert shop.dbt("run").results[0].adapter_response["strategy"] == "skip"
    hook = config.replace("id')", "id', pre_hook='set spark.sql.session.timeZone=UTC')")
    shop.model("seen", text.replace(config, hook))
    shop.dbt("run")
    assert [str(day) for _, day in shop.rows("seen")] == days

    # Whatever a macro of a hook sets or defines is known when it has run, and only to its own model.
    shop.file("macros/set.sql", "{% macro prepare() %}{{ var('first', 'select 1') }}{% endmacro %}")
    shop.model(
        "seen",
        text.replace(config, hook.replace("'set spark.sql.session.timeZone=UTC'", "'{{ prepare() }}'")),
    )
    shop.model("without", text)
    names = ("seen", "without")

    def run(first: str) -> dict[str, tuple[str, str]]:
        done = shop.dbt("run", "--vars", json.dumps({"first": first}))
        told = {result.node.name: result.adapter_response for result in done.results}
        assert [*told] == [*names], "one after the other in one thread"
        return {name: (told[name]["strategy"], told[name]["reason"]) for name in names}

    run("select 1")
    in_tokyo = "set spark.sql.session.timeZone=Asia/Tokyo"
    assert run(in_tokyo) == {"without": ("skip", "unchanged"), "seen": ("full", "changed-sql")}
    assert [str(day) for _, day in shop.rows("seen")] == ["2026-01-02"] * 3
    assert [str(day) for _, day in shop.rows("without")] == days
    assert run(in_tokyo) == dict.fromkeys(names, ("skip", "unchanged"))
    assert len(shop.script.ran) == 1, "the hook itself"
    for first in ("set spark.sql.legacy.ctePrecedencePolicy=LEGACY", "create temporary view cut as select 1"):
        assert run(first) == {"without": ("skip", "unchanged"), "seen": ("full", "setting")}
