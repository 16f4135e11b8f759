"""A keyed table that a test controls: build, upsert, delete, compact, read, and interrupt anywhere.

No dbt: ``Context`` gets a cursor and the embedded catalog, as from the adapter. Rows are dicts of JSON values
(a decimal or a timestamp is a string), both when they are written and when they are read.
"""

from __future__ import annotations

import json
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from dbt_arctic.adapter.target_session import size_of
from dbt_arctic.auto import few_rows, plan_model
from dbt_arctic.auto.temporary_views import make_view
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.compaction.major import CompactionResult, compact_major
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.errors import ArcticError, CommitStateUnknown
from dbt_arctic.keyed import layout
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.names import Name, literal, quote, quote_all
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.file_checks import Missing
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.pull import Pull, plan_pull
from dbt_arctic.refresh.upsert import computed_upsert, upsert
from dbt_arctic.store.consumption import Consumption, last_read
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.state import current_version, load_change, load_keyed
from dbt_arctic.store.without_views import reading_records, with_records
from tests.extent import LONG, extent
from tests.model.catalog import MemoryCatalog
from tests.spark.keyed import in_memory
from tests.spark.keyed.injected_failures import MOST, Attempt
from tests.spark.keyed.read_without_spark import require_same_rows

Row = dict[str, Any]

