"""Where operations run: processes with sessions of their own, which others interrupt or which are cut off.

The same product code runs in both tiers; ``MemoryWorld`` has the lake in memory, ``SparkWorld`` a real one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from dbt_arctic.adapter.engines import RECORDS
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.engine.faults import classify
from dbt_arctic.engine.java_causes import Cause
from dbt_arctic.errors import ArcticError, CommitStateUnknown
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.store.context import Context
from dbt_arctic.store.without_views import reading_records, with_records
from tests.model.catalog import MemoryCatalog
from tests.model.duck import Duck, QueryFailed
from tests.model.lake import Lake, Refused
from tests.model.statements import Interpreter, Shared

SCHEMA = "s"


class Killed(Exception):
    """The process ended here: nothing that comes later runs, not even a clean-up."""


@dataclass
class Disturbance:
    """The fault of a process at one of its statements (and, in memory, at one of its catalog reads).

    :param kind: ``none``; ``die`` before the statement; ``lose`` its answer although it succeeded; ``refuse``
        it with the same message although it did not; ``meet`` an operation of another process before it.
    :param at: the number of statements before it.
    :param step: the name of the statement, instead of ``at``.
    """

    kind: str = "none"
    at: int = 0
    meet: Callable[[], object] | None = None
    step: str = ""


@dataclass
class Process:
    """One run: its context, the statements that it ran, and what disturbs it."""

    world: World
    context: Context
    disturbance: Disturbance
    execute: Callable[[str], int | None]
    query: Callable[[str], list[tuple[Any, ...]]]
    ran: list[str] = field(default_factory=list)
    watch: Callable[[str], None] | None = None
    _events: int = 0
    dead: bool = False
    """Whether it has ended, in whatever way."""
    cut_off: bool = False
    """Whether it ended by an error: what it had set in its session may still be set."""

    def run(self, step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        hit = self.pause(step)
        if hit and self.disturbance.kind == "refuse":
            raise CommitStateUnknown(f"no answer to {step}")
        rows = self.execute(sql)
        self.ran.append(step)
        if hit and self.disturbance.kind == "lose":
            raise CommitStateUnknown(f"no answer to {step}")
        return rows

    def pause(self, event: str, statement: bool = True) -> bool:
        """What happens before an event; whether it is the one that is disturbed."""
        if self.dead:
            raise Killed(event)
        if self.watch is not None and statement:
            self.watch(event)
        kind = self.disturbance.kind
        if not statement and kind != "meet":
            return False
        step = self.disturbance.step
        hit = self._events == self.disturbance.at if not step else event == step and not self._events
        self._events += hit if step else 1
        if hit and kind == "die":
            self.dead = self.cut_off = True
            raise Killed(event)
        if hit and kind == "meet" and self.disturbance.meet is not None:
            self.disturbance.meet()
        return hit


class World(Protocol):
    """A schema, a clock, and processes."""

    schema: str
    catalog: CatalogReader

    def process(self, run_id: str, disturbance: Disturbance | None = None) -> Process: ...

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """A read by another process, in a separate session without faults."""
        ...

    def execute(self, sql: str) -> int | None: ...

    def now_ms(self) -> int: ...

    def advance(self, milliseconds: int) -> None: ...

    def close(self) -> None: ...

    def name(self, identifier: str) -> Name: ...


class RepeatableContext(Context):
    """Draws transactions from the world's chance, so that a run can be repeated."""

    chance: random.Random

    def new_txn(self) -> int:
        return (self.now_ms() << 20) | self.chance.getrandbits(20)


class MemoryWorld:
    """:param tick_ms: how far the clock goes on with each statement; 0: commits share their time."""

    duck: Duck | None = None

    has_views: ClassVar[bool] = True

    def __init__(self, seed: int = 0, tick_ms: int = 1, caches: bool = False) -> None:
        if MemoryWorld.duck is None:
            MemoryWorld.duck = Duck()
        self.chance = random.Random(seed)
        self.schema = SCHEMA
        self._now = 1_700_000_000_000
        self._tick = tick_ms
        self.lake = Lake(self.now_ms, lambda: self.chance.randrange(10**17, 9 * 10**18))
        self._shared = Shared(self.lake, MemoryWorld.duck)
        self._reader = Interpreter(self._shared)
        self.caches = caches
        self.lake.has_views = self.has_views
        self.catalog = self._read_by(MemoryCatalog(self.lake, SCHEMA))

    def process(self, run_id: str, disturbance: Disturbance | None = None) -> Process:
        session = Interpreter(self._shared, caches=self.caches)
        catalog = MemoryCatalog(self.lake, SCHEMA)

        def execute(sql: str) -> int | None:
            self._now += self._tick
            return with_spark_errors(lambda: session.run(sql), sql)

        def query(sql: str) -> list[tuple[Any, ...]]:
            return with_spark_errors(lambda: session.query(sql), sql)

        def query_schema(sql: str) -> list[ColumnInfo]:
            return with_spark_errors(lambda: session.schema(sql), sql)

        context = RepeatableContext(
            catalog=self._read_by(catalog),
            run=lambda step, sql, table=None: made.run(step, sql, table),
            query_schema=query_schema,
            query=query,
            run_id=run_id,
            now_ms=self.now_ms,
        )
        if not self.has_views:
            context = reading_records(context)
        object.__setattr__(context, "chance", self.chance)
        made = Process(self, context, disturbance or Disturbance(), execute, query)
        catalog.before = lambda event: (made.pause(event, statement=False), None)[1]
        return made

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        sql = sql if self.has_views else with_records(self.catalog, sql)
        return with_spark_errors(lambda: self._reader.query(sql), sql)

    def execute(self, sql: str) -> int | None:
        return with_spark_errors(lambda: self._reader.run(sql), sql)

    def _read_by(self, catalog: MemoryCatalog) -> CatalogReader:
        return catalog if self.has_views else WithRecords(catalog, RECORDS)

    def now_ms(self) -> int:
        return self._now

    def advance(self, milliseconds: int) -> None:
        self._now += milliseconds

    def name(self, identifier: str) -> Name:
        return Name("lake", self.schema, identifier)

    def close(self) -> None:
        self._shared.close()


class MemoryWorldWithoutViews(MemoryWorld):
    """A lake without views, in which keyed tables have records."""

    has_views = False


def with_spark_errors(action: Callable[[], Any], sql: str) -> Any:
    """Failures in the words in which Spark's reach the product."""
    try:
        return action()
    except Refused as error:
        raise _as_spark(Cause("java.lang.IllegalArgumentException", str(error)), sql) from error
    except QueryFailed as error:
        raised = f"[USER_RAISED_EXCEPTION] {error.raised} SQLSTATE: P0001"
        cause = (
            Cause("org.apache.spark.SparkRuntimeException", raised)
            if error.raised
            else Cause("java.lang.IllegalArgumentException", str(error))
        )
        raise _as_spark(cause, sql) from error


def _as_spark(cause: Cause, sql: str) -> ArcticError:
    found: ArcticError = classify([cause], sql).error
    return found
