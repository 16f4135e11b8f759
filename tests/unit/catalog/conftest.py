"""A handmade warehouse: the SQLite rows and metadata files that Spark would have written."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_TABLES = """
CREATE TABLE iceberg_tables (
  catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL,
  table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000),
  previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),
  PRIMARY KEY (catalog_name, table_namespace, table_name));
CREATE TABLE iceberg_namespace_properties (
  catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL,
  property_key VARCHAR(255), property_value VARCHAR(1000),
  PRIMARY KEY (catalog_name, namespace, property_key));
"""


@dataclass
class HandmadeWarehouse:
    folder: Path
    catalog: str = "lake"
    written: int = field(default=0)

    @property
    def file(self) -> Path:
        return self.folder / "catalog.db"

    @staticmethod
    def column(
        number: int, name: str, kind: Any = "long", doc: str = "", required: bool = False
    ) -> dict[str, Any]:
        described = {"id": number, "name": name, "type": kind, "required": required}
        return described | ({"doc": doc} if doc else {})

    def create(self) -> None:
        with closing(sqlite3.connect(self.file)) as connection:
            connection.executescript(_TABLES)

    def execute(self, sql: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.file)) as connection, connection:
            connection.execute(sql, values)

    def schema(self, name: str) -> None:
        self.execute(
            "INSERT INTO iceberg_namespace_properties VALUES (?, ?, 'exists', 'true')", self.catalog, name
        )

    def register(self, schema: str, name: str, location: str, kind: str | None) -> None:
        self.execute(
            "INSERT OR REPLACE INTO iceberg_tables VALUES (?, ?, ?, ?, NULL, ?)",
            *(self.catalog, schema, name, location, kind),
        )

    def table(self, schema: str, name: str, **changes: Any) -> Path:
        """A table with a BIGINT ``id`` and no snapshot, its document changed by ``changes``."""
        document = {
            "format-version": 3,
            "table-uuid": "4020efb7-63e6-41e4-933e-7b252d8c6de4",
            "location": str(self.folder / schema / name),
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [self.column(1, "id")]}],
            "properties": {},
            "refs": {},
            "snapshots": [],
        } | {key.replace("_", "-"): value for key, value in changes.items()}
        path = self._write(schema, name, json.dumps(document).encode(), "metadata.json")
        self.register(schema, name, str(path), "TABLE")
        return path

    def view(self, schema: str, name: str, properties: dict[str, str] | None = None, **changes: Any) -> Path:
        """A view ``SELECT 1 AS id``, packed as Spark packs it."""
        document = {
            "format-version": 1,
            "location": str(self.folder / schema / name),
            "properties": properties or {},
            "schemas": [
                {"type": "struct", "schema-id": 0, "fields": [self.column(0, "id", "int", "a number")]}
            ],
            "current-version-id": 1,
            "versions": [
                {
                    "version-id": 1,
                    "schema-id": 0,
                    "representations": [{"type": "sql", "sql": "SELECT 1 AS id", "dialect": "spark"}],
                }
            ],
        } | {key.replace("_", "-"): value for key, value in changes.items()}
        path = self._write(schema, name, gzip.compress(json.dumps(document).encode()), "gz.metadata.json")
        self.register(schema, name, str(path), "VIEW")
        return path

    def _write(self, schema: str, name: str, content: bytes, ending: str) -> Path:
        self.written += 1
        folder = self.folder / schema / name / "metadata"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.written:05}-x.{ending}"
        path.write_bytes(content)
        return path


@pytest.fixture
def handmade(tmp_path: Path) -> HandmadeWarehouse:
    """A catalog with an empty schema ``a``."""
    warehouse = HandmadeWarehouse(tmp_path)
    warehouse.create()
    warehouse.schema("a")
    return warehouse
