"""Apache Paimon: a primary-key table with fixed buckets, merged on read or with deletion vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from benchmarks.peers.peer import Peer
from benchmarks.peers.table import Table
from benchmarks.peers.workload import DELETED

CATALOG = "paimon"
KIND = "row_kind"


class Paimon(Peer):
    title = "Paimon, fixed bucket, merge-on-read"
    pyspark = "3.5.9"
    packages: ClassVar[tuple[str, ...]] = ("org.apache.paimon:paimon-spark-3.5:0.9.0",)
    settings: ClassVar[tuple[str, ...]] = (
        "primary key, fixed bucket (docs: data distribution), Parquet with zstd",
        "deletes by rowkind.field, so that a round is one INSERT",
        "its writers compact by themselves, as the default is; a compaction that is asked for is sys.compact",
    )
    feed = "incremental-between on the audit log"
    layering = "feed"
    properties: ClassVar[dict[str, str]] = {}

    def conf(self) -> dict[str, str]:
        return {
            "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
            f"spark.sql.catalog.{CATALOG}": "org.apache.paimon.spark.SparkCatalog",
            f"spark.sql.catalog.{CATALOG}.warehouse": f"file:{self.folder / 'lake'}",
            "spark.sql.catalogImplementation": "in-memory",
        }

    def open(self) -> None:
        super().open()
        self.run(f"CREATE SCHEMA IF NOT EXISTS {CATALOG}.{self.schema}")
        self.run(f"USE {CATALOG}.{self.schema}")

    def relation(self, table: Table) -> str:
        return f"{CATALOG}.{self.schema}.{table.name}"

    def load(self, table: Table, rows: str) -> None:
        properties = {
            "primary-key": ",".join(table.key),
            "bucket": str(table.buckets),
            "bucket-key": table.bucket_by,
            "rowkind.field": KIND,
            "file.format": "parquet",
            "file.compression": "zstd",
            **self.properties,
        }
        if table.images:
            properties["changelog-producer"] = "lookup"
        types = dict(self.spark.table(rows).dtypes)
        self._create(
            table, {**{column: types[column] for column in table.columns}, KIND: "STRING"}, properties
        )
        self._insert(table, rows, "'+I'")

    def _create(self, table: Table, columns: dict[str, str], properties: dict[str, str]) -> None:
        named = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        listed = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        self.run(f"CREATE TABLE {self.relation(table)} ({named}) TBLPROPERTIES ({listed})")

    def load_sums(self, table: Table, rows: str, sums: Mapping[str, str]) -> None:
        """A table that adds up by itself what is inserted."""
        types = dict(self.spark.table(rows).dtypes)
        properties = {
            "primary-key": ",".join(table.key),
            "bucket": str(table.buckets),
            "bucket-key": table.bucket_by,
            "file.format": "parquet",
            "file.compression": "zstd",
            "merge-engine": "aggregation",
            **{f"fields.{column}.aggregate-function": "sum" for column in sums},
        }
        self._create(table, {column: sums.get(column, types[column]) for column in table.columns}, properties)
        self.add_up(table, rows, sums)

    def add_up(self, table: Table, changes: str, sums: Mapping[str, str]) -> None:
        columns = ", ".join(
            f"CAST({column} AS {sums[column]})" if column in sums else column for column in table.columns
        )
        self.run(f"INSERT INTO {self.relation(table)} SELECT {columns} FROM {changes}")

    def sums(self, table: Table) -> str:
        return f"(SELECT * FROM {self.relation(table)} WHERE {table.columns[-1]} <> 0)"

    def write(self, table: Table, changes: str) -> None:
        self._insert(table, changes, f"CASE WHEN {DELETED} THEN '-D' ELSE '+I' END")

    def _insert(self, table: Table, rows: str, kind: str) -> None:
        columns = ", ".join(table.columns)
        self.run(f"INSERT INTO {self.relation(table)} SELECT {columns}, {kind} AS {KIND} FROM {rows}")

    def compact(self, table: Table) -> None:
        self.run(f"CALL {CATALOG}.sys.compact(table => '{self.schema}.{table.name}')")

    def maintain(self, table: Table, number: int) -> bool:
        return False

    def mark(self, table: Table) -> str:
        name = f"{CATALOG}.{self.schema}.`{table.name}$snapshots`"
        return str(self.query(f"SELECT max(snapshot_id) FROM {name}")[0][0])

    def changes(self, table: Table, since: str) -> str:
        latest = f"(SELECT * FROM {self._log(table, since)} WHERE rowkind <> '-U')"
        return self.with_deletes("rowkind = '-D'", latest, table.columns)

    def signed(self, table: Table, since: str) -> str:
        sign = "CASE WHEN rowkind IN ('-U', '-D') THEN -1 ELSE 1 END AS sign"
        return f"(SELECT {', '.join(table.columns)}, {sign} FROM {self._log(table, since)})"

    def _log(self, table: Table, since: str) -> str:
        name = f"{table.name}_changes_since"
        self.spark.read.option("incremental-between", f"{since},{self.mark(table)}").table(
            f"{CATALOG}.{self.schema}.`{table.name}$audit_log`"
        ).createOrReplaceTempView(name)
        return name


class PaimonVectors(Paimon):
    title = "Paimon, fixed bucket, deletion vectors"
    settings: ClassVar[tuple[str, ...]] = (
        *Paimon.settings,
        "deletion-vectors.enabled; changelog-producer lookup: it looks keys up anyway, and without it the "
        "audit log of a table with deletion vectors is empty",
    )
    properties: ClassVar[dict[str, str]] = {
        "deletion-vectors.enabled": "true",
        "changelog-producer": "lookup",
    }
