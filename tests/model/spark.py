"""The world of real Spark and Iceberg: one schema, and a session for each active process."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbt_arctic.catalog.api import CatalogReader, InCatalog, Loaded, RelationEntry, TableState, ViewState
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.forwarding_reader import ForwardingReader
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.engine.api import Connection, Engine
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.context import Context
from dbt_arctic.store.without_views import reading_records, with_records
from tests.model.world import Disturbance, Process

_TIME = re.compile(r"\btimestamp_millis\((\d+)\)")

# A handful of rows, hundreds of statements: what costs is to plan and to compile.
_QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


def quick_session(engine: Engine) -> Connection:
    made = engine.connect()
    for name, value in _QUICK.items():
        _execute(made, f"SET {name} = {value}")
    return made


def _execute(connection: Connection, sql: str) -> int | None:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.known_rows


def _query(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


class Clock:
    """The machine's clock with an offset. Times that Iceberg has written are converted to this clock."""

    def __init__(self) -> None:
        self._passed: list[tuple[int, int]] = [(0, 0)]
        """From which time of the machine on it is how far ahead."""

    def now_ms(self) -> int:
        return self.shown(int(time.time() * 1000))

    def advance(self, milliseconds: int) -> None:
        # The order of two commits in one millisecond would be unknown.
        time.sleep(0.002)
        self._passed.append((int(time.time() * 1000), self._passed[-1][1] + milliseconds))
        time.sleep(0.002)

    def shown(self, machine_ms: int) -> int:
        return machine_ms + next(ahead for since, ahead in reversed(self._passed) if since <= machine_ms)

    def of_machine(self, shown_ms: int) -> int:
        """The first time of the machine at which this clock showed that, or more."""
        ends = [*(since for since, _ in self._passed[1:]), 1 << 62]
        for (since, ahead), end in zip(self._passed, ends, strict=True):
            if shown_ms - ahead < end:
                return max(since, shown_ms - ahead)
        raise AssertionError("the last one has no end")


class ShownCatalog(ForwardingReader):
    """A catalog, with the times of commits as the clock shows them."""

    def __init__(self, catalog: CatalogReader, clock: Clock) -> None:
        super().__init__(catalog)
        self._clock = clock

    def of(self, name: InCatalog) -> ShownCatalog:
        return self

    def list_schemas(self) -> list[str]:
        return self._catalog.list_schemas()

    def list_relations(self, schema: str) -> list[RelationEntry]:
        return self._catalog.list_relations(schema)

    def list_names(self, schema: str) -> list[RelationEntry]:
        return self._catalog.list_names(schema)

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self._catalog.load_view(schema, name)

    def load_table(self, schema: str, name: str) -> TableState | None:
        state = self._catalog.load_table(schema, name)
        return None if state is None else self._shown(state)

    def load_all(self, schema: str, entries: Sequence[RelationEntry]) -> list[Loaded]:
        loaded = self._catalog.load_all(schema, entries)
        return [self._shown(one) if isinstance(one, TableState) else one for one in loaded]

    def _shown(self, state: TableState) -> TableState:
        shown = (replace(one, timestamp_ms=self._clock.shown(one.timestamp_ms)) for one in state.snapshots)
        return replace(state, snapshots=tuple(shown))


def embedded_world(engine: SessionEngine, warehouse: Path) -> SparkWorld:
    """A world in the embedded catalog of a folder."""
    return SparkWorld(engine, EmbeddedCatalog("lake", warehouse))


class SparkWorld:
    """A schema of its own, and a clock that can be put on.

    :param catalog: of the name ``lake``, in any engine and with or without views.
    """

    def __init__(self, engine: Engine, catalog: CatalogReader, schema: str | None = None) -> None:
        self._engine = engine
        self._clock = Clock()
        self._has_records = isinstance(catalog, WithRecords)
        self.catalog = ShownCatalog(catalog, self._clock)
        self.schema = schema or f"model_{uuid.uuid4().hex[:12]}"
        self._free: list[Connection] = []
        self._running: list[tuple[Process, Connection]] = []
        self._reader = quick_session(engine)
        self.execute(f"CREATE SCHEMA IF NOT EXISTS lake.{self.schema}")

    def process(self, run_id: str, disturbance: Disturbance | None = None) -> Process:
        session = self._session()
        context = Context(
            catalog=self.catalog,
            run=lambda step, sql, table=None: made.run(step, sql, table),
            query_schema=session.query_schema,
            query=lambda sql: _query(session, sql),
            run_id=run_id,
            now_ms=self.now_ms,
        )
        made = Process(
            self,
            reading_records(context) if self._has_records else context,
            disturbance or Disturbance(),
            execute=lambda sql: _execute(session, self._by_the_machine(sql)),
            query=lambda sql: _query(session, sql),
        )
        self._running.append((made, session))
        return made

    def _session(self) -> Connection:
        """A session that no process uses. One that ended by an error goes: so it does with its process."""
        for process, session in [one for one in self._running if one[0].dead]:
            self._running.remove((process, session))
            if process.cut_off:
                session.close()
            else:
                self._free.append(session)
        return self._free.pop() if self._free else quick_session(self._engine)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return _query(self._reader, with_records(self.catalog, sql) if self._has_records else sql)

    def execute(self, sql: str) -> int | None:
        return _execute(self._reader, self._by_the_machine(sql))

    def _by_the_machine(self, sql: str) -> str:
        """A procedure of Iceberg compares with its own times."""
        return _TIME.sub(lambda found: f"timestamp_millis({self._clock.of_machine(int(found[1]))})", sql)

    def now_ms(self) -> int:
        return self._clock.now_ms()

    def advance(self, milliseconds: int) -> None:
        self._clock.advance(milliseconds)

    def name(self, identifier: str) -> Name:
        return Name("lake", self.schema, identifier)

    def close(self) -> None:
        for session in [self._reader, *self._free, *(session for _, session in self._running)]:
            session.close()
