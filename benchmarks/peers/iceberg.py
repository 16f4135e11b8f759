"""dbt-spark's `merge` on Iceberg: copy-on-write, or deletion vectors. Same catalog and settings as ours."""

from __future__ import annotations

from typing import Any, ClassVar

from benchmarks.peers.peer import NotOffered, Peer, merge_statement
from benchmarks.peers.table import Table

CATALOG = "lake"


class Iceberg(Peer):
    """What both ways have in common."""

    packages: ClassVar[tuple[str, ...]] = (
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        "org.xerial:sqlite-jdbc:3.50.3.0",
    )
    properties: ClassVar[dict[str, str]]
    settings: ClassVar[tuple[str, ...]] = (
        "unpartitioned, as dbt-spark creates it",
        "catalog in SQLite, its cache on (Iceberg's default)",
    )

    def conf(self) -> dict[str, str]:
        catalog = f"spark.sql.catalog.{CATALOG}"
        warehouse = self.folder / "lake"
        warehouse.mkdir(parents=True, exist_ok=True)
        return {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.defaultCatalog": CATALOG,
            catalog: "org.apache.iceberg.spark.SparkCatalog",
            f"{catalog}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
            f"{catalog}.uri": f"jdbc:sqlite:{warehouse}/catalog.db",
            f"{catalog}.warehouse": str(warehouse),
            f"{catalog}.jdbc.schema-version": "V1",
        }

    def open(self) -> None:
        super().open()
        self.run(f"CREATE SCHEMA IF NOT EXISTS {CATALOG}.{self.schema}")

    def relation(self, table: Table) -> str:
        return f"{CATALOG}.{self.schema}.{table.name}"

    def load(self, table: Table, rows: str) -> None:
        properties = ", ".join(f"'{key}'='{value}'" for key, value in self.properties.items())
        self.run(
            f"CREATE TABLE {self.relation(table)} USING iceberg TBLPROPERTIES ({properties}) "
            f"AS SELECT {', '.join(table.columns)} FROM {rows}"
        )

    def write(self, table: Table, changes: str) -> None:
        self.run(merge_statement(self.relation(table), changes, table))

    def replace(self, table: Table, sql: str) -> None:
        properties = ", ".join(f"'{key}'='{value}'" for key, value in self.properties.items())
        self.run(
            f"CREATE OR REPLACE TABLE {self.relation(table)} USING iceberg "
            f"TBLPROPERTIES ({properties}) AS {sql}"
        )

    def compact(self, table: Table) -> None:
        self.run(f"CALL {CATALOG}.system.rewrite_data_files(table => '{self.schema}.{table.name}')")

    def mark(self, table: Table) -> str:
        return str(self._newest(table)[0])

    def _newest(self, table: Table) -> tuple[Any, ...]:
        (found,) = self.query(
            f"SELECT snapshot_id FROM {self.relation(table)}.refs WHERE name = 'main'",
        )
        return found


class CopyOnWrite(Iceberg):
    title = "MERGE on Iceberg, copy-on-write"
    properties: ClassVar[dict[str, str]] = {"write.parquet.compression-codec": "zstd"}
    feed = "create_changelog_view"
    layering = "feed"

    def staged(self, name: str, sql: str) -> str:
        """A MERGE cannot be planned over a change log (Iceberg 1.12), so it gets a table."""
        relation = f"{CATALOG}.{self.schema}.{name}"
        self.run(f"CREATE OR REPLACE TABLE {relation} USING iceberg AS {sql}")
        return relation

    def changes(self, table: Table, since: str) -> str:
        latest = f"(SELECT * FROM {self._changelog(table, since)} WHERE _change_type <> 'UPDATE_BEFORE')"
        return self.with_deletes("_change_type = 'DELETE'", latest, table.columns)

    def signed(self, table: Table, since: str) -> str:
        sign = "CASE WHEN _change_type IN ('DELETE', 'UPDATE_BEFORE') THEN -1 ELSE 1 END AS sign"
        return f"(SELECT {', '.join(table.columns)}, {sign} FROM {self._changelog(table, since)})"

    def _changelog(self, table: Table, since: str) -> str:
        key = ", ".join(f"'{column}'" for column in table.key)
        self.run(
            f"CALL {CATALOG}.system.create_changelog_view(table => '{self.schema}.{table.name}', "
            f"changelog_view => '{table.name}_changes', identifier_columns => array({key}), "
            f"options => map('start-snapshot-id', '{since}', 'end-snapshot-id', '{self.mark(table)}'))"
        )
        return f"{table.name}_changes"


class DeletionVectors(Iceberg):
    title = "MERGE on Iceberg, deletion vectors"
    properties: ClassVar[dict[str, str]] = {
        "format-version": "3",
        "write.merge.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.delete.mode": "merge-on-read",
        "write.parquet.compression-codec": "zstd",
    }
    settings: ClassVar[tuple[str, ...]] = (*Iceberg.settings, "format version 3, merge-on-read")
    layering = "watermark"
    feed = "none: its change log cannot be read where rows are deleted by vectors"

    def compact(self, table: Table) -> None:
        """A file with a deleted row is written again, whatever its size."""
        self.run(
            f"CALL {CATALOG}.system.rewrite_data_files(table => '{self.schema}.{table.name}', "
            "options => map('delete-file-threshold', '1'))"
        )

    def changes(self, table: Table, since: str) -> str:
        raise NotOffered("deletes cannot be told from deletion vectors")
