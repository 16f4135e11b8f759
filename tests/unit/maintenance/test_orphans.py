"""Which client lists the files of a table: in a store its own, with the credentials of the catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dbt_arctic.maintenance.orphans import DAY_MS, find_orphans, remove_orphans
from tests.model.catalog import MemoryCatalog
from tests.model.world import MemoryWorld

BY_TABLE = "prefix_listing => true"


@pytest.mark.parametrize(
    ("location", "by_table"),
    [
        ("s3://bucket/shop/orders", True),
        ("s3a://bucket/shop/orders", True),
        ("gs://bucket/shop/orders", True),
        ("abfss://c@account.dfs.core.windows.net/orders", True),
        ("/lake/shop/orders", False),
        ("file:/lake/shop/orders", False),
        ("hdfs://host:9000/lake/shop/orders", False),
    ],
)
def test_objects_in_a_store_are_listed_by_the_client_of_the_table(
    location: str, by_table: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = MemoryWorld()
    process, name = world.process("clean"), world.name("orders")
    world.lake.create_table(name.schema, name.identifier, [("id", "bigint", "", True)], {})
    statements: list[str] = []
    state_of = MemoryCatalog._state

    monkeypatch.setattr(
        MemoryCatalog, "_state", lambda reader, table: replace(state_of(reader, table), location=location)
    )

    def query(sql: str) -> list[tuple[Any, ...]]:
        statements.append(sql)
        return [(f"{location}/data/lost.parquet",)]

    def run(step: str, sql: str, table: object) -> None:
        statements.append(sql)

    context: Any = replace(process.context, query=query, run=run)
    (found,), _ = find_orphans(context, name.catalog, [name.schema], DAY_MS)
    remove_orphans(context, found, DAY_MS)
    assert [("dry_run => true" in sql, BY_TABLE in sql) for sql in statements] == [
        (True, by_table),
        (False, by_table),
    ]
    world.close()
