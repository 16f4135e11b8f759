"""Random stories of models over a simulated table of a database: after each run, the model has its rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from dbt_arctic.databases.api import Column, JdbcRead, RowQuery, Table, Window
from dbt_arctic.engine.api import SourceRead
from dbt_arctic.errors import MalformedFile, VersionUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.sources import cursor, database_plan, database_pull
from dbt_arctic.sources.database_plan import Writes
from dbt_arctic.sources.database_pull import DatabasePlanner
from dbt_arctic.sources.database_settings import DatabaseSource
from dbt_arctic.store.context import Context

STORIES, STEPS = 250, 60
OVERLAP = 2
ACTS = [*["insert", "update", "run"] * 4, "delete", "begin", "begin", "begin", "commit", "null"]
ACTS += ["end", "rollback", "clone", "full", "recreate", "compare", "all", "by_cursor"]
ID = Column("id", "bigint", "integer", "BIGINT", is_nullable=False)
AT = Column("at", "bigint", "integer", "BIGINT")
VALUE = Column("value", "text", "text", "STRING")
Row = tuple[int | None, int]
"""The cursor and the value of a row."""


@dataclass
class Server:
    """A table: its committed rows by key, and transactions that are open.

    :param shares: whether other connections can see the state of a transaction, as in PostgreSQL.
    :param meanwhile: what happens after a run has looked at the table, and between two statements that read.
    """

    shares: bool
    rows: dict[int, Row] = field(default_factory=dict)
    open: list[tuple[int, int, Row]] = field(default_factory=list)
    clock: int = 100
    values: int = 0
    table_id: int = 0
    transactions: int = 0
    meanwhile: Callable[[], None] = lambda: None
    shared: dict[str, dict[int, Row]] = field(default_factory=dict)
    held: int = 0
    query: RowQuery | None = None
    read_rows: list[tuple[int, Row | None]] = field(default_factory=list)

    def begin(self) -> SimulatedTransaction:
        self.transactions += 1
        self.held += 1
        return SimulatedTransaction(self, dict(self.rows))

    def read(self, query: RowQuery) -> JdbcRead:
        self.query = query
        return JdbcRead({}, [])

    def write(self, key: int, cursor: int | None = None) -> None:
        self.values += 1
        self.rows[key] = (self.clock if cursor is None else cursor, self.values)

    def tick(self, steps: int = 1) -> None:
        """Time goes on. A transaction is not open for longer than the overlap."""
        for _ in range(steps):
            for begun in [one for one in self.open if one[0] + OVERLAP <= self.clock]:
                self.commit(begun)
            self.clock += 1

    def commit(self, begun: tuple[int, int, Row]) -> None:
        self.open.remove(begun)
        self.rows[begun[1]] = begun[2]

    def create_source_view(self, name: str, source: SourceRead) -> None:
        """Spark's reader. Concurrent statements see one state only if the query has a snapshot."""
        query = self.query
        assert query is not None
        self.meanwhile()
        self.read_rows = []
        for low, high in query.ranges or [(None, None)]:
            seen = self.shared[query.snapshot] if query.snapshot else dict(self.rows)
            for key, row in seen.items():
                if (low is None or key >= low) and (high is None or key < high):
                    is_new = query.window is None or is_in(row, query.window)
                    if is_new or query.all_keys:
                        self.read_rows.append((key, row if is_new else None))
            self.meanwhile()


def is_in(row: Row, window: Window) -> bool:
    """The rule of a window, in plain Python."""
    if row[0] is None:
        return window.with_null
    if window.high is None or row[0] > int(window.high):
        return False
    if window.low is None:
        return True
    return row[0] >= int(window.low) if window.includes_low else row[0] > int(window.low)


