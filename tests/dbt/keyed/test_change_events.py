"""Files of change events as a source: a model with two settings follows the table of a database."""

from __future__ import annotations

import json
from typing import Any

import yaml

from .conftest import Shop

COLUMNS = {"id": "bigint", "name": "string", "amount": "decimal(10,2)"}
MODEL = (
    "{{ config(materialized='incremental', unique_key='id', sequence_by='_source_sequence') }}\n"
    "select COLUMNS from {{ incremental_pull(source('shop', 'orders')) }}"
)
UNSENT = "__debezium_unavailable_value"


def event(
    lsn: int, operation: str, id_: int, name: str | None = None, amount: str = "1.50"
) -> dict[str, Any]:
    row = {"id": id_, "name": name, "amount": amount}
    return {
        "before": {"id": id_} if operation == "d" else None,
        "after": None if operation in "dt" else row,
        "source": {
            **{"connector": "postgresql", "schema": "public", "table": "orders", "ts_ms": 1_700_000_000_000},
            **{"lsn": lsn, "sequence": json.dumps(["1", str(lsn)])},
        },
        "op": operation,
        "ts_ms": 1_700_000_000_001,
    }


def land(shop: Shop, name: str, *events: dict[str, Any] | None) -> None:
    shop.file(f"landing/{name}", "".join(json.dumps(one) + "\n" for one in events))


def declare(shop: Shop, **settings: Any) -> None:
    meta = {"from": "files", "path": "landing", "format": "debezium", "key": "id", "columns": COLUMNS}
    meta |= {"decimal_handling": "string", "unavailable": "keep", **settings}
    table = {"name": "orders", "config": {"meta": {"arctic": meta}}}
    text = {"version": 2, "sources": [{"name": "shop", "schema": shop.schema, "tables": [table]}]}
    shop.file("models/shop.yml", yaml.safe_dump(text))


def test_a_model_follows_a_table_with_two_settings(shop: Shop) -> None:
    declare(shop)
    shop.model("orders", MODEL.replace("COLUMNS", "*"))
    land(shop, "1.json", event(1, "r", 1, "a"), event(2, "c", 2, "b"), {"ts_ms": 1}, event(3, "c", 3, "c"))
    shop.dbt("run")
    # Events come late, and are repeated.
    land(shop, "2.json", event(9, "d", 3), None, event(8, "u", 1, UNSENT, "2.00"), event(2, "c", 2, "b"))
    land(shop, "3.json", event(7, "u", 3, "late"), event(7, "u", 3, "late"))
    shop.dbt("run")
    stored = "SELECT id, name, CAST(amount AS STRING) FROM {s}.orders ORDER BY id"
    assert shop.sql(stored) == [(1, "a", "2.00"), (2, "b", "1.50")]

    shop.model("narrow", MODEL.replace("COLUMNS", "id, name, _source_sequence, _action"))
    assert "does not return _unavailable" in shop.fail("run", "--select", "narrow")

    # A change of the key is a delete and an insert. The value is in the row of the other key.
    land(shop, "4.json", event(10, "d", 1), event(11, "c", 2, UNSENT))
    assert "name was not sent with a new key" in shop.fail("run", "--select", "orders")
    assert shop.sql(stored) == [(1, "a", "2.00"), (2, "b", "1.50")]
    (shop.folder / "landing" / "4.json").unlink()

    land(shop, "4.json", event(20, "t", 0), event(21, "c", 5, "new"))
    said = shop.fail("run", "--select", "orders")
    assert "AR-312" in said
    assert "--full-refresh" in said
    assert shop.sql(stored) == [(1, "a", "2.00"), (2, "b", "1.50")]
    shop.dbt("run", "--full-refresh", "--select", "orders")
    assert shop.sql(stored) == [(5, "new", "1.50")]
    assert shop.dbt("show", "--select", "orders", "--output", "json") is not None
    shop.dbt("run", "--empty", "--select", "orders")
    assert not [row for row in shop.sql("SHOW VIEWS IN {s}") if "__pull_" in str(row)], (
        "temporary views are dropped"
    )
