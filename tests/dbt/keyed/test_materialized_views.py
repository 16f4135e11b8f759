"""Materialized views and streaming tables as dbt runs them, and `on_schema_change: full_refresh`."""

from __future__ import annotations

import json

from dbt_arctic.errors import SchemaChanged
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.materializations import is_materialized_view
from dbt_arctic.store.state import load_keyed
from tests.dbt.keyed.conftest import Shop

TOTALS = """
{{ config(materialized='MATERIALIZED', unique_key='status', buckets=1, full_refresh_above=1) }}
select status, count(*) as orders, sum(amount) as amount from {{ ref('orders') }} group by status
"""
ORDERS = """
{{ config(materialized='incremental', unique_key='id', buckets=1, delete_when="status = 'gone'") }}
select id, status, amount from {{ source('raw', 'raw_orders') }}
"""
ROWS = {1: ("new", 10), 2: ("new", 20), 3: ("paid", 30)}


def totals(rows: dict[int, tuple[str, int]]) -> list[tuple[str, int, int]]:
    """The materialized view in plain Python."""
    by_status: dict[str, list[int]] = {}
    for status, amount in rows.values():
        by_status.setdefault(status, []).append(amount)
    return sorted((status, len(amounts), sum(amounts)) for status, amounts in by_status.items())


def land(shop: Shop, rows: dict[int, tuple[str, int]]) -> None:
    values = ", ".join(f"({id_}L, '{status}', {amount}L)" for id_, (status, amount) in rows.items())
    shop.source("raw_orders", f"SELECT * FROM VALUES {values} AS t(id, status, amount)")


def is_marked(shop: Shop, name: str = "totals") -> bool:
    view = shop.catalog.load_view(shop.schema, name)
    return view is not None and is_materialized_view(view.properties)


def test_a_materialized_view_is_refreshed_by_what_changed_under_its_own_type(shop: Shop) -> None:
    shop.model("orders", ORDERS)
    shop.model("totals", TOTALS.replace("MATERIALIZED", "materialized_view"))
    shop.file("models/unit.yml", UNIT_TEST)
    land(shop, ROWS)
    shop.dbt("build")
    assert shop.rows("totals") == totals(ROWS)
    rows = {**ROWS, 2: ("paid", 25), 4: ("new", 40)}
    land(shop, {2: rows[2], 4: rows[4]})
    shop.dbt("run")
    assert shop.rows("totals") == totals(rows)
    assert shop.recorded["totals"]["strategy"] == "incremental"
    before = shop.log("totals")
    shop.dbt("run", "--select", "totals")
    shop.dbt("run", "--select", "totals", "--empty")
    assert shop.log("totals") == before

    # What the documentation and dbt's own listing say of it.
    shop.dbt("docs", "generate")
    catalog = json.loads((shop.folder / "target" / "catalog.json").read_text(encoding="utf-8"))
    nodes = catalog["nodes"]
    assert nodes["model.shop.totals"]["metadata"]["type"] == "materialized view"
    assert nodes["model.shop.orders"]["metadata"]["type"] == "keyed table"

    # Under another name of the same thing the rows stay, and the type follows.
    generation = load_keyed(shop.catalog, Name("lake", shop.schema, "totals")).generation
    for materialized, marked in (("incremental", False), ("materialized_view", True)):
        text = TOTALS.replace("MATERIALIZED", materialized)
        shop.model("totals", text.replace("buckets=1", "buckets=1, incremental_strategy='auto'"))
        shop.dbt("run", "--select", "totals")
        assert is_marked(shop) is marked
    assert load_keyed(shop.catalog, Name("lake", shop.schema, "totals")).generation == generation

    # Every other materialization replaces it, and it replaces them; nothing is left behind.
    other = "select 'x' as status, 1L as orders, 1L as amount"
    for config in ("materialized='table'", "materialized='view'"):
        shop.model("totals", f"{{{{ config({config}) }}}} {other}")
        shop.dbt("run", "--select", "totals")
        assert not is_marked(shop)
        assert shop.rows("totals") == [("x", 1, 1)]
        shop.model("totals", TOTALS.replace("MATERIALIZED", "materialized_view"))
        shop.dbt("run", "--select", "totals")
        assert is_marked(shop)
        assert shop.rows("totals") == totals(rows)
    (shop.folder / "models" / "totals.sql").unlink()
    (shop.folder / "models" / "unit.yml").unlink()
    shop.file("seeds/totals.csv", "status,orders,amount\nseeded,1,1\n")
    shop.dbt("seed")
    assert shop.rows("totals", "status") == [("seeded",)]
    (shop.folder / "seeds" / "totals.csv").unlink()
    shop.model("totals", TOTALS.replace("MATERIALIZED", "materialized_view"))
    shop.file("models/contract.yml", CONTRACT)
    shop.dbt("run", "--select", "totals")
    assert shop.rows("totals") == totals(rows)
    shop.file("models/contract.yml", CONTRACT.replace("data_type: string", "data_type: date"))
    assert "date" in shop.fail("run", "--select", "totals")
    shop.file("models/contract.yml", CONTRACT)
    left = {entry.name for entry in shop.catalog.list_relations(shop.schema) if "totals" in entry.name}
    assert len(left) == 3, left

    # A rename keeps what it is; adapter.drop_relation drops all of it.
    shop.file("macros/moves.sql", MOVES)
    shop.dbt("run-operation", "moves", "--args", f"{{schema: {shop.schema}}}")
    assert not [one.name for one in shop.catalog.list_relations(shop.schema) if "totals" in one.name]


