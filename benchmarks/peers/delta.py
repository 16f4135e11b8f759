"""Delta Lake: `MERGE` with deletion vectors, and its change data feed."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.peers.peer import Peer, merge_statement
from benchmarks.peers.table import Table


class Delta(Peer):
    title = "MERGE on Delta, deletion vectors"
    packages: ClassVar[tuple[str, ...]] = ("io.delta:delta-spark_4.1_2.13:4.4.0",)
    settings: ClassVar[tuple[str, ...]] = (
        "delta.enableDeletionVectors and delta.enableChangeDataFeed, each as its page of the docs says",
        "optimized writes and auto compaction off: OPTIMIZE is measured by itself, MERGE repartitions anyway",
        "snapshotPartitions twice the cores, not 50",
        "a compaction that is asked for rewrites every file with deleted rows "
        "(optimize.maxDeletedRowsRatio 0), a regular one has the default of 5 %",
    )
    feed = "table_changes"
    layering = "feed"

    def conf(self) -> dict[str, str]:
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.catalogImplementation": "in-memory",
            # By default, it uses 50 tasks for each read of a table's log, which suits clusters.
            "spark.databricks.delta.snapshotPartitions": str(2 * self.machine.cores),
            "spark.sql.warehouse.dir": str(self.folder / "lake"),
        }

    def open(self) -> None:
        super().open()
        self.run(f"CREATE SCHEMA IF NOT EXISTS {self.schema}")

    def relation(self, table: Table) -> str:
        return f"{self.schema}.{table.name}"

    def load(self, table: Table, rows: str) -> None:
        self.run(
            f"CREATE TABLE {self.relation(table)} USING delta TBLPROPERTIES ("
            "'delta.enableDeletionVectors'='true', 'delta.enableChangeDataFeed'='true') "
            f"AS SELECT {', '.join(table.columns)} FROM {rows}"
        )

    def write(self, table: Table, changes: str) -> None:
        self.run(merge_statement(self.relation(table), changes, table))

    def compact(self, table: Table) -> None:
        ratio = "spark.databricks.delta.optimize.maxDeletedRowsRatio"
        self.run(f"SET {ratio}=0")
        self.run(f"OPTIMIZE {self.relation(table)}")
        self.run(f"RESET {ratio}")

    def maintain(self, table: Table, number: int) -> bool:
        if number % 10:
            return False
        self.run(f"OPTIMIZE {self.relation(table)}")
        return True

    def mark(self, table: Table) -> str:
        return str(self.query(f"DESCRIBE HISTORY {self.relation(table)} LIMIT 1")[0][0])

    def changes(self, table: Table, since: str) -> str:
        changed = f"table_changes('{self.relation(table)}', {int(since) + 1})"
        latest = f"(SELECT * FROM {changed} WHERE _change_type <> 'update_preimage')"
        return self.with_deletes("_change_type = 'delete'", latest, table.columns)

    def signed(self, table: Table, since: str) -> str:
        changed = f"table_changes('{self.relation(table)}', {int(since) + 1})"
        sign = "CASE WHEN _change_type IN ('delete', 'update_preimage') THEN -1 ELSE 1 END AS sign"
        return f"(SELECT {', '.join(table.columns)}, {sign} FROM {changed})"