@dataclass
class SimulatedTransaction:
    """A transaction that sees the rows of one point in time."""

    server: Server
    rows: dict[int, Row]

    @property
    def table(self) -> Table:
        return Table(f"t{self.server.table_id}", (ID, AT, VALUE), ("id",), 2_000_000)

    def newest(self, cursor: Column) -> str | None:
        found = max((row[0] for row in self.rows.values() if row[0] is not None), default=None)
        return None if found is None else str(found)

    def has_null(self, column: Column) -> bool:
        return any(row[0] is None for row in self.rows.values())

    def fingerprint(self, columns: Sequence[Column], window: Window | None) -> str:
        found = [
            tuple({"id": key, "at": row[0], "value": row[1]}[one.name] for one in columns)
            for key, row in self.rows.items()
            if window is None or is_in(row, window)
        ]
        return f"{len(found)}:{sum(map(hash, map(str, found)))}"

    def extremes(self, column: Column) -> tuple[int, int] | None:
        return (min(self.rows), max(self.rows)) if self.rows else None

    def count(self, window: Window) -> int:
        return sum(is_in(row, window) for row in self.rows.values())

    def share(self) -> str:
        if not self.server.shares:
            return ""
        name = f"s{len(self.server.shared)}"
        self.server.shared[name] = self.rows
        return name

    def close(self) -> None:
        self.server.held -= 1


class Ended(Exception):
    """The process ended here."""


@dataclass
class Model:
    """The commits of a model's table: the rows after each, and what it had consumed."""

    writes: Writes = field(default_factory=lambda: Writes(("id",), is_keyed=True))
    source: DatabaseSource = field(
        default_factory=lambda: DatabaseSource("crm.t", "t", cursor="at", overlap=OVERLAP)
    )
    commits: list[tuple[tuple[tuple[int, Row], ...], dict[str, Consumed]]] = field(
        default_factory=lambda: [((), {})]
    )

    def planner(self, server: Server) -> DatabasePlanner:
        context = Context(cast(Any, None), cast(Any, None), cast(Any, None), cast(Any, None))
        return DatabasePlanner(
            context,
            lambda: cast(Any, server),
            cast(Any, server),
            self.source,
            self.writes,
            lambda: Name("lake", "s", "m"),
        )

    def run(self, server: Server, *, full: bool = False, ends: str = "") -> None:
        planner = self.planner(server)
        rows, consumed = ((), {}) if full else self.commits[-1]
        server.transactions, server.query = 0, None
        planned = planner.plan(consumed, "m", "consume")
        assert server.transactions == 1
        try:
            if ends == "planned":
                raise Ended
            if planned.pull.changed:
                made = {**consumed, planned.pull.upstream.dotted: planned.pull.consumed}
                self.commits.append((self.merged(server, rows), made))
            if ends == "committed":
                raise Ended
        finally:
            if planned.release is not None:
                planned.release()
            assert server.held == 0

    def merged(self, server: Server, rows: Sequence[tuple[int, Row]]) -> tuple[tuple[int, Row], ...]:
        query = server.query
        assert query is not None
        read = [(key, row) for key, row in server.read_rows if row is not None]
        if self.writes.appends:
            return (*rows, *read)
        stored = dict(rows)
        for key in [key for key in stored if query.all_keys and key not in dict(server.read_rows)]:
            del stored[key]
        return tuple(sorted({**stored, **dict(read)}.items()))


