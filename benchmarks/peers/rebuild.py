"""Plain full rebuild: everything that was ever loaded, as `materialized='table'` does it."""

from __future__ import annotations

from typing import ClassVar

from benchmarks.peers.iceberg import CopyOnWrite
from benchmarks.peers.peer import NotOffered
from benchmarks.peers.table import Table
from benchmarks.peers.workload import state_sql


class Rebuild(CopyOnWrite):
    title = "full rebuild (Iceberg)"
    settings: ClassVar[tuple[str, ...]] = (
        "CREATE OR REPLACE TABLE from the rows that were loaded and the changes since",
    )
    feed = "none"

    def load(self, table: Table, rows: str) -> None:
        super().load(table, rows)
        self._rows = rows
        self._changes: list[str] = []

    def write(self, table: Table, changes: str) -> None:
        self._changes.append(changes)
        rows = state_sql(self._rows, self._changes, table.columns, table.key)
        self.run(
            f"CREATE OR REPLACE TABLE {self.relation(table)} USING iceberg "
            f"TBLPROPERTIES ('write.parquet.compression-codec'='zstd') AS {rows}"
        )

    def compact(self, table: Table) -> None:
        raise NotOffered("there is nothing to compact")

    def changes(self, table: Table, since: str) -> str:
        raise NotOffered("a rebuilt table does not tell what changed")
