"""The base of a keyed table opens in pyiceberg and DuckDB, by the names in the documentation."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table


@pytest.fixture
def compacted(shop: Any) -> Any:
    """A table whose base has deletion vectors: a row updated, one deleted, one new."""
    orders = shop.table("orders", {"id": "bigint", "amount": "int", "name": "string"}, buckets=2)
    orders.build([{"id": n, "amount": n * 10, "name": f"Nº {n}"} for n in range(1, 6)])
    orders.apply(
        [{"id": 2, "amount": 99, "name": "updated"}, {"id": 9, "amount": 90, "name": "new"}], [{"id": 4}]
    )
    orders.compact()
    return orders


@pytest.fixture
def opened(compacted: Any, warehouse: Path) -> Table:
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse)
    )
    return catalog.load_table(f"{compacted.name.schema}.orders__base_1")


def test_pyiceberg_reads_the_merged_rows(compacted: Any, opened: Table) -> None:
    rows = sorted(opened.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert rows == compacted.rows()
    assert [row["id"] for row in rows] == [1, 2, 3, 5, 9]


def test_duckdb_reads_the_merged_rows(compacted: Any, opened: Table) -> None:
    connection = duckdb.connect()
    for name in ("avro", "httpfs", "iceberg"):
        package = Path(str(importlib.import_module(f"duckdb_extension_{name}").__file__)).parent
        extension = next(package.rglob("*.duckdb_extension"))
        connection.execute(f"LOAD '{extension}'")
    found = connection.execute(
        f"SELECT id, amount, name FROM iceberg_scan('{opened.metadata_location}') ORDER BY id"
    ).fetchall()
    assert found == [(row["id"], row["amount"], row["name"]) for row in compacted.rows()]
