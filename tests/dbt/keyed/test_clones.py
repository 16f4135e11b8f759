"""`dbt clone`: a clone owns nothing until its first write, and then goes on from the rows that it showed."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import pytest
import yaml

import dbt_arctic
from dbt_arctic.errors import StatementError
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.consumers import find_consumers
from dbt_arctic.refresh.clone import began_as
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
    # What has to be erased in production has been copied to these tables.
    source = find_keyed(shop.catalog, Name("lake", shop.schema, "orders"))
    assert source is not None
    copies = {one.name for one in find_consumers(shop.catalog, source) if one.began_as_clone}
    assert copies == {f"lake.{shop.schema}_ci.orders"}
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
    # The columns of a table may be newer than its last snapshot.
    shop.sql("alter table {s}.appended alter column at type bigint")
    clone(shop)
    before = heads(shop)
    shop.sql(LATER)
    shop.sql("delete from {s}.raw_orders where id = 1 and at = 1")  # a snapshot follows one row of a key
    ci(shop, "build")
    assert in_ci(shop, "appended", "id, at") == [(1, 1), (1, 2), (2, 1), (3, 2)]
    assert in_ci(shop, "appended", "distinct typeof(at)") == [("bigint",)]
    assert in_ci(shop, "history", "id, dbt_valid_to") == [(1, 2), (1, None), (2, None), (3, None)]
    assert entries(shop, f"{shop.schema}_ci") == {"appended": "table", "history": "table"}
    written = shop.catalog.load_table(f"{shop.schema}_ci", "appended")
    assert written is not None
    assert began_as(written.properties) == Name("lake", shop.schema, "appended")
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


def test_views_and_clones_follow_columns_and_fields_that_change_places(production: Shop) -> None:
    """Iceberg matches the columns of a view with those of its query by position, and their fields too."""

    def write(columns: str) -> None:
        production.model("rebuilt", f"{{{{ config(materialized='table') }}}} select {columns}")
        production.model(
            "keyed",
            f"{{{{ config(materialized='incremental', unique_key='a', buckets=1) }}}} select {columns}",
        )

    # Fields of equal types: of unequal ones, Spark refuses most orders by itself.
    forth = """'1' as a, '2' as b, '3' as `c-d`, named_struct('x', 'x', 'y', 'y') as `s-1`,
        array(named_struct('in', named_struct('p', 1, 'q', 2), 'n', 3), null) as l,
        map(named_struct('k', 4, 'j', 5), named_struct('v', 6, 'w', 7)) as m,
        if(false, named_struct('x', 1, 'y', 2), null) as nothing"""
    back = """if(false, named_struct('new', 9, 'y', 2, 'x', 1), null) as nothing,
        map(named_struct('j', 5, 'k', 4), named_struct('w', 7, 'new', 9, 'v', 6)) as m,
        array(named_struct('n', 3, 'in', named_struct('q', 2, 'p', 1)), null) as l,
        named_struct('y', 'y', 'new', named_struct('z', 9), 'x', 'x') as `s-1`,
        '3' as `c-d`, '2' as b, '1' as a"""
    listed = "a, b, `c-d`, `s-1`, l, m, nothing"
    write(forth)
    production.model("shown", "{{ config(materialized='view') }} select * from {{ ref('rebuilt') }}; -- all")
    production.model("listed", f"select {listed} from {{{{ ref('shown') }}}}")
    production.model(
        "summed",
        "{{ config(materialized='materialized_view', unique_key='x', buckets=1) }} "
        "select l[0].`in`.p as x, max(`s-1`.x) as y from {{ ref('listed') }} group by 1",
    )
    build(production)
    ci(production, "clone", "--state", "state")
    views = [
        *(f"{production.schema}.{name}" for name in ("shown", "listed")),
        *(f"{production.schema}_ci.{name}" for name in ("rebuilt", "keyed", "shown", "listed")),
    ]

    def values(view: str) -> list[Any]:
        shown = listed.replace("m,", "map_entries(m) as m,")
        return production.sql(f"SELECT to_json(struct({shown})), `s-1`.y, l.`in`.p FROM lake.{view}")

    expected = values(views[0])
    assert json.loads(expected[0][0])["s-1"] == {"x": "x", "y": "y"}
    for view in views:
        table = "keyed" if view.endswith("keyed") else "rebuilt"
        of_view, of_table = (
            _scan(production, f"SELECT l.n FROM lake.{one} WHERE `s-1`.x = 'x'")
            for one in (view, f"{production.schema}.{table}")
        )
        assert of_view == of_table
        assert any("x = 'x'" in part for part in of_table)
        assert table == "keyed" or of_table[0] == "struct<s-1:struct<x:string>,l:array<struct<n:int>>>"
    write(back)
    production.dbt("run", "--full-refresh", "--select", "rebuilt", "keyed")
    for view in views:
        assert values(view) == expected, view
    production.dbt("run", "--select", "summed")
    assert production.rows("summed", "x, y") == [(1, "x")]

    # A field that is gone is an error, and never another value.
    write(back.replace("'y', 'y', ", ""))
    production.dbt("run", "--select", "rebuilt")
    for view in views[:2]:
        with pytest.raises(StatementError, match="No such struct field"):
            values(view)


def _scan(shop: Shop, query: str) -> list[str]:
    """The columns that the scans of a query read, and their filters."""
    plan = shop.connection.session.sql(query)._jdf.queryExecution()
    leaves = plan.optimizedPlan().collectLeaves()
    columns = [str(leaves.apply(at).schema().simpleString()) for at in range(leaves.size())]
    return [*columns, *re.findall(r"filters=(.*?), runtimeFilters", str(plan.executedPlan().toString()))]