@pytest.fixture(autouse=True)
def stored_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stored keys are those of the simulated model, and not of a catalog."""

    class Stored:
        key = ("id",)
        visible = None

    monkeypatch.setattr(database_pull, "load_keyed", lambda catalog, name: Stored)
    monkeypatch.setattr(database_pull, "merge_on_read", lambda table: "SELECT 1 AS id")


def play_story(seed: int) -> str:
    """A story. Returns what went wrong; empty if nothing did."""
    chance = random.Random(seed)
    server, nulls = Server(shares=chance.random() < 0.6), chance.choice(["fail", "read", "skip"])
    first = Model(source=DatabaseSource("crm.t", "t", cursor="at", overlap=OVERLAP, null_cursor=nulls))
    first.source = replace(first.source, partitions=chance.choice([None, 1, 3]))
    models = [first]
    for step in range(STEPS):
        act, model, key = chance.choice(ACTS), chance.choice(models), chance.randrange(12)
        if act in ("insert", "update"):
            server.tick(chance.choice([0, 1, 1, 1, 8]))
            server.write(key)
        elif act == "delete":
            server.rows.pop(key, None)
        elif act == "begin" and key not in {begun[1] for begun in server.open}:
            server.values += 1
            server.open.append((server.clock, key, (server.clock, server.values)))
        elif act == "commit" and server.open:
            server.commit(chance.choice(server.open))
        elif act == "null" and nulls == "read":
            server.values += 1
            server.rows[key] = (None, server.values)
        elif act == "rollback" and len(model.commits) > 1:
            del model.commits[chance.randrange(1, len(model.commits)) :]
        elif act == "clone" and len(models) < 3:
            models.append(Model(model.writes, model.source, list(model.commits)))
        elif act == "compare":
            model.source = replace(model.source, compares_keys=not model.source.compares_keys)
        elif act == "all":
            model.source = replace(model.source, cursor="", overlap=None)
        elif act == "by_cursor":
            model.source = replace(model.source, cursor="at", overlap=OVERLAP)
        elif act == "recreate" and chance.random() < 0.2:
            server.table_id += 1
        elif act in ("run", "end", "full"):
            ends = chance.choice(["planned", "committed"]) if act == "end" else ""
            found = _run(server, model, chance, full=act == "full", ends=ends)
            if found:
                return f"step {step}, {act}: {found}"
    return ""


def _run(server: Server, model: Model, chance: random.Random, *, full: bool, ends: str) -> str:
    before = model.commits[-1]
    is_busy = chance.random() < 0.4

    def meanwhile() -> None:
        if is_busy:
            server.tick(chance.choice([1, 9]))
            server.write(chance.randrange(12))

    server.meanwhile = meanwhile
    seen = dict(server.rows)
    try:
        model.run(server, full=full, ends=ends)
    except Ended:
        if ends == "planned" and model.commits[-1] != before:
            return "a run that was cut off has consumed rows"
    except VersionUnavailable:
        consumed = before[1].get("database.crm.t")
        if full or consumed is None or consumed.table_id == f"database:t{server.table_id}":
            return "the table is the same, and the run failed"
        server.meanwhile = lambda: None
        model.run(server, full=True)
        seen, ends = dict(server.rows), ""
    finally:
        server.meanwhile = lambda: None
    if ends == "planned":
        return ""
    if not server.shares and is_busy:
        # What has changed while it was read is read by the next run.
        seen = dict(server.rows)
        model.run(server)
    return _compared(seen, model, full)


def _compared(seen: dict[int, Row], model: Model, full: bool) -> str:
    """The model's rows against those of the table, with which it has read nothing of later."""
    stored = dict(model.commits[-1][0])
    if model.source.null_cursor == "skip" and model.source.cursor:
        seen = {key: row for key, row in seen.items() if row[0] is not None}
    missing = {key: row for key, row in seen.items() if stored.get(key) != row}
    if missing:
        return f"not as in the table: {missing}, stored {[stored.get(key) for key in missing]}"
    more = set(stored) - set(seen)
    if more and (model.source.compares_keys or full):
        return f"deleted keys are still there: {more}"
    return ""


def test_a_model_has_the_rows_of_its_table_in_random_stories() -> None:
    assert [found for found in map(play_story, range(STORIES)) if found] == []


def tell_of_appends(seed: int) -> str:
    """A story of rows that are only inserted, and of models without a key."""
    chance = random.Random(seed)
    server, model = Server(shares=chance.random() < 0.5), Model(Writes((), appends=True))
    model.source = DatabaseSource("crm.t", "t", cursor="at", overlap=0, partitions=3)
    for step in range(STEPS):
        act = chance.choice(["insert", "insert", "run", "end", "rollback", "full"])
        if act == "insert":
            server.tick()
            server.write(len(server.rows))
        elif act == "rollback" and len(model.commits) > 1:
            del model.commits[chance.randrange(1, len(model.commits)) :]
        elif act in ("run", "end", "full"):
            ends = chance.choice(["planned", "committed"]) if act == "end" else ""
            is_busy = chance.random() < 0.4

            def meanwhile(is_busy: bool = is_busy) -> None:
                if is_busy:
                    server.tick()
                    server.write(len(server.rows))

            server.meanwhile, seen = meanwhile, dict(server.rows)
            try:
                model.run(server, full=act == "full", ends=ends)
            except Ended:
                if ends == "planned":
                    continue
            if sorted(model.commits[-1][0]) != sorted(seen.items()):
                return f"step {step}: {model.commits[-1][0]} and not {seen}"
    return ""


def test_without_a_key_each_row_is_read_once_in_random_stories() -> None:
    assert [found for found in map(tell_of_appends, range(STORIES)) if found] == []


def test_a_row_without_a_cursor_is_an_error_unless_the_source_says_what_to_do() -> None:
    server, model = Server(shares=True), Model()
    server.rows[1] = (None, 1)
    with pytest.raises(MalformedFile, match="have no value in at"):
        model.run(server)
    assert server.held == 0


