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
    layering = "anew"

    def open(self) -> None:
        super().open()
        self._loaded: dict[str, tuple[str, list[str]]] = {}

    def load(self, table: Table, rows: str) -> None:
        super().load(table, rows)
        self._loaded[table.name] = (rows, [])

    def write(self, table: Table, changes: str) -> None:
        loaded, log = self._loaded[table.name]
        log.append(changes)
        self.replace(table, state_sql(loaded, log, table.columns, table.key))

    def compact(self, table: Table) -> None:
        raise NotOffered("there is nothing to compact")

    def changes(self, table: Table, since: str) -> str:
        raise NotOffered("a rebuilt table does not tell what changed")
