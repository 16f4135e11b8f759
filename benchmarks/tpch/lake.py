"""A Spark with its lake, as the adapter would have them, and what the process has read by now.

Knows nothing of TPC-H.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.temporary_settings import tuned
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.store.context import Context, ModelsOfRun
from dbt_arctic.store.row_cache import SharedRows

SCHEMA = "tpch"


class Lake:
    """One schema of the catalog ``lake``. ``statements`` counts what was run on it; ``models`` are the
    automatic models that are refreshed together.
    """

    def __init__(
        self, connection: SessionConnection, catalog: EmbeddedCatalog, cores: int | None, schema: str = SCHEMA
    ) -> None:
        self.connection, self.catalog, self.schema = connection, catalog, schema
        self.context = Context(
            self.catalog,
            self._run,
            self.connection.query_schema,
            self.query,
            "benchmark",
            shared=SharedRows(),
            alongside=ModelsOfRun(lambda of: self.models),
            tuned=partial(tuned, self.connection),
            cores=cores,
        )
        self.statements = 0
        self.clock: Callable[[], float] = time.perf_counter
        """The seconds since some moment. ``cpu_seconds`` measures the same on a busy machine."""
        self.models: list[Name] = []
        self.run(f"CREATE SCHEMA IF NOT EXISTS lake.{schema}")
        self.run(f"USE lake.{schema}")
        self._pid = int(self.connection.session._jvm.java.lang.ProcessHandle.current().pid())

    @classmethod
    def open(cls, folder: Path, memory: str, master: str, conf: Mapping[str, str]) -> Lake:
        """One on a warehouse of its own, with a Spark of its own."""
        settings = SparkSettings("lake", str(folder), driver_memory=memory, master=master, spark_conf=conf)
        return cls(SessionEngine(settings).connect(), EmbeddedCatalog("lake", str(folder)), settings.cores)

    def begin_invocation(self) -> None:
        """What the refreshes of one ``dbt run`` share is theirs."""
        self.context = replace(self.context, shared=SharedRows())

    def name(self, table: str) -> Name:
        return Name("lake", self.schema, table)

    def run(self, sql: str) -> int | None:
        return self._run("", sql)

    def value(self, sql: str) -> int:
        return int(self.query(sql)[0][0] or 0)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.cursor()
        self.statements += 1
        cursor.execute(sql)
        return cursor.fetchall()

    def _run(self, step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        cursor = self.connection.cursor()
        self.statements += 1
        cursor.execute(sql)
        return cursor.known_rows

    def cpu_seconds(self) -> float:
        """The processor time of this process and of Spark's, which other programs do not lengthen much."""
        fields = Path(f"/proc/{self._pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + time.process_time()

    def bytes_read(self) -> int | None:
        """The bytes that Spark's process has read so far, without shuffles; ``None`` if the system does not
        report them.

        Spark's own counter misses what Iceberg's Parquet reader reads: vectored reads are not counted. So
        this is the kernel's counter, for which a page of its cache counts like one of the disk.
        """
        counters = Path(f"/proc/{self._pid}/io")
        if not counters.exists():
            return None
        context = self.connection.process.context._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        executors = context.statusStore().executorList(False).iterator()
        shuffled = 0
        while executors.hasNext():
            shuffled += executors.next().totalShuffleRead()
        return int(counters.read_text().splitlines()[0].split()[1]) - shuffled
