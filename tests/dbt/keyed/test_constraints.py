"""Constraints of contracts: a row that breaks one changes nothing, whatever kind of table and run it is."""

from __future__ import annotations

from typing import Any

import yaml

from tests.dbt.keyed.conftest import Shop

KEYED = """
{{ config(materialized='incremental', unique_key='id', on_schema_change='append_new_columns',
          delete_when='gone', deduplicate_by='at') }}
select id, name, gone, at from {{ source('raw', 'raw_orders') }}
"""
COLUMNS = "AS orders(id, name, gone, at)"


def contract(*models: str, name: list[dict[str, Any]], constraints: Any = ()) -> str:
    """Properties with a contract on some models, and the constraints of the column `name`."""
    columns = [
        {"name": "id", "data_type": "int"},
        {"name": "name", "data_type": "string", "constraints": name},
        {"name": "gone", "data_type": "boolean"},
        {"name": "at", "data_type": "int"},
    ]
    config = {"contract": {"enforced": True}}
    described = [
        {"name": model, "config": config, "columns": columns, "constraints": list(constraints)}
        for model in models
    ]
    return yaml.safe_dump({"version": 2, "models": described})


NOT_NULL = [{"type": "not_null"}]
SHORT = [{"type": "check", "name": "short_name", "expression": "length(name) < 9 -- or || nearly"}]


def test_a_keyed_table_stores_no_row_that_breaks_a_constraint(shop: Shop) -> None:
    shop.model("orders", KEYED)
    shop.file("models/orders.yml", contract("orders", name=NOT_NULL, constraints=SHORT))
    shop.source("raw_orders", f"SELECT * FROM VALUES (1, 'a', false, 1), (2, 'b', false, 1) {COLUMNS}")
    shop.dbt("run")
    nullable = {column.name: column.nullable for column in shop.state("orders", "base").columns}
    assert not nullable["name"]
    assert nullable["at"]

    before = shop.log("orders")
    shop.source("raw_orders", f"SELECT * FROM VALUES (3, 'c', false, 1), (4, null, false, 1) {COLUMNS}")
    message = shop.fail("run")
    assert 'AR-307 a row violates the constraint not_null on name: {"id":4}' in message
    shop.source("raw_orders", f"SELECT * FROM VALUES (3, 'much too long', false, 1) {COLUMNS}")
    message = shop.fail("run", "--full-refresh")
    assert 'AR-307 a row violates the constraint short_name: {"id":3}' in message
    assert shop.log("orders") == before

    # A delete has only a key, and a row that another one supersedes is not stored.
    rows = "(1, null, true, 1), (2, null, false, 1), (2, 'B', false, 2)"
    shop.source("raw_orders", f"SELECT * FROM VALUES {rows} {COLUMNS}")
    shop.dbt("run")
    assert shop.rows("orders", "id, name") == [(2, "B")]
    shop.dbt("run-operation", "compact", "--args", "{trim_grace: 0}")
    assert shop.rows("orders__base_1", "id, name") == [(2, "B")]

    # A constraint that is gone is gone from the base too, or compaction could not merge.
    shop.file("models/orders.yml", contract("orders", name=[]))
    shop.source("raw_orders", f"SELECT * FROM VALUES (5, cast(null as string), false, 3) {COLUMNS}")
    shop.dbt("run")
    shop.dbt("run-operation", "compact", "--args", "{trim_grace: 0}")
    assert shop.rows("orders__base_1", "id, name") == [(2, "B"), (5, None)]


def test_another_primary_key_than_the_tables_own_is_an_error(shop: Shop) -> None:
    shop.model("orders", KEYED)
    shop.file("models/orders.yml", contract("orders", name=[{"type": "primary_key"}]))
    shop.source("raw_orders", f"SELECT * FROM VALUES (1, 'a', false, 1) {COLUMNS}")
    message = shop.fail("run")
    assert "AR-301 the primary key of the contract is name, but unique_key is id" in message


PLAIN = """
{{ config(materialized='incremental', incremental_strategy='STRATEGY', on_schema_change='append_new_columns',
          unique_key=KEY) }}
select id, name, gone, at from {{ source('raw', 'raw_orders') }}
"""
STRATEGIES = {
    "appended": "append",
    "merged": "merge",
    "replaced": "delete+insert",
    "over": "insert_overwrite",
}


