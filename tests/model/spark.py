"""The world of real Spark and Iceberg: one schema, and a session for each process at work."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.edge import Edge
from tests.model.world import Disturbance, Process

# A handful of rows, hundreds of statements: what costs is to plan and to compile.
_QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def quick_session(engine: SessionEngine) -> SessionConnection:
    made = engine.connect()
    for name, value in _QUICK.items():
        _execute(made, f"SET {name} = {value}")
    return made


def _execute(connection: SessionConnection, sql: str) -> int:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.rowcount


def _query(connection: SessionConnection, sql: str) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


class SparkWorld:
    """A schema of its own. The clock is the machine's, and further on."""

    def __init__(self, engine: SessionEngine, warehouse: Path, schema: str | None = None) -> None:
        self._engine = engine
        self.catalog = EmbeddedCatalog("lake", warehouse)
        self.schema = schema or f"model_{uuid.uuid4().hex[:12]}"
        self._ahead_ms = 0
        self._free: list[SessionConnection] = []
        self._running: list[tuple[Process, SessionConnection]] = []
        self._reader = quick_session(engine)
        self.execute(f"CREATE SCHEMA IF NOT EXISTS lake.{self.schema}")

    def process(self, run_id: str, disturbance: Disturbance | None = None) -> Process:
        session = self._session()
        edge = Edge(
            catalog=self.catalog,
            run=lambda step, sql, table=None: made.run(step, sql, table),
            query_schema=session.query_schema,
            query=lambda sql: _query(session, sql),
            run_id=run_id,
            now_ms=self.now_ms,
        )
        made = Process(
            self,
            edge,
            disturbance or Disturbance(),
            execute=lambda sql: _execute(session, sql),
            query=lambda sql: _query(session, sql),
        )
        self._running.append((made, session))
        return made

    def _session(self) -> SessionConnection:
        """A session that no process uses. One that ended by an error goes: so it does with its process."""
        for process, session in [one for one in self._running if one[0].dead]:
            self._running.remove((process, session))
            if process.cut_off:
                session.close()
            else:
                self._free.append(session)
        return self._free.pop() if self._free else quick_session(self._engine)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return _query(self._reader, sql)

    def execute(self, sql: str) -> int:
        return _execute(self._reader, sql)

    def now_ms(self) -> int:
        return int(time.time() * 1000) + self._ahead_ms

    def advance(self, milliseconds: int) -> None:
        self._ahead_ms += milliseconds

    def name(self, identifier: str) -> Name:
        return Name("lake", self.schema, identifier)

    def close(self) -> None:
        for session in [self._reader, *self._free, *(session for _, session in self._running)]:
            session.close()
