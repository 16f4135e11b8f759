"""The strategy ``history``: of change events, of a keyed table, and as an upstream of another model."""

from __future__ import annotations

from typing import Any

import yaml

from tests.dbt.keyed.test_change_events import event, land

from .conftest import Shop

CONFIG = "materialized='incremental', incremental_strategy='history', unique_key='id', buckets=1, "
HISTORY = (
    "{{ config(CONFIG sequence_by='_source_sequence', updated_at='_source_changed_at', "
    "ignore_cols=['amount'], hard_deletes='new_record', "
    "snapshot_meta_column_names={'dbt_valid_from': 'valid_from'}) }}\n"
    "select * from {{ incremental_pull(source('shop', 'orders')) }}"
).replace("CONFIG", CONFIG)
OF_LOG = (
    "{{ config(CONFIG sequence_by='version') }}\nselect * from {{ incremental_pull(ref('prices')) }}"
).replace("CONFIG", CONFIG)
AFTER = (
    "{{ config(materialized='incremental', unique_key=['id', '_source_sequence'], buckets=1) }}\n"
    "select * from {{ incremental_pull(ref('orders_history')) }}"
)
PRICES = (
    "{{ config(materialized='incremental', unique_key='id', sequence_by='version', buckets=1) }}\n"
    "select * from values ROWS as t(id, price, version, _action)"
)
SHOWN = "id, name, cast(amount as string), unix_millis(valid_from), unix_millis(dbt_valid_to), dbt_is_deleted"


def declare(shop: Shop) -> None:
    columns = {"id": "bigint", "name": "string", "amount": "decimal(10,2)"}
    meta = {"from": "files", "path": "landing", "format": "debezium", "key": "id", "columns": columns}
    meta |= {"decimal_handling": "string"}
    table = {"name": "orders", "config": {"meta": {"arctic": meta}}}
    text = {"version": 2, "sources": [{"name": "shop", "schema": shop.schema, "tables": [table]}]}
    shop.file("models/shop.yml", yaml.safe_dump(text))


def at(seconds: int, operation: str, name: str | None = None, amount: str = "1.50") -> dict[str, Any]:
    """An event of the only order, whose position and time in the database grow together."""
    made = event(seconds, operation, 1, name, amount)
    made["source"]["ts_ms"] = seconds * 1000
    return made


def test_a_history_of_change_events_and_of_a_keyed_table(shop: Shop) -> None:
    declare(shop)
    shop.model("orders_history", HISTORY)
    shop.model("after", AFTER)
    shop.model("prices", PRICES.replace("ROWS", "(1, 10, 1, 'U'), (2, 20, 1, 'U')"))
    shop.model("prices_history", OF_LOG)
    land(shop, "1.json", at(10, "c", "a"), at(30, "u", "a", "2.00"))
    shop.dbt("run")
    assert shop.rows("orders_history", SHOWN) == [(1, "a", "2.00", 10_000, None, "False")]

    land(shop, "2.json", at(20, "u", "b"), at(40, "d"), at(30, "u", "a", "2.00"))
    shop.model("prices", PRICES.replace("ROWS", "(1, 11, 2, 'U'), (2, null, 3, 'D')"))
    shop.dbt("run")
    expected = [
        (1, "a", "1.50", 10_000, 20_000, "False"),
        (1, "a", "2.00", 30_000, 40_000, "False"),
        (1, "a", "2.00", 40_000, None, "True"),
        (1, "b", "1.50", 20_000, 30_000, "False"),
    ]
    assert sorted(shop.rows("orders_history", SHOWN)) == sorted(shop.rows("after", SHOWN)) == expected
    columns = [row[0] for row in shop.sql("DESCRIBE {s}.orders_history")]
    assert not [name for name in columns if name.startswith("_arctic")]
    assert shop.rows("prices_history", "id, price, dbt_valid_from, dbt_valid_to") == [
        (1, 10, 1, 2),
        (1, 11, 2, None),
        (2, 20, 1, 3),
    ]
    land(shop, "3.json", at(15, "u", "b", "7.00"))  # the row of 20 goes
    shop.dbt("run")
    expected = [*expected[:3], (1, "b", "1.50", 15_000, 30_000, "False")]
    expected[0] = (1, "a", "1.50", 10_000, 15_000, "False")
    assert sorted(shop.rows("orders_history", SHOWN)) == sorted(shop.rows("after", SHOWN)) == expected
    shop.dbt("run", "--full-refresh", "--select", "orders_history")
    assert sorted(shop.rows("orders_history", SHOWN)) == expected


def test_settings_of_a_history_are_checked(shop: Shop) -> None:
    values = "select 1 as id, 2 as version, 'a' as status"
    models = {
        "no_order": ("unique_key='id'", "needs sequence_by"),
        "no_key": ("sequence_by='version'", "needs a unique_key"),
        "both": ("unique_key='id', sequence_by='version', check_cols=['status'], ignore_cols=['id']", "both"),
        "columns": (
            "unique_key='id', sequence_by='version', on_schema_change='append_new_columns'",
            "on_schema_change",
        ),
        "deletes": ("unique_key='id', sequence_by='version', hard_deletes='ignore'", "hard_deletes"),
        "unknown": ("unique_key='id', sequence_by='version', ignore_cols=['statu']", "did you mean status"),
        "of_key": (
            "unique_key='id', sequence_by='version', ignore_cols=['id']",
            "which is a column of unique_key",
        ),
        "keyed": ("unique_key='id', sequence_by='id'", "sequence_by is a column of unique_key"),
    }
    for name, (settings, _) in models.items():
        shop.model(
            name,
            "{{ config(materialized='incremental', incremental_strategy='history', "
            f"{settings}) }}}}\n{values}",
        )
    shop.model(
        "other",
        "{{ config(materialized='incremental', unique_key='id', ignore_cols=['status']) }}\n" + values,
    )
    told = shop.refusals("run")
    for name, (_, words) in models.items():
        assert words in told[name], (name, told[name])
    assert "ignore_cols has no effect with the strategy 'upsert'" in told["other"]


def test_events_of_one_place_that_differ_in_a_microsecond_are_not_chosen_from(shop: Shop) -> None:
    at = "timestamp'2026-01-01 00:00:00'"
    for name, column in (("instants", "at"), ("local_times", "cast(at as timestamp_ntz)")):
        shop.model(
            name,
            "{{ config(materialized='incremental', incremental_strategy='history', unique_key='id', "
            f"sequence_by='version') }}}}\nselect 1 as id, 1 as version, {column} as at from values ({at}), "
            f"({at} + interval 1 microsecond) as t(at)",
        )
    for told in shop.refusals("run").values():
        assert "several events of a key have the same sequence and different values" in told
