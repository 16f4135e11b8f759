"""dbt-arctic: a keyed table, written and read as the adapter does it, without dbt around it."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.peers.peer import Machine, Peer
from benchmarks.peers.table import Table
from benchmarks.peers.workload import DELETED
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.compaction.major import compact_major
from dbt_arctic.compaction.plan import most_valuable_first
from dbt_arctic.compaction.run import run_operations
from dbt_arctic.compaction.settings import CompactionSettings
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.temporary_settings import tuned
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.maintenance.overview import overview_of
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.pull import plan_pull
from dbt_arctic.refresh.upsert import upsert
from dbt_arctic.store.context import Context
from dbt_arctic.store.row_cache import SharedRows

CATALOG = "lake"
ROUND_MS = 15 * 60 * 1000
"""What a round of a mixed run counts as, so that graces and ages take part in what is due."""


class Arctic(Peer):
    title = "dbt-arctic"
    layering = "models"
    settings: ClassVar[tuple[str, ...]] = (
        "adapter defaults; the embedded catalog (SQLite)",
        "compaction that is asked for trims at once (`trim_grace` 0); what is due in a mixed run waits "
        "ten minutes of a clock by which a round is a quarter of an hour",
    )
    feed = "incremental_pull()"

    def __init__(self, folder: Path, machine: Machine, connection: SessionConnection | None = None) -> None:
        super().__init__(folder, machine)
        self._given = connection

    def conf(self) -> dict[str, str]:
        return {}

    def open(self) -> None:
        warehouse = str(self.folder / "lake")
        self.connection = self._given or self._connect(warehouse)
        self.spark = self.connection.session
        self.catalog = EmbeddedCatalog(CATALOG, self.connection.settings.warehouse)
        self.context = Context(
            self.catalog,
            self._run,
            self.connection.query_schema,
            self.query,
            "benchmark",
            now_ms=self._now_ms,
            shared=SharedRows(),
            tuned=partial(tuned, self.connection),
            cores=self.machine.cores,
        )
        self._clock_ms = 0
        self.run(f"CREATE SCHEMA IF NOT EXISTS {CATALOG}.{self.schema}")

    def _connect(self, warehouse: str) -> SessionConnection:
        machine = self.machine
        ours = {"spark.sql.shuffle.partitions", "spark.sql.parquet.compression.codec"}
        conf = {key: value for key, value in machine.spark_conf().items() if key in ours}
        return SessionEngine(
            SparkSettings(
                CATALOG,
                warehouse,
                driver_memory=machine.memory,
                master=f"local[{machine.cores}]",
                spark_conf={**conf, **machine.conf},
            )
        ).connect()

    def run(self, sql: str) -> None:
        self.connection.cursor().execute(sql)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return cursor.fetchall()

    def _run(self, step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return cursor.known_rows

    def _now_ms(self) -> int:
        return int(time.time() * 1000) + self._clock_ms

    def name(self, table: Table) -> Name:
        return Name(CATALOG, self.schema, table.name)

    def config(self, table: Table) -> KeyedConfig:
        return KeyedConfig(table.name, table.key, buckets=table.buckets, bucket_by=table.bucket_by)

    def relation(self, table: Table) -> str:
        return self.name(table).sql

    def load(self, table: Table, rows: str) -> None:
        sql = f"SELECT {', '.join(table.columns)} FROM {rows}"
        build_generation(self.context, self.name(table), self.config(table), sql, {}, owner="benchmark")

    def write(self, table: Table, changes: str) -> None:
        columns = ", ".join(table.columns)
        sql = f"SELECT {columns}, CASE WHEN {DELETED} THEN 'D' ELSE 'U' END AS _action FROM {changes}"
        upsert(self.context, self.name(table), self.config(table), sql)

    def compact(self, table: Table) -> None:
        compact_major(self.context, self.name(table), trim_grace_seconds=0)

    def maintain(self, table: Table, number: int) -> bool:
        """What ``dbt-arctic compact`` would run with its defaults."""
        self._clock_ms += ROUND_MS
        name = self.name(table)
        (seen,) = overview_of(
            self.catalog,
            CATALOG,
            [self.schema],
            self._now_ms(),
            lambda *_: CompactionSettings(),
            frozenset([name]),
        )
        return len(run_operations(self.context, most_valuable_first(seen.due))) > 0

    def mark(self, table: Table) -> str:
        consumed = plan_pull(self.catalog, self.name(table), None, model="mark").consumed
        return f"{consumed.table_id} {consumed.version}"

    def changes(self, table: Table, since: str) -> str:
        table_id, _, version = since.partition(" ")
        pull = plan_pull(self.catalog, self.name(table), Consumed(table_id, version), model="feed")
        return self.with_deletes("_action = 'D'", f"({pull.sql})", table.columns)

    def plain(self, table: Table) -> str:
        return Name(CATALOG, self.schema, f"{table.name}__base_1").sql
