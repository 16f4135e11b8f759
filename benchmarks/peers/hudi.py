"""Apache Hudi: merge-on-read with a bucket index, written by its data source."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.peers.peer import Peer
from benchmarks.peers.table import Table
from benchmarks.peers.workload import DELETED

IS_DELETED = "_hoodie_is_deleted"


class Hudi(Peer):
    title = "Hudi, merge-on-read with bucket index"
    pyspark = "3.5.9"
    packages: ClassVar[tuple[str, ...]] = ("org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",)
    settings: ClassVar[tuple[str, ...]] = (
        "MERGE_ON_READ, hoodie.index.type BUCKET (docs: indexes, for large tables with random updates)",
        "bulk_insert to load, upsert to change, deletes by _hoodie_is_deleted (docs: writing data)",
        "compaction is not inline but measured by itself, in mixed runs every 5 commits, the default",
    )
    layering = "watermark"
    feed = "incremental query (latest state, which has no deletes)"

    def conf(self) -> dict[str, str]:
        return {
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": str(self.folder / "lake"),
        }

    def open(self) -> None:
        super().open()
        self.run(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")

    def relation(self, table: Table) -> str:
        return f"{self.schema}.{table.name}"

    def path(self, table: Table) -> str:
        return str(self.folder / "lake" / table.name)

    def options(self, table: Table) -> dict[str, str]:
        versions = table.version in table.columns
        return {
            **({"hoodie.datasource.write.precombine.field": table.version} if versions else {}),
            "hoodie.table.name": table.name,
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": ",".join(table.key),
            "hoodie.datasource.write.partitionpath.field": "",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
            "hoodie.index.type": "BUCKET",
            "hoodie.bucket.index.num.buckets": str(table.buckets),
            "hoodie.bucket.index.hash.field": table.bucket_by,
            "hoodie.parquet.compression.codec": "zstd",
            "hoodie.compact.inline": "false",
            "hoodie.upsert.shuffle.parallelism": str(8 * self.machine.cores),
            "hoodie.bulkinsert.shuffle.parallelism": str(8 * self.machine.cores),
        }

    def _write(self, table: Table, rows: str, deleted: str, operation: str, mode: str) -> None:
        selected = self.spark.sql(f"SELECT {', '.join(table.columns)}, {deleted} AS {IS_DELETED} FROM {rows}")
        writer = selected.write.format("hudi").options(**self.options(table))
        writer.option("hoodie.datasource.write.operation", operation).mode(mode).save(self.path(table))

    def load(self, table: Table, rows: str) -> None:
        self._write(table, rows, "false", "bulk_insert", "overwrite")
        self.run(f"CREATE TABLE {self.relation(table)} USING hudi LOCATION '{self.path(table)}'")

    def write(self, table: Table, changes: str) -> None:
        self._write(table, changes, DELETED, "upsert", "append")
        self.run(f"REFRESH TABLE {self.relation(table)}")

    def replace(self, table: Table, sql: str) -> None:
        self._write(table, f"({sql})", "false", "insert_overwrite_table", "append")
        self.run(f"REFRESH TABLE {self.relation(table)}")

    def compact(self, table: Table) -> None:
        self.run(
            f"CALL run_compaction(op => 'scheduleAndExecute', path => '{self.path(table)}', "
            "options => 'hoodie.compact.inline.max.delta.commits=1')"
        )
        self.run(f"REFRESH TABLE {self.relation(table)}")

    def maintain(self, table: Table, number: int) -> bool:
        if number % 5:
            return False
        self.compact(table)
        return True

    def mark(self, table: Table) -> str:
        """When the newest commit was completed, which is what an incremental query asks for."""
        timeline = self.folder / "lake" / table.name / ".hoodie" / "timeline"
        ended = [file.stem.partition("_")[2] for file in timeline.iterdir() if "_" in file.stem]
        return max(one for one in ended if one.isdigit())

    def changes(self, table: Table, since: str) -> str:
        name = f"{table.name}_changes_since"
        self.spark.read.format("hudi").option("hoodie.datasource.query.type", "incremental").option(
            "hoodie.datasource.read.begin.instanttime", since
        ).load(self.path(table)).createOrReplaceTempView(name)
        return self.with_deletes("false", name, table.columns)