UNIT_TEST = """
unit_tests:
  - name: adds_up
    model: totals
    given:
      - input: ref('orders')
        rows: [{id: 1, status: new, amount: 1}, {id: 2, status: new, amount: 2}]
    expect:
      rows: [{status: new, orders: 2, amount: 3}]
"""
CONTRACT = """
models:
  - name: totals
    config: {contract: {enforced: true}}
    columns:
      - {name: status, data_type: string, constraints: [{type: not_null}]}
      - {name: orders, data_type: bigint}
      - {name: amount, data_type: bigint}
"""
MOVES = """
{% macro moves(schema) %}
  {% set old = adapter.get_relation(target.database, schema, 'totals') %}
  {% if not old.is_materialized_view %}{{ exceptions.raise_compiler_error(old.type) }}{% endif %}
  {% set new = old.incorporate(path={'identifier': 'totals_of_old'}) %}
  {% do adapter.rename_relation(old, new) %}
  {% set found = adapter.get_relation(target.database, schema, 'totals_of_old') %}
  {% if not found.is_materialized_view %}{{ exceptions.raise_compiler_error(found.type) }}{% endif %}
  {% do adapter.drop_relation(found) %}
{% endmacro %}
"""

PULLED = """
{{ config(materialized='streaming_table', unique_key='id', buckets=1) }}
select id, amount, _action from {{ incremental_pull(ref('orders')) }}
"""


def test_a_streaming_table_pulls_and_one_that_pulls_nothing_is_refused(shop: Shop) -> None:
    shop.model("orders", ORDERS)
    shop.model("pulled", PULLED)
    land(shop, ROWS)
    shop.dbt("run")
    land(shop, {2: ("gone", 0), 4: ("new", 40)})
    shop.dbt("run")
    assert shop.rows("pulled") == [(1, 10), (3, 30), (4, 40)]
    shop.dbt("run", "--select", "pulled")
    assert shop.script.ran == []
    land(shop, {5: ("new", 50)})
    shop.dbt("run", "--empty")
    assert shop.rows("pulled") == [(1, 10), (3, 30), (4, 40)]
    shop.dbt("run", "--full-refresh")
    assert shop.rows("pulled") == [(5, 50)]

    text = PULLED.replace("incremental_pull(ref('orders'))", "ref('orders')")
    shop.model("pulled", text.replace(", _action", ""))
    message = shop.fail("run", "--select", "pulled")
    assert "AR-301 " in message
    assert "a streaming table pulls nothing" in message
    assert shop.rows("pulled") == [(5, 50)]


PULL = """
{{ config(materialized='incremental', unique_key='id', buckets=1, on_schema_change='full_refresh') }}
select id, amount, _action from {{ incremental_pull(ref('orders')) }}
"""
FILTERED = """
{{ config(materialized='incremental', incremental_strategy='append', on_schema_change='full_refresh') }}
select id, amount from {{ ref('orders') }} join {{ ref('one') }} on true
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""


def test_other_columns_rebuild_a_table_from_all_rows(shop: Shop) -> None:
    shop.model("orders", ORDERS)
    shop.model("one", "{{ config(materialized='ephemeral') }} select 1 as one")
    shop.model("pulled", PULL)
    shop.model("filtered", FILTERED)
    land(shop, ROWS)
    shop.dbt("run")
    land(shop, {4: ("new", 40)})
    shop.dbt("run")
    generation = load_keyed(shop.catalog, Name("lake", shop.schema, "pulled")).generation
    rows = {**ROWS, 4: ("new", 40)}
    assert shop.rows("pulled") == shop.rows("filtered") == sorted((k, v[1]) for k, v in rows.items())
    # Nothing is rebuilt as long as the columns are the same: rows that are gone upstream are still there.
    assert load_keyed(shop.catalog, Name("lake", shop.schema, "pulled")).generation == generation

    land(shop, {5: ("new", 50)})
    shop.dbt("run", "--select", "orders")
    for name, text in (("pulled", PULL), ("filtered", FILTERED)):
        columns = "select id, cast(amount as double) as amount, status"
        shop.model(name, text.replace("select id, amount", columns))
    message = shop.fail("run", "--select", "pulled", "--empty")
    assert SchemaChanged.code in message
    assert "status" in message
    shop.dbt("run", "--select", "pulled", "filtered")
    rows[5] = ("new", 50)
    expected = sorted((k, float(v[1]), v[0]) for k, v in rows.items())
    assert shop.rows("pulled") == shop.rows("filtered") == expected
    assert load_keyed(shop.catalog, Name("lake", shop.schema, "pulled")).generation != generation

    # From here on it pulls changes again.
    land(shop, {1: ("gone", 0)})
    shop.dbt("run", "--select", "orders", "pulled")
    assert shop.rows("pulled") == expected[1:]