QUICK = {
    # A handful of rows, hundreds of statements: what costs is to plan, to compile and to start tasks.
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Settings of the sessions that tests write and read with."""

DEFAULTS = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
"""Spark's own defaults of ``QUICK``. The number of partitions depends on the profile."""


class Killed(Exception):
    """The process ended here: no statement that comes later runs, not even a clean-up."""


@dataclass
class Statement:
    step: str
    sql: str
    rows: int | None
    jobs: int


@dataclass
class Statements:
    """Runs a context's statements on a separate connection, records them, and dies at a given statement."""

    connection: SessionConnection | in_memory.Connection
    ran: list[Statement] = field(default_factory=list)
    count_jobs: bool = False
    before: Callable[[str], None] | None = None
    """Called with each step before it runs: what others do in between."""
    late: str = ""
    """The statement that a process which has died had sent."""
    _left: int | None = None
    _way: str = "die"
    _dead: bool = False

    def die(self, at: int) -> None:
        """Die before the statement that has ``at`` others before it: right after the one before."""
        self._left, self._way, self._dead = at, "die", False

    def lose_the_answer(self, at: int) -> None:
        """The statement after ``at`` others succeeds, but its result is lost; the process continues."""
        self._left, self._way, self._dead = at, "lose", False

    def run_twice(self, at: int) -> None:
        """The statement after ``at`` others is sent twice by the network."""
        self._left, self._way, self._dead = at, "twice", False

    def delay(self, at: int) -> None:
        """Die like ``die``, but the statement had been sent: ``land`` runs it."""
        self._left, self._way, self._dead = at, "late", False

    def land(self) -> None:
        """The statement of a dead process arrives. It may fail, and no process gets the error."""
        with suppress(ArcticError):
            self.connection.cursor().execute(self.late)

    def __call__(self, step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        if self._dead:
            raise Killed(step)
        if self.before is not None:
            self.before(step)
        last = self._left == 0
        if self._left is not None:
            self._left -= 1
        if last and self._way in ("die", "late"):
            self._dead, self.late = True, sql
            raise Killed(f"before {step}")
        cursor = self.connection.cursor()
        cursor.execute(sql)
        rows = cursor.known_rows
        self.ran.append(Statement(step, sql, rows, cursor.job_count if self.count_jobs else -1))
        if last and self._way == "twice":
            cursor.execute(sql)
        if last and self._way == "lose":
            raise CommitStateUnknown(f"no answer to {step}")
        return rows

    @property
    def steps(self) -> list[str]:
        return [statement.step for statement in self.ran]


def fast_session(engine: SessionEngine) -> SessionConnection:
    """A new session with these settings."""
    made = engine.connect()
    for setting, value in QUICK.items():
        made.session.conf.set(setting, value)
    return made


class Clock:
    """The machine's."""

    @staticmethod
    def now_ms() -> int:
        return int(time.time() * 1000)


class Spark:
    """A real lake: Spark, Iceberg, and the machine's clock."""

    def __init__(self, engine: SessionEngine, warehouse: Path) -> None:
        self._engine = engine
        self._warehouse = warehouse
        self.clock = Clock()

    def connection(self) -> SessionConnection:
        return fast_session(self._engine)

    def catalog(self) -> EmbeddedCatalog:
        return EmbeddedCatalog("lake", self._warehouse)

    def close(self) -> None:
        """What others use stays."""


Place = Spark | in_memory.Memory


class Session:
    """An active process: a connection, its context, and the statements that it ran."""

    def __init__(self, place: Place, schema: str) -> None:
        self.connection: Any = place.connection()
        self.schema = schema
        self.statements = Statements(self.connection)
        self.catalog: Any = place.catalog()
        self.context = Context(
            catalog=self.catalog,
            run=self.statements,
            query_schema=self.connection.query_schema,
            query=self.query,
            run_id="test",
            now_ms=place.clock.now_ms,
        )
        if isinstance(self.catalog, WithRecords):
            self.context = reading_records(self.context)

    def adapts(self) -> None:
        """From here on with adaptive execution, as for users: for what is drawn at random."""
        self.query("RESET spark.sql.adaptive.enabled")

    def plans_as_for_users(self) -> None:
        """From here on: Spark's own settings, for what is asserted of plans and jobs."""
        for setting in QUICK:
            self.query(f"RESET {setting}")
        # A reset restores what the process began with, which is not Spark's default if a dbt test started it.
        for setting, value in DEFAULTS.items():
            self.query(f"SET {setting}={value}")

    @property
    def memory(self) -> MemoryCatalog | None:
        """The catalog, if the lake is in memory."""
        catalog = self.catalog.behind if isinstance(self.catalog, WithRecords) else self.catalog
        return catalog if isinstance(catalog, MemoryCatalog) else None

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self.connection.cursor()
        cursor.execute(self._readable(sql))
        return cursor.fetchall()

    def _readable(self, sql: str) -> str:
        return with_records(self.catalog, sql) if isinstance(self.catalog, WithRecords) else sql

    def name(self, identifier: str) -> Name:
        return Name("lake", self.schema, identifier)

    def read(self, sql: str, columns: Sequence[str]) -> list[Row]:
        """The rows of a query in the form in which the tests keep them."""
        if isinstance(self.connection, in_memory.Connection):
            return in_memory.read(self.connection, self._readable(sql), columns)
        text = f"SELECT to_json(struct({quote_all(columns)}), map('ignoreNullFields', 'false')) FROM ({sql})"
        return [json.loads(row[0], parse_float=str) for row in self.query(text)]

    def log_of(self, action: Callable[[], Any]) -> list[str]:
        """The steps that an action runs."""
        before = len(self.statements.ran)
        action()
        return self.statements.steps[before:]


@dataclass
class Orders:
    """A keyed table under test, as one session sees it. ``types`` is the model's columns."""

    session: Session
    name: Name
    types: dict[str, str]
    config: dict[str, Any]

    def on(self, session: Session) -> Orders:
        """The same table in another session."""
        return replace(self, session=session)

    def configured(self, **config: Any) -> Orders:
        return replace(self, config={**self.config, **config})

    def with_types(self, types: dict[str, str]) -> Orders:
        return replace(self, types=types)

    @property
    def key(self) -> tuple[str, ...]:
        key = self.config["unique_key"]
        return (key,) if isinstance(key, str) else tuple(key)

    def model(self, rows: Iterable[Row], actions: bool = False) -> str:
        """A model's SQL that produces these rows; with ``actions``, a row may have ``_action``."""
        types = {**self.types, **({"_action": "string"} if actions else {})}
        full = [{"_action": "U", **row} if actions else row for row in rows]
        if isinstance(self.session.connection, in_memory.Connection):
            return in_memory.rows_sql(full, types)
        struct = ", ".join(f"{quote(name)}: {type_}" for name, type_ in types.items())
        return (
            f"SELECT r.* FROM (SELECT explode(from_json({literal(json.dumps(full))}, "
            f"{literal(f'array<struct<{struct}>>')}, map('mode', 'FAILFAST'))) AS r)"
        )

    # Writes

    def build_sql(self, sql: str, consumed: Mapping[str, Any] | None = None) -> Outcome:
        config = parse_config(self.name.identifier, self.config)
        return build_generation(
            self.session.context, self.name, config, sql, consumed or {}, owner="model.test"
        )[1]

    def upsert_sql(self, sql: str) -> Outcome:
        return upsert(self.session.context, self.name, parse_config(self.name.identifier, self.config), sql)

    def build(self, rows: Iterable[Row] = ()) -> Outcome:
        return self.build_sql(self.model(rows))

    def upsert(self, rows: Iterable[Row]) -> Outcome:
        return self.upsert_sql(self.model(rows))

    def delete(self, keys: Iterable[Row]) -> Outcome:
        return self.upsert_sql(self.model([{**key, "_action": "D"} for key in keys], actions=True))

    def apply(self, upserts: Iterable[Row], deletes: Iterable[Row] = ()) -> Outcome:
        rows = [*upserts, *({**key, "_action": "D"} for key in deletes)]
        return self.upsert_sql(self.model(rows, actions=True))

    def compact(self, grace: float = 0) -> CompactionResult:
        return compact_major(self.session.context, self.name, grace)

    # Reads

    def rows(self) -> list[Row]:
        """Through the public name, and without Spark."""
        columns = list(self.types)

        def by_spark() -> list[Row]:
            return self.session.read(f"SELECT * FROM {self.name.sql}", columns)

        if self.session.memory is not None:
            return self._sorted(by_spark())
        return self._sorted(require_same_rows(self.session.catalog, self.name, columns, by_spark))

    def rows_at(self, version: Version) -> list[Row]:
        return self._sorted(self.session.read(merge_on_read(self.table, version), list(self.types)))

    def base_rows(self) -> list[Row]:
        return self._sorted(self.session.read(f"SELECT * FROM {self.table.base.sql}", list(self.types)))

    def _sorted(self, rows: list[Row]) -> list[Row]:
        return sorted(rows, key=lambda row: tuple(row[column] for column in self.key))

    @property
    def table(self) -> KeyedTable:
        return load_keyed(self.session.catalog, self.name)

    @property
    def version(self) -> Version:
        return current_version(self.session.catalog, self.table)

    def commits(self) -> tuple[int, int]:
        """How many snapshots the change and the base table have, on main or not."""
        found = []
        for side in (self.table.change, self.table.base):
            state = self.session.catalog.load_table(side.schema, side.identifier)
            assert state is not None
            found.append(len(state.snapshots))
        return found[0], found[1]


@dataclass
class Consumer:
    """A model that pulls: its rows are its upstreams' rows, with the name of the upstream in ``source``.

    ``run`` is what ``dbt run`` does: plan the pulls, leave if nothing is new, else write once.
    """

    orders: Orders
    upstreams: tuple[Name, ...]
    pulls: list[Pull] = field(default_factory=list)

    def on(self, session: Session) -> Consumer:
        return Consumer(self.orders.on(session), self.upstreams)

    @property
    def expected(self) -> dict[str, Any]:
        return consumed_versions(load_change(self.orders.session.catalog, self.orders.table).history())

    def plan(self, first: bool) -> tuple[dict[str, Any], list[Pull]]:
        expected = {} if first else self.expected
        session = self.orders.session
        self.pulls = []
        for at, upstream in enumerate(self.upstreams):
            staging = f"pull_{session.context.new_txn()}_{at}"
            pull = plan_pull(
                session.catalog,
                upstream,
                last_read(session.catalog, upstream, expected),
                model=self.orders.name.identifier,
                key=self.orders.key[:1],
                staging=staging,
            )
            if pull.stage is not None:
                make_view(session.context, "stage", pull.stage.sql)
            self.pulls.append(pull)
        return expected, self.pulls

    def sql(self, pulls: Sequence[Pull]) -> str:
        columns = quote_all([name for name in self.orders.types if name != "source"])
        return "\nUNION ALL\n".join(
            f"SELECT {columns}, {literal(pull.upstream.identifier)} AS source, _action FROM (\n{pull.sql}\n)"
            for pull in pulls
        )

    def run(self, rebuild: bool = False) -> str:
        """``skipped``, ``built`` or ``upserted``."""
        exists = self.orders.session.catalog.load_view(self.orders.name.schema, self.orders.name.identifier)
        rebuild = rebuild or exists is None
        expected, pulls = self.plan(first=rebuild)
        if not rebuild and not any(pull.changed for pull in pulls):
            return "skipped"
        return self.write(expected, pulls, rebuild)

    def write(self, expected: Mapping[str, Any], pulls: Sequence[Pull], rebuild: bool = False) -> str:
        consumed = {pull.upstream.dotted: pull.consumed for pull in pulls}
        if rebuild:
            self.orders.build_sql(self.sql(pulls), consumed)
            return "built"
        config = parse_config(self.orders.name.identifier, self.orders.config)
        computed_upsert(
            self.orders.session.context,
            self.orders.name,
            config,
            self.sql(pulls),
            Consumption(expected, consumed),
        )
        return "upserted"

    def rows(self) -> list[Row]:
        return self.orders.rows()


class Shop:
    """The schema of a test's tables. ``session()`` is another process that works concurrently."""

    def __init__(self, place: Place, schema: str) -> None:
        self._place = place
        self._schema = schema
        self._sessions: list[Session] = []
        self._lock = threading.Lock()
        self.main = self.session()

    def session(self) -> Session:
        made = Session(self._place, self._schema)
        with self._lock:
            self._sessions.append(made)
        return made

    def table(self, identifier: str = "orders", types: dict[str, str] | None = None, **config: Any) -> Orders:
        settings = {"unique_key": "id", "buckets": 2, **config}
        columns = types or {"id": "bigint", "amount": "int"}
        return Orders(self.main, self.main.name(identifier), columns, settings)

    def consumer(self, identifier: str, *upstreams: Orders | Name, **config: Any) -> Consumer:
        tables = [upstream for upstream in upstreams if isinstance(upstream, Orders)]
        types = {**(tables[0].types if tables else {"id": "bigint", "amount": "int"}), "source": "string"}
        names = tuple(one.name if isinstance(one, Orders) else one for one in upstreams)
        orders = self.table(identifier, types, **{"unique_key": ["id", "source"], **config})
        return Consumer(orders, names)

    def size_of(self, path: str) -> int | Missing | None:
        """The size of a file, as ``adapter.target_session`` determines it."""
        memory = self.main.memory
        return size_of(path) if memory is None else memory.size_of(path)

    def close(self) -> None:
        for session in self._sessions:
            session.connection.close()


@pytest.fixture(autouse=True)
def whatever_it_takes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How an automatic model is refreshed depends on what earlier refreshes took, and a machine may be slow.

    It also depends on the number of rows, of which tables of tests have few. Tests that are not about that do
    without.
    """
    monkeypatch.setattr(few_rows, "MAX_EXTRA_SECONDS", math.inf)
    if not getattr(request.module, "BY_HISTORY", False):
        monkeypatch.setattr(plan_model, "timings", lambda history: [])


@pytest.fixture(autouse=True)
def _models_have_two_buckets(modelled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless they set their number. On Spark, each bucket is a file, and a task of every read."""
    if not modelled:
        monkeypatch.setattr(layout, "DEFAULT_BUCKETS", 2)


@pytest.fixture
def connection(engine: SessionEngine) -> Iterator[SessionConnection]:
    """A session of its own for one test."""
    made = fast_session(engine)
    yield made
    made.close()


@pytest.fixture
def modelled(request: pytest.FixtureRequest, has_views: bool) -> bool:
    """Whether the test runs on the lake in memory: if it is marked, in the short form or without views."""
    return not (LONG and has_views) and request.node.get_closest_marker("modelled") is not None


@pytest.fixture
def schema(request: pytest.FixtureRequest, modelled: bool) -> str:
    """A fresh schema. It stays, as the warehouse is thrown away: to drop what is in it takes seconds."""
    name = f"keyed_{uuid.uuid4().hex[:12]}"
    if not modelled:
        request.getfixturevalue("keeper").cursor().execute(f"CREATE SCHEMA lake.{name}")
    return name


@pytest.fixture
def has_views(request: pytest.FixtureRequest) -> bool:
    """Whether the catalog has views. Tests with the mark ``without_views`` run with and without."""
    return bool(getattr(request, "param", True))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.definition.get_closest_marker("without_views") is not None:
        metafunc.fixturenames.append("has_views")
        metafunc.parametrize("has_views", [True, False], indirect=True, ids=["views", "no views"])


@pytest.fixture
def shop(request: pytest.FixtureRequest, modelled: bool, has_views: bool, schema: str) -> Iterator[Shop]:
    place: Place = (
        in_memory.Memory(schema, has_views=has_views)
        if modelled
        else Spark(request.getfixturevalue("engine"), request.getfixturevalue("warehouse"))
    )
    made = Shop(place, schema)
    yield made
    made.close()
    place.close()


@pytest.fixture
def unbuilt(shop: Shop) -> Orders:
    """A table that is not built: a session, and a name whose siblings a test makes by itself."""
    return shop.table()


@pytest.fixture
def cut_off() -> tuple[type[Exception], ...]:
    """How a run ends that was cut off."""
    return (Killed, ArcticError)


@pytest.fixture
def troubled(
    shop: Any, cut_off: Any, modelled: bool
) -> Callable[..., Iterator[tuple[int, Callable[..., bool]]]]:
    """For each statement that there is: its place, and a function that runs the operation in trouble.

    ``attempt(run)`` says whether ``run(session)`` came to its end. What it had sent last arrives with
    ``attempt.land``. Of several ways, the next statement has the next one.
    """

    def places(*ways: str, first: int = 0, every: int = 1) -> Iterator[tuple[int, Any]]:
        # On Spark the short form has every third place: in memory operations are cut off anywhere.
        for turn, at in enumerate(range(first, MOST, every * (1 if modelled else extent(3, 1)))):
            attempt = Attempt(shop, cut_off, ways[turn % len(ways)], at)
            yield at, attempt
            attempt.session.connection.close()
            if len(attempt.session.statements.ran) <= at and not attempt.session.statements.late:
                assert at > 0, "an operation without a statement"
                return
        raise AssertionError(f"more than {MOST} statements")

    return places
