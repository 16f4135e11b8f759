"""`dbt clone`: a clone owns nothing until its first write, and then goes on from the rows that it showed."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import yaml

import dbt_arctic
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.materializations import is_materialized_view
from dbt_arctic.store.state import find_keyed
from tests.dbt.keyed.conftest import Shop
from tests.extent import first

ORDERS = """{{ config(materialized='incremental', unique_key='id', delete_when='gone', deduplicate_by='at') }}
select id, customer, amount, gone, at from {{ source('raw', 'raw_orders') }}
{% if is_incremental() %} where at > (select max(at) from {{ this }}) {% endif %}"""
BY_ORDER = """{{ config(materialized='incremental', unique_key='id', persist_docs={'relation': true}) }}
select id, amount * 2 as twice, _action from {{ incremental_pull(ref('orders')) }}"""
SUMMED = """{{ config(materialized='materialized_view', unique_key='customer', full_refresh_above=1) }}
select customer, sum(amount) as amount from {{ ref('orders') }} group by customer"""
APPENDED = """{{ config(materialized='incremental') }}
select id, at from {{ source('raw', 'raw_orders') }}
{% if is_incremental() %} where at > (select max(at) from {{ this }}) {% endif %}"""
SNAPSHOT = """snapshots:
  - name: history
    relation: source('raw', 'raw_orders')
    config: {unique_key: id, strategy: timestamp, updated_at: at}