def test_a_plain_table_keeps_its_rows_when_one_breaks_a_constraint(shop: Shop) -> None:
    for name, strategy in STRATEGIES.items():
        key = "'id'" if strategy in ("merge", "delete+insert") else "none"
        shop.model(name, PLAIN.replace("STRATEGY", strategy).replace("KEY", key))
    shop.model("built", "{{ config(materialized='table') }} select * from {{ source('raw', 'raw_orders') }}")
    models = [*STRATEGIES, "built"]
    shop.file("models/orders.yml", contract(*models, name=NOT_NULL, constraints=SHORT))
    shop.source("raw_orders", f"SELECT * FROM VALUES (1, 'a', false, 1) {COLUMNS}")
    shop.dbt("run")

    rows = "(1, 'A', false, 2), (2, cast(null as string), false, 2)"
    shop.source("raw_orders", f"SELECT * FROM VALUES {rows} {COLUMNS}")
    message = shop.fail("run")
    assert message.count("AR-307 a row violates the constraint not_null on name") == len(models)
    assert {name: shop.rows(name) for name in models} == {name: [(1, "a", False, 1)] for name in models}


def test_only_rows_that_are_written_are_checked(shop: Shop) -> None:
    shop.model(
        "orders",
        "{{ config(materialized='table') }} select o.id, o.name, o.gone, o.at"
        " from {{ source('raw', 'raw_orders') }} as o"
        " join {{ source('raw', 'raw_events') }} as e on o.id = e.id",
    )
    shop.file("models/orders.yml", contract("orders", name=NOT_NULL))
    rows = "(1, 'a', false, 1), (2, cast(null as string), false, 1)"
    shop.source("raw_orders", f"SELECT * FROM VALUES {rows} {COLUMNS}")
    shop.source("raw_events", "SELECT 1 AS id")
    shop.dbt("run")
    assert shop.rows("orders", "id") == [(1,)]


def test_constraints_cost_no_spark_job(shop: Shop) -> None:
    shop.model("orders", KEYED)
    shop.model("built", "{{ config(materialized='table') }} select * from {{ source('raw', 'raw_orders') }}")
    shop.source("raw_orders", f"SELECT * FROM VALUES (1, 'a', false, 1), (2, 'b', false, 1) {COLUMNS}")
    shop.dbt("run")
    shop.dbt("run")
    without = (len(shop.script.ran), shop.script.jobs)
    shop.file("models/orders.yml", contract("orders", "built", name=NOT_NULL, constraints=SHORT))
    shop.dbt("run")
    assert (len(shop.script.ran), shop.script.jobs) == without


TEXT = 'It\'s "quoted", a \\back\\slash, ${spark.app.name}, ünï 🧊\nand two lines -- no /* comment'


KINDS = {
    "keyed": "materialized='incremental', unique_key='id'",
    "incremental": "materialized='incremental'",
    "view": "materialized='view'",
}


def test_comments_are_written_when_they_changed_and_only_then(shop: Shop) -> None:
    for kind, config in KINDS.items():
        shop.model(kind, "{{ config(" + config + ") }} select 1 as id, 'a' as name")

    def describe(text: str) -> None:
        columns = [{"name": "NAME", "description": text}]
        docs = {"persist_docs": {"relation": True, "columns": True}}
        models = [{"name": kind, "description": text, "columns": columns, "config": docs} for kind in KINDS]
        shop.file("models/orders.yml", yaml.safe_dump({"version": 2, "models": models}))

    def told(kind: str) -> set[tuple[str, ...]]:
        view = shop.catalog.load_view(shop.schema, kind)
        names = {"keyed": ["keyed__base_1"], "incremental": ["incremental"], "view": []}[kind]
        tables = [shop.catalog.load_table(shop.schema, name) for name in names]
        found = {(view.comment, *(column.comment for column in view.columns))} if view else set()
        return found | {
            (table.properties.get("comment", ""), *(column.comment for column in table.columns))
            for table in tables
            if table
        }

    for text in ("first", TEXT, ""):
        describe(text)
        shop.dbt("run")
        assert [told(kind) for kind in KINDS] == [{(text, "", text)}] * len(KINDS)
    shop.dbt("run")
    assert not [sql for sql in shop.script.ran if "comment" in sql.lower()]
