"""The setting ``indexes`` of a model: what a run builds and drops, and how rows are found afterwards."""

from __future__ import annotations

import dbt_arctic
from tests.dbt.keyed.conftest import Shop, Terminal

INDEX = "orders__index_customer"


def names(shop: Shop) -> set[str]:
    return {entry.name for entry in shop.catalog.list_names(shop.schema) if "__index_" in entry.name}


def test_a_model_with_an_index(shop: Shop, type_in: Terminal) -> None:
    rows = "select 1 as id, 7 as customer, 'it''s' as note union all select 2, 8, null"

    def model(indexes: str, sql: str = rows, strategy: str = "upsert") -> None:
        config = f"materialized='incremental', unique_key='id', incremental_strategy='{strategy}'"
        shop.model("orders", f"{{{{ config({config}, indexes={indexes}) }}}} {sql}")

    def found(**where: object) -> list[int]:
        read = dbt_arctic.read(
            "orders", columns=["id"], where=where, project_dir=shop.folder, profiles_dir=shop.folder
        )
        return sorted(read.column("id").to_pylist())

    for wrong, error in (
        ("['custmer']", "custmer"),
        ("['id']", "which is the key"),
        ("[{'columns': ['id']}]", "indexes holds"),
    ):
        model(wrong)
        assert error in shop.fail("run")
        assert names(shop) == set()
    model("['customer']")
    shop.dbt("run")
    assert names(shop) == {INDEX}
    assert found(customer=7) == [1]
    assert found(note="it's") == [1]
    assert found(note=None) == [2]
    # Another value for the key, and a new key; the index is not written.
    before = len(shop.script.ran)
    model("['customer']", "select 2 as id, 7 as customer, 'x' as note union all select 3, 9, 'y'")
    shop.dbt("run")
    assert found(customer=7) == [1, 2]
    assert found(customer=[8, 9]) == [3]
    assert not [sql for sql in shop.script.ran[before:] if INDEX in sql]
    # A full refresh builds it again, for the new rows.
    model("['customer']", rows)
    shop.dbt("run", "--full-refresh")
    assert found(customer=7) == [1]
    assert found(customer=9) == []
    type_in("verify", "orders", "--data")
    # Another strategy, another column, none, and no table.
    model("['note', 'customer']", rows, "auto")
    shop.dbt("run", "--full-refresh")
    assert names(shop) == {INDEX, "orders__index_note"}
    assert found(note="it's") == [1]
    model("'note'", rows, "auto")
    shop.dbt("run")
    assert names(shop) == {"orders__index_note"}
    # The key of a history has another column, so its entities are found through an index.
    history = "materialized='incremental', unique_key='id', incremental_strategy='history', sequence_by='at'"
    event = "select 1 as id, 'x' as note, timestamp'2026-01-01 00:00:00' as at"
    shop.model("orders", f"{{{{ config({history}, indexes=['id', 'note']) }}}} {event}")
    shop.dbt("run", "--full-refresh")
    assert found(id=1) == [1]
    assert names(shop) == {"orders__index_id", "orders__index_note"}
    shop.model("orders", "{{ config(materialized='view') }} select 1 as id")
    shop.dbt("run")
    assert names(shop) == set()


def test_an_index_without_a_keyed_table_is_a_warning(shop: Shop) -> None:
    shop.model("plain", "{{ config(materialized='table', indexes=['a']) }} select 1 as a")
    assert "indexes has no effect" in shop.fail("run", "--warn-error")