"""
FIRST = (
    "select col1 id, col2 customer, col3 amount, false gone, col4 at "
    "from values (1L, 'a', 10, 1), (2L, 'b', 20, 1)"
)
LATER = "insert into {s}.raw_orders values (3L, 'a', 30, false, 2), (1L, 'a', 0, true, 2)"


@pytest.fixture
def production(shop: Shop) -> Shop:
    """The project built in one schema, its state kept, and a target `ci` with a schema of its own."""
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text())
    outputs = profile["shop"]["outputs"]
    outputs["ci"] = {**outputs["dev"], "schema": f"{shop.schema}_ci"}
    shop.file("profiles.yml", yaml.safe_dump(profile))
    shop.source("raw_orders", FIRST)
    return shop


def build(shop: Shop, command: str = "run") -> None:
    shop.dbt(command)
    (shop.folder / "state").mkdir()
    shutil.copy(shop.folder / "target" / "manifest.json", shop.folder / "state")


def ci(shop: Shop, *arguments: str) -> Any:
    return shop.dbt(*arguments, "--target", "ci")


def clone(shop: Shop, *arguments: str) -> None:
    ci(shop, "clone", "--state", str(shop.folder / "state"), *arguments)


def in_ci(shop: Shop, name: str, columns: str) -> list[tuple[Any, ...]]:
    return sorted(shop.sql(f"SELECT {columns} FROM lake.{shop.schema}_ci.{name}"), key=repr)


def entries(shop: Shop, schema: str) -> dict[str, str]:
    return {entry.name: entry.kind for entry in shop.catalog.list_relations(schema)}


def heads(shop: Shop) -> dict[str, int | None]:
    """The current snapshot of every table of production."""
    found = {}
    for name, kind in entries(shop, shop.schema).items():
        state = shop.catalog.load_table(shop.schema, name) if kind == "table" else None
        found[name] = state.current_snapshot_id if state else None
    return found


def test_a_project_goes_on_from_its_clones(production: Shop) -> None:
    shop = production
    for name, text in (("orders", ORDERS), ("by_order", BY_ORDER), ("summed", SUMMED)):
        shop.model(name, text)
    build(shop)
    folder = str(shop.folder)
    batch = shop.connection.session.sql("select 1L id, 'a' customer, 10 amount, false gone, 1 at")
    sent = {"idempotency_key": "k", "project_dir": folder, "profiles_dir": folder}
    assert dbt_arctic.append("orders", batch, **sent).written
    shop.dbt("run")
    clone(shop)
    assert entries(shop, f"{shop.schema}_ci") == dict.fromkeys(("orders", "by_order", "summed"), "view")
    assert in_ci(shop, "by_order", "id, twice") == [(1, 20), (2, 40)]
    shop.file("models/docs.yml", "models: [{name: by_order, description: Twice the amount}]")
    results = ci(shop, "run", "--select", "by_order").results
    assert results[0].adapter_response["code"] == "SKIP"
    assert entries(shop, f"{shop.schema}_ci") == dict.fromkeys(("orders", "by_order", "summed"), "view")

    shop.sql(LATER)
    before = heads(shop)
    results = ci(shop, "run").results
    said = {result.node.name: result.adapter_response["_message"] for result in results}
    assert (said["orders"], said["by_order"]) == ("UPSERT 2", "UPSERT 2")
    # A materialized view stays one; production's is another table.
    assert in_ci(shop, "summed", "customer, amount") == [("a", 30), ("b", 20)]
    view = shop.catalog.load_view(f"{shop.schema}_ci", "summed")
    assert view is not None
    assert is_materialized_view(view.properties)
    assert shop.rows("summed") == [("a", 10), ("b", 20)]
    assert in_ci(shop, "orders", "id, amount") == [(2, 20), (3, 30)]
    assert in_ci(shop, "by_order", "id, twice") == [(2, 40), (3, 60)]
    assert shop.rows("by_order", "id, twice") == [(1, 20), (2, 40)]
    assert heads(shop) == before
    assert find_keyed(shop.catalog, Name("lake", f"{shop.schema}_ci", "by_order")) is not None
    # A batch that is in the cloned rows is not written again.
    assert not dbt_arctic.append("orders", batch, target="ci", **sent).written

    results = ci(shop, "run", "--select", "by_order").results
    assert results[0].adapter_response["code"] == "SKIP"


def test_a_clone_pulls_on_from_what_its_source_pulls_from(production: Shop) -> None:
    shop = production
    for name, text in (("orders", ORDERS), ("by_order", BY_ORDER)):
        shop.model(name, text)
    build(shop)
    clone(shop, "--select", "by_order")
    shop.sql(LATER)
    shop.dbt("run", "--select", "orders")
    ci(shop, "run", "--select", "by_order", "--defer", "--state", str(shop.folder / "state"))
    assert in_ci(shop, "by_order", "id, twice") == [(2, 40), (3, 60)]
    assert "orders" not in entries(shop, f"{shop.schema}_ci")

    # Without --defer its upstream is another table, of which nothing is known: no guess, an error.
    clone(shop, "--select", "by_order", "--full-refresh")
    ci(shop, "run", "--select", "orders")
    said = shop.fail("run", "--select", "by_order", "--target", "ci")
    assert "AR-301" in said
    assert "--full-refresh" in said
    assert in_ci(shop, "by_order", "id, twice") == [(1, 20), (2, 40)]


def test_a_plain_model_and_a_snapshot_go_on_from_their_clones(production: Shop) -> None:
    shop = production
    shop.model("appended", APPENDED)
    shop.file("snapshots/history.yml", SNAPSHOT)
    build(shop, "build")
    clone(shop)
    before = heads(shop)
    shop.sql(LATER)
    shop.sql("delete from {s}.raw_orders where id = 1 and at = 1")  # a snapshot follows one row of a key
    ci(shop, "build")
    assert in_ci(shop, "appended", "id, at") == [(1, 1), (1, 2), (2, 1), (3, 2)]
    assert in_ci(shop, "history", "id, dbt_valid_to") == [(1, 2), (1, None), (2, None), (3, None)]
    assert entries(shop, f"{shop.schema}_ci") == {"appended": "table", "history": "table"}
    assert {**heads(shop), "raw_orders": None} == {**before, "raw_orders": None}


@pytest.mark.parametrize(
    ("config", "seen"), first(1, [("unique_key='id', buckets=1", 3), ("incremental_strategy='append'", 6)])
)
def test_a_first_write_to_a_clone_survives_an_end_at_every_statement(
    production: Shop, config: str, seen: int
) -> None:
    """At the last statements, which are those that are seen under the name; a build is cut off elsewhere."""
    shop = production
    text = f"{{{{ config(materialized='incremental', {config}) }}}} " + APPENDED.split("\n", 1)[1]
    shop.model("counted", text)
    build(shop)
    clone(shop)
    shop.sql(LATER.replace("(1L", "(4L"))
    ci(shop, "run")
    statements = len(shop.script.ran)
    expected = in_ci(shop, "counted", "id, at")
    assert expected == [(1, 1), (2, 1), (3, 2), (4, 2)]

    shop.source("raw_orders", FIRST)
    ends = {f"m_{at}": (at, True) for at in range(statements - seen, statements)}
    for name in ends:
        shop.model(name, text)
    shutil.rmtree(shop.folder / "state")
    build(shop)
    clone(shop, "--exclude", "counted")
    shop.sql(LATER.replace("(1L", "(4L"))
    shop.end(ends)
    assert not shop.try_dbt("run", "--target", "ci", "--exclude", "counted").success
    shop.end({})
    ci(shop, "run", "--exclude", "counted")
    for name in ends:
        assert in_ci(shop, name, "id, at") == expected, name
        assert shop.rows(name, "id, at") == [(1, 1), (2, 1)], name
    assert not [name for name in entries(shop, f"{shop.schema}_ci") if "__arctic_" in name]


def test_views_and_clones_follow_columns_that_change_places(production: Shop) -> None:
    """Iceberg matches the columns of a view with those of its query by position."""

    def write(columns: str) -> None:
        production.model("rebuilt", f"{{{{ config(materialized='table') }}}} select {columns}")
        production.model(
            "keyed",
            f"{{{{ config(materialized='incremental', unique_key='a', buckets=1) }}}} select {columns}",
        )

    write("'1' as a, '2' as b, '3' as `c-d`")
    production.model("shown", "{{ config(materialized='view') }} select * from {{ ref('rebuilt') }}; -- all")
    build(production)
    ci(production, "clone", "--state", "state")
    write("'3' as `c-d`, '2' as b, '1' as a")
    production.dbt("run", "--full-refresh", "--select", "rebuilt", "keyed")
    own = [f"{production.schema}.shown"]
    clones = [f"{production.schema}_ci.{name}" for name in ("rebuilt", "keyed", "shown")]
    for name in (*own, *clones):
        assert production.sql(f"SELECT a, b, `c-d` FROM lake.{name}") == [("1", "2", "3")], name
