"""A table is dropped with all of its files: by the catalog if its metadata lists them, otherwise by Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.engine import session_cursor
from dbt_arctic.engine.purge import purge
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.engine.statement import Statement
from dbt_arctic.errors import StatementError

NAME = "`an odd``.name`"


class Table:
    def __init__(self, connection: SessionConnection, warehouse: Path, schema: str) -> None:
        self.connection = connection
        self.folder = warehouse / schema / "t"
        self.name = f"`lake`.`{schema}`.{NAME}"
        self.by_catalog: list[bool] = []

    def sql(self, text: str) -> None:
        self.connection.cursor().execute(text)

    def create(self, **properties: str) -> None:
        listed = "".join(f", '{name.replace('_', '-')}'='{value}'" for name, value in properties.items())
        self.sql(
            f"CREATE TABLE {self.name} (id BIGINT) USING iceberg LOCATION '{self.folder}' "
            f"TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read'{listed})"
        )
        self.sql(f"INSERT INTO {self.name} SELECT id FROM range(0, 100, 1, 2)")
        self.sql(f"DELETE FROM {self.name} WHERE id % 7 = 0")
        self.sql(f"ALTER TABLE {self.name} CREATE BRANCH b")
        self.sql(f"INSERT INTO {self.name}.branch_b VALUES (1)")

    def drop(self) -> bool:
        """:returns: whether the catalog did it."""
        self.by_catalog.clear()
        self.sql(f"/* a comment */ DROP TABLE IF EXISTS {self.name} PURGE")
        (done,) = self.by_catalog
        return done

    @property
    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file() and not path.name.startswith(".")]


@pytest.fixture
def table(
    connection: SessionConnection, warehouse: Path, schema: str, monkeypatch: pytest.MonkeyPatch
) -> Table:
    made = Table(connection, warehouse, schema)

    def noted(session: Any, statement: Statement) -> bool:
        made.by_catalog.append(purge(session, statement))
        return made.by_catalog[-1]

    monkeypatch.setattr(session_cursor, "purge", noted)
    return made


def test_the_catalog_drops_a_table_with_its_files(table: Table) -> None:
    table.create()
    kinds = {"".join(path.suffixes[-2:]) for path in table.files}
    assert {".parquet", ".puffin", ".avro", ".metadata.json"} <= kinds
    assert table.drop()
    assert table.files == []
    table.create()  # it is gone from the catalog, too
    assert table.drop()


def test_spark_drops_a_table_whose_metadata_does_not_list_all_files(table: Table) -> None:
    table.create(**{"write.metadata.previous_versions_max": "2"})
    table.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('write.metadata.previous-versions-max'='100')")
    assert len([path for path in table.files if path.name.endswith(".metadata.json")]) > 4
    assert not table.drop()
    assert table.files == []


def test_files_that_must_not_be_deleted_stay(table: Table) -> None:
    table.create(**{"gc.enabled": "false"})
    before = table.files
    with pytest.raises(StatementError, match="GC is disabled"):
        table.drop()
    assert table.files == before
    table.sql(f"SELECT * FROM {table.name}")


def test_what_is_no_table_stays(table: Table) -> None:
    assert not table.drop()
    table.sql(f"CREATE VIEW {table.name} AS SELECT 1 AS id")
    assert not table.drop()
    table.sql(f"SELECT * FROM {table.name}")