@pytest.mark.parametrize("cursor", ["at", ""])
def test_rows_that_are_only_shown_need_no_fingerprint(cursor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server, model, found = Server(shares=True), Model(), []
    model.source = replace(model.source, cursor=cursor, overlap=OVERLAP if cursor else None)
    server.write(1)
    looked_up = SimulatedTransaction.fingerprint

    def counted(transaction: SimulatedTransaction, *given: Any) -> str:
        found.append(transaction)
        return looked_up(transaction, *given)

    monkeypatch.setattr(SimulatedTransaction, "fingerprint", counted)
    shown = model.planner(server).plan({}, "m", "read")
    assert (shown.pull.changed, found) == (True, [])
    model.run(server)
    assert len(found) == 1
    again = model.planner(server).plan(model.commits[-1][1], "m", "read")
    assert (again.pull.changed, len(found)) == (False, 2), "what has changed is known by the fingerprint"


def _upper_end_looked_up_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that records the largest value after the rows were read."""
    plan_read = database_pull.plan_read

    def of(source: Any, transaction: Any, *given: Any, **how: Any) -> Any:
        plan = plan_read(source, transaction, *given, **how)
        later = dict(transaction.server.rows)
        transaction.server.meanwhile()
        newest = SimulatedTransaction(transaction.server, dict(transaction.server.rows)).newest(AT)
        if plan.progress.value is None or later == transaction.server.rows:
            return plan
        return replace(plan, progress=replace(plan.progress, value=newest))

    monkeypatch.setattr(database_pull, "plan_read", of)


def _progress_apart_from_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant of a table of offsets: progress has a place of its own, which a rollback does not reach."""
    place: dict[int, dict[str, Consumed]] = {}
    run = Model.run

    def apart(model: Model, server: Server, **how: Any) -> None:
        rows, _ = model.commits[-1]
        if not how.get("full") and id(model) in place and rows:
            model.commits[-1] = (rows, dict(place[id(model)]))
        run(model, server, **how)
        place[id(model)] = model.commits[-1][1]

    monkeypatch.setattr(Model, "run", apart)


def _overlap_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant whose runs begin one too high."""
    below = cursor.below
    monkeypatch.setattr(
        database_plan, "below", lambda column, value, overlap: below(column, value, overlap - 1)
    )


def _nothing_new_by_the_largest_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that looks at the largest value only: late rows of a table that rests are not seen."""
    monkeypatch.setattr(SimulatedTransaction, "fingerprint", lambda transaction, columns, window: "")


def _low_end_excluded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that does not read rows with the smallest value of its window again."""
    plan_read = database_pull.plan_read

    def of(*given: Any, **how: Any) -> Any:
        plan = plan_read(*given, **how)
        window = None if plan.window is None else replace(plan.window, includes_low=False)
        return replace(plan, window=window)

    monkeypatch.setattr(database_pull, "plan_read", of)


def _no_upper_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that reads all rows above the low end, whatever it records."""
    inside = is_in

    def of(row: Row, window: Window) -> bool:
        return inside(row, replace(window, high="1000000") if window.high is not None else window)

    monkeypatch.setitem(globals(), "is_in", of)


def _ranges_without_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant whose concurrent statements see states of their own, and which relies on one."""
    monkeypatch.setattr(Server, "read", lambda server, query: _without_snapshot(server, query))


def _without_snapshot(server: Server, query: RowQuery) -> JdbcRead:
    server.query = replace(query, snapshot="")
    return JdbcRead({}, [])


@pytest.mark.parametrize(
    ("mutant", "story"),
    [
        (_upper_end_looked_up_twice, play_story),
        (_upper_end_looked_up_twice, tell_of_appends),
        (_progress_apart_from_rows, play_story),
        (_overlap_too_small, play_story),
        (_nothing_new_by_the_largest_value, play_story),
        (_low_end_excluded, play_story),
        (_no_upper_end, tell_of_appends),
        (_ranges_without_a_snapshot, play_story),
    ],
)
def test_a_wrong_protocol_is_found_by_the_stories(
    mutant: Callable[[pytest.MonkeyPatch], None],
    story: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutant(monkeypatch)
    assert any(map(story, range(STORIES)))
