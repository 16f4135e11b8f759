"""Operations on keyed tables, and the conditions that must hold after each: the same for every tier.

``Story`` runs operations in separate processes, with or without faults, and compares the tables with the
oracle. It decides nothing: a state machine, a script or a test chooses the next operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.compaction.major import compact_major, trim_merged
from dbt_arctic.compaction.rebucket import rebucket
from dbt_arctic.compaction.rewrite import compact_full, compact_minor, merge_small_files
from dbt_arctic.errors import (
    ArcticError,
    CommitStateUnknown,
    ConcurrentRun,
    ConfigError,
    UnknownRelation,
    VersionUnavailable,
)
from dbt_arctic.keyed.names import quote_all
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Version, decode_consumed
from dbt_arctic.maintenance.claims import find_claims
from dbt_arctic.maintenance.clean import remove_leftovers
from dbt_arctic.maintenance.consumers import can_continue, find_consumers
from dbt_arctic.maintenance.expire import expire_versions
from dbt_arctic.maintenance.finding import Finding
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.leftovers import Retention, find_leftovers
from dbt_arctic.maintenance.restore import restore_table, undo_full_refresh
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.savepoint import drop_savepoint, make_savepoint
from dbt_arctic.maintenance.verify import verify_schema
from dbt_arctic.maintenance.versions import list_savepoints, rows_at
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import KeyedConfig, parse_config
from dbt_arctic.refresh.dml import modify
from dbt_arctic.refresh.event_time import Interval
from dbt_arctic.refresh.microbatch import replace_keys
from dbt_arctic.refresh.overwrite import overwrite
from dbt_arctic.refresh.parse_dml import parse_modification
from dbt_arctic.refresh.pull import plan_changes, plan_pull
from dbt_arctic.refresh.upsert import computed_upsert, upsert
from dbt_arctic.store.consumption import Consumption, last_consumed
from dbt_arctic.store.state import columns_at, current_version, find_keyed, load_change, load_keyed
from tests.model.oracle import Cell, GenerationLog, State, TableLog, apply, same_rows, visible
from tests.model.world import Disturbance, Killed, Process, World

DAYS = tuple(date(2026, 1, number) for number in range(1, 4))
GRACE_S = 600
PLAIN = "plain"
"""A table without a key, where there is one."""
TOMBSTONES_MS = 24 * 3600 * 1000
LEFT_BEHIND = (
    *("leftover-", "savepoint", "view-missing", "interrupted-swap", "columns"),
    *("layout", "properties", "markers"),  # another number of buckets, half-way
)
"""What the findings of ``verify`` may begin with after an operation that was cut off."""


@dataclass(frozen=True)
class Change:
    """One row of a batch; without an amount, a delete. ``sequence`` counts where the table has one."""

    key: int
    amount: int | None
    day: int = 0
    sequence: int = 0

    def __str__(self) -> str:
        written = "D" if self.amount is None else f"U {self.amount} day {self.day}"
        return f"{self.key}: {written} seq {self.sequence}"


@dataclass
class Reader:
    """A reader that has loaded the view and the base, but not the change table yet."""

    table: KeyedTable
    base_snapshot: int
    since_ms: int


class Different(AssertionError):
    """What is there is not what must be there."""


@dataclass
class Story:
    """A table ``orders``, written to in every way there is, and ``copy``, a model that pulls from it.

    :param sequence: whether ``orders`` has ``sequence_by``.
    :param watched: whether the rows are read before each statement of each operation.
    """

    world: World
    sequence: bool = False
    watched: bool = False
    thorough: int = 4
    """Every how many steps the dear checks are made."""
    orders: TableLog = field(init=False)
    copy: TableLog = field(init=False)
    readers: list[Reader] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    blind: set[str] = field(default_factory=set)
    """Runs that wrote without reading the table: a concurrent full refresh must not lose their rows."""
    faulty: bool = False
    """Whether any operation was cut off, so that something may have been left behind."""
    by_hand: bool = False
    extra: bool = False
    """Whether the model has the column ``extra`` now."""
    steps: int = 0
    newest: int = 0
    """The greatest sequence that was written, or was to be."""
    oldest: int = 0
    """No late row is older: deletes of older sequences may be forgotten by now."""
    trace: list[str] = field(default_factory=list)
    runs: int = 0
    part: Literal["all", "act", "intend"] = "all"
    """``act``: operations are run and nothing is compared. ``intend``: they are only made known."""
    _depth: int = 0
    _seen: dict[str, tuple[KeyedTable, int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.orders = TableLog(self.world.name("orders"), self.world.catalog)
        self.copy = TableLog(self.world.name("copy"), self.world.catalog)

    # Configuration

    @property
    def config(self) -> KeyedConfig:
        return self._configured()

    def _configured(self, **more: Any) -> KeyedConfig:
        settings: dict[str, Any] = {"unique_key": "id", "buckets": 2, "on_schema_change": "sync_all_columns"}
        if self.sequence:
            settings.update({"sequence_by": "version", "tombstone_retention": "1 day"})
        return parse_config("orders", {**settings, **more})

    @property
    def columns(self) -> tuple[str, ...]:
        """What the model produces, the key left out."""
        names = ("amount", "day", *(("version",) if self.sequence else ()))
        return (*names, "extra") if self.extra else names

    def model(self, batch: Sequence[Change]) -> str:
        """A model's SQL that produces a batch."""
        types = {"id": "BIGINT", "amount": "INT", "day": "DATE", "version": "BIGINT", "extra": "STRING"}
        names = ["id", *self.columns]
        lines = []
        for change in batch or [Change(0, 0)]:
            values = {
                "id": str(change.key),
                "amount": str(change.amount or 0),
                "day": f"'{DAYS[change.day]}'",
                "version": str(change.sequence),
                "extra": f"'x{change.amount}'",
            }
            action = "D" if change.amount is None else "U"
            lines.append(f"({', '.join(values[name] for name in names)}, '{action}')")
        selected = ", ".join(f"CAST({name} AS {types[name]}) AS {name}" for name in names)
        nothing = "" if batch else "\nWHERE false"
        return (
            f"SELECT {selected}, CAST(_action AS STRING) AS _action\n"
            f"FROM VALUES {', '.join(lines)} AS t({', '.join(names)}, _action){nothing}"
        )

    def payload(self, change: Change, extra: bool) -> Mapping[str, Any] | None:
        if change.amount is None:
            return None
        found: dict[str, Any] = {"amount": change.amount, "day": DAYS[change.day]}
        if self.sequence:
            found["version"] = change.sequence
        if extra:
            found["extra"] = f"x{change.amount}"
        return found

    def cells(self, batch: Sequence[Change], extra: bool) -> State:
        return {
            one.key: Cell(one.sequence if self.sequence else None, self.payload(one, extra)) for one in batch
        }

    # Operations. Each returns whether it came to its end without an error.

    def build(self, batch: Sequence[Change], disturbance: Disturbance | None = None) -> bool:
        extra, sql, config = self.extra, self.model(batch), self.config

        def intend(run_id: str) -> None:
            self.orders.builds[run_id] = lambda commit: apply({}, self.cells(batch, extra))

        def run(process: Process) -> None:
            build_generation(process.context, self.orders.name, config, sql, {}, owner="model.test")

        return self._switch(f"build {_listed(batch)}", self.orders, run, disturbance, intend)

    def upsert(self, batch: Sequence[Change], disturbance: Disturbance | None = None) -> bool:
        extra, sql, config = self.extra, self.model(batch), self.config

        def intend(run_id: str) -> None:
            self.blind.add(run_id)
            self.orders.effects[run_id] = lambda log, state, commit: self.cells(batch, extra)

        def run(process: Process) -> None:
            upsert(process.context, self.orders.name, config, sql)

        return self._attempt(f"upsert {_listed(batch)}", run, disturbance, self.orders, intend)

    def replace_day(self, day: int, batch: Sequence[Change], disturbance: Disturbance | None = None) -> bool:
        """A batch of a microbatch model: the rows of a day are replaced."""
        rows = [Change(one.key, one.amount, day) for one in batch if one.amount is not None]
        extra, sql, config = self.extra, self.model(rows), self.config
        end = DAYS[day + 1] if day + 1 < len(DAYS) else date(2026, 2, 1)
        interval = Interval.of("day", DAYS[day].isoformat(), end.isoformat())

        def effect(log: TableLog, state: State, commit: Any) -> State:
            gone = {key: Cell(None, None) for key, one in visible(state).items() if one["day"] == DAYS[day]}
            return {**gone, **self.cells(rows, extra)}

        def intend(run_id: str) -> None:
            self.orders.effects[run_id] = effect

        def run(process: Process) -> None:
            replace_keys(process.context, self.orders.name, config, sql, interval)

        return self._attempt(f"replace day {day} {_listed(rows)}", run, disturbance, self.orders, intend)

    def upsert_amounts(self, batch: Sequence[Change], disturbance: Disturbance | None = None) -> bool:
        """A partial upsert: of rows that are there only the amount changes."""
        extra, sql = self.extra, self.model(batch)
        config = self._configured(merge_update_columns=["amount"], on_schema_change="append_new_columns")
        changed = ("amount", "version")

        def effect(log: TableLog, state: State, commit: Any) -> State:
            rows, found = self.cells(batch, extra), visible(state)
            for key, cell in rows.items():
                if cell.payload is not None and key in found:
                    given = {name: value for name, value in cell.payload.items() if name in changed}
                    rows[key] = cell._replace(payload={**found[key], **given})
            return rows

        def intend(run_id: str) -> None:
            self.orders.effects[run_id] = effect

        def run(process: Process) -> None:
            upsert(process.context, self.orders.name, config, sql)

        return self._attempt(f"upsert amounts {_listed(batch)}", run, disturbance, self.orders, intend)

    def overwrite(self, batch: Sequence[Change], disturbance: Disturbance | None = None) -> bool:
        """All rows are replaced, in one commit."""
        rows = [one for one in batch if one.amount is not None]
        extra, sql = self.extra, self.model(rows)
        config = self._configured(incremental_strategy="insert_overwrite", overwrite="table")

        def intend(run_id: str) -> None:
            self.orders.effects[run_id] = lambda log, state, commit: {
                **{key: Cell(None, None) for key in visible(state)},
                **self.cells(rows, extra),
            }

        def run(process: Process) -> None:
            overwrite(process.context, self.orders.name, config, sql, Consumption())

        return self._attempt(f"overwrite {_listed(rows)}", run, disturbance, self.orders, intend)

    def modify(self, day: int, deletes: bool, disturbance: Disturbance | None = None) -> bool:
        """An UPDATE or a DELETE with a condition: the amounts of a day grow by one, or its rows go."""
        what, where = self.orders.name.sql, f"WHERE day = '{DAYS[day]}'"
        sql = f"DELETE FROM {what} {where}" if deletes else f"UPDATE {what} SET amount = amount + 1 {where}"

        def effect(log: TableLog, state: State, commit: Any) -> State:
            rows = {key: row for key, row in visible(state).items() if row["day"] == DAYS[day]}
            if deletes:
                return {key: Cell(None, None) for key in rows}
            return {key: Cell(None, {**row, "amount": row["amount"] + 1}) for key, row in rows.items()}

        def intend(run_id: str) -> None:
            self.orders.effects[run_id] = effect

        def run(process: Process) -> None:
            modify(process.context, self.orders.name, parse_modification(sql))

        return self._attempt(sql.partition(" ")[0] + f" of day {day}", run, disturbance, None, intend)

    def roll_back(self, table: TableLog, version: str, disturbance: Disturbance | None = None) -> bool:
        def run(process: Process) -> None:
            roll_back(process.context, table.name, version)

        what = f"roll back {table.name.identifier} to {version}"
        if self.sequence:
            return self._switch(what, table, run, disturbance, may_end=(VersionUnavailable,))
        return self._attempt(what, run, disturbance, table, may_end=(VersionUnavailable,))

    def compact(self, table: TableLog, grace_s: float, disturbance: Disturbance | None = None) -> bool:
        def run(process: Process) -> None:
            compact_major(process.context, table.name, grace_s)

        # Readers were promised the grace: without it, none may be there before, nor come in the middle.
        patient = grace_s >= GRACE_S
        self.readers = self.readers if patient else []
        done = self._attempt(f"compact {table.name.identifier} {grace_s}", run, disturbance)
        self.readers = self.readers if patient else []
        return done

    def put_together(
        self, kind: str, table: TableLog, disturbance: Disturbance | None = None, grace_s: float = GRACE_S
    ) -> bool:
        """Compaction of another kind: ``minor``, ``full``, ``trim``, or a number of buckets."""
        kinds: dict[str, Callable[..., object]] = {
            "minor": lambda process: compact_minor(process.context, table.name),
            "full": lambda process: compact_full(process.context, table.name),
            "trim": lambda process: trim_merged(process.context, table.name, grace_s),
            **{
                f"{count} buckets": lambda process, count=count: rebucket(process.context, table.name, count)
                for count in (1, 2, 4)
            },
        }

        def run(process: Process) -> None:
            kinds[kind](process)

        return self._attempt(f"{kind} of {table.name.identifier}", run, disturbance)

    def merge_files(self) -> bool:
        """Merges small files of a plain table that another program appends to."""
        name = self.world.name(PLAIN)

        def run(process: Process) -> None:
            process.run("append", f"INSERT INTO {name.sql} VALUES ({self.runs})")
            merge_small_files(process.context, name)

        return self._attempt("merge files", run, None)

    def let_go(self, table: TableLog, age_ms: int, disturbance: Disturbance | None = None) -> bool:
        """``dbt-arctic expire``: it removes nothing that a reader still needs."""

        def run(process: Process) -> None:
            claims = find_claims(process.context.catalog, "lake")
            expire_versions(process.context, table.name, claims, process.context.now_ms() - age_ms)

        catalog, before_ms = self.world.catalog, self.world.now_ms() - age_ms
        shown = find_keyed(catalog, table.name)
        consumers = [] if shown is None else find_consumers(catalog, shown)
        going_on = [one for one in consumers if shown is not None and can_continue(catalog, shown, one)]
        readable = [] if table is not self.orders else self._readable_since(before_ms)
        done = self._attempt(f"let versions of {table.name.identifier} go", run, disturbance)
        if shown is None or (disturbance is not None and disturbance.kind == "meet"):
            return done
        for one in going_on:
            if not can_continue(catalog, shown, one):
                self._fail(f"{one.name} cannot go on: what it has to read has expired")
        for token in readable:
            if self._is_expired(token):
                self._fail(f"the version {token} of since then has expired")
        return done

    def _readable_since(self, since_ms: int) -> list[str]:
        """The versions of ``orders`` in what is shown that are no older, and there."""
        table = find_keyed(self.world.catalog, self.orders.name)
        if table is None:
            return []
        times = {
            one.snapshot_id: one.timestamp_ms for one in load_change(self.world.catalog, table).snapshots
        }
        found = []
        for token in self.versions:
            number, change_snapshot, _ = (int(part) for part in token.split("."))
            young = times.get(change_snapshot, 0) >= since_ms
            if young and number == table.generation.number and not self._is_expired(token):
                found.append(token)
        return found

    def undo_full_refresh(
        self, table: TableLog, disturbance: Disturbance | None = None, number: int | None = None
    ) -> bool:
        """:param number: of the generation to show, where it is not the one before."""

        def run(process: Process) -> None:
            if number is None:
                undo_full_refresh(process.context, table.name)
            else:
                restore_table(process.context, table.name, number)

        # What it would go back to may be cleaned away by now, or at this moment.
        may_end = (ConfigError, VersionUnavailable)
        what = f"undo the full refresh of {table.name.identifier}"
        return self._switch(what, table, run, disturbance, may_end=may_end)

    def _switch(
        self,
        what: str,
        table: TableLog,
        run: Callable[[Process], None],
        disturbance: Disturbance | None,
        intend: Callable[[str], None] | None = None,
        may_end: tuple[type[ArcticError], ...] = (),
    ) -> bool:
        """Another generation is shown: what landed in the old one meanwhile is in the new one.

        Meanwhile is from the first statement on: what landed before that came before all of it.
        """
        before: dict[str, int] = {}

        def begun() -> None:
            self._observe(table)
            before.update({change_id: len(log.runs) for change_id, log in table.generations.items()})
            old.append(table.current if table.shown is not None else None)

        old: list[GenerationLog | None] = []
        done = self._attempt(what, run, disturbance, None, intend, may_end, begun=begun)
        retired = old[0] if old else None
        if done and retired is not None and table.current is not retired:
            late = retired.runs[before[retired.generation.change_id] :]
            lost = [one for one in late if one in self.blind and one not in table.current.runs]
            if lost:
                self._fail(f"{lost} landed beside the switch and are not in what is shown")
        return done

    def restore(self, table: TableLog) -> bool:
        return self._attempt(
            f"restore {table.name.identifier}",
            lambda process: restore_table(process.context, table.name),
            None,
        )

    def pull(self, disturbance: Disturbance | None = None, rebuild: bool = False) -> str:
        """A run of the model that pulls: ``skipped``, ``built``, ``upserted`` or ``failed``."""
        said: list[str] = []
        config = parse_config("copy", {"unique_key": "id", "buckets": 2})
        source = self.orders.name

        def consumed_by(commit: Snapshot) -> State:
            """The rows of the version that the commit says it was computed from."""
            found = decode_consumed(commit.summary["arctic.consumed"])
            return self._copied(found[source.dotted].version)

        def intend(run_id: str) -> None:
            self.copy.builds[run_id] = consumed_by
            self.copy.effects[run_id] = lambda log, state, commit: _difference(state, consumed_by(commit))

        def run(process: Process) -> None:
            catalog = process.context.catalog
            first = rebuild or catalog.load_view(self.copy.name.schema, self.copy.name.identifier) is None
            expected = {}
            if not first:
                target = load_keyed(catalog, self.copy.name)
                expected = last_consumed(load_change(catalog, target).history(), "copy")
            pull = plan_pull(catalog, source, expected.get(source.dotted), model="copy")
            if not first and not pull.changed:
                said.append("skipped")
                return
            sql = f"SELECT `id`, `amount`, `day`, `_action` FROM (\n{pull.sql}\n)"
            consumed = {source.dotted: pull.consumed}
            if first:
                build_generation(process.context, self.copy.name, config, sql, consumed, owner="model.copy")
                said.append("built")
                return
            computed_upsert(process.context, self.copy.name, config, sql, Consumption(expected, consumed))
            said.append("upserted")

        quiet = disturbance is None or disturbance.kind != "meet"
        what = "pull" + (" anew" if rebuild else "")
        done = self._attempt(what, run, disturbance, None, intend, (VersionUnavailable,))
        if not done:
            return "failed"
        if said == ["skipped"] and quiet and self.part == "all":
            wanted = self._copied(self.version())
            found = self.copy.current.states[self.copy.current.head]
            if visible(found) != visible(wanted):
                raise Different(f"nothing was pulled, and yet {visible(found)} is not {visible(wanted)}")
        return said[0]

    def _copied(self, token: str) -> State:
        rows = visible(self.orders.at(token))
        return {
            key: Cell(None, {name: payload[name] for name in ("amount", "day")})
            for key, payload in rows.items()
        }

    def savepoint(self, name: str, disturbance: Disturbance | None = None) -> bool:
        def run(process: Process) -> None:
            make_savepoint(process.context, self.orders.name, name)

        return self._attempt(f"savepoint {name}", run, disturbance)

    def savepoints(self) -> list[str]:
        table = find_keyed(self.world.catalog, self.orders.name)
        return [] if table is None else list(list_savepoints(self.world.catalog, table))

    def drop_savepoint(self, name: str) -> bool:
        return self._attempt(
            f"drop savepoint {name}",
            lambda process: drop_savepoint(process.context, self.orders.name, name),
            None,
        )

    def clean(self, retention: Retention | None = None, disturbance: Disturbance | None = None) -> bool:
        kept = retention or Retention()

        def run(process: Process) -> None:
            context = process.context
            inventory = take_inventory(context.catalog, "lake", self.world.schema)
            found = find_leftovers(inventory, context.now_ms(), kept)
            remove_leftovers(context, "lake", found.removals, kept)

        return self._attempt("clean", run, disturbance)

    # What others do

    def expire(self, table: TableLog, role: str, older_than_ms: int) -> None:
        """Another program's maintenance: expires every snapshot that no branch or tag needs."""
        shown = table.observe()
        if shown is None:
            return
        side = shown.base if role == "base" else shown.change
        self._note(f"expire {side.identifier}")
        before = self.world.now_ms() - older_than_ms
        self.world.execute(
            f"CALL `lake`.system.expire_snapshots(table => {side.procedure_argument()}, "
            f"older_than => timestamp_millis({before}), retain_last => 1)"
        )
        # A snapshot that a reader has loaded is gone, and so are its files.
        self.readers.clear()
        self.check()

    def rewrite(self, table: TableLog, role: str) -> None:
        """Another program's maintenance: merges files of a side table."""
        shown = table.observe()
        if shown is None:
            return
        side = shown.base if role == "base" else shown.change
        self._note(f"rewrite {side.identifier}")
        self.world.execute(
            f"CALL `lake`.system.rewrite_data_files(table => {side.procedure_argument()}, "
            "options => map('rewrite-all', 'true'))"
        )
        self.check()

    def advance(self, milliseconds: int) -> None:
        self._note(f"{milliseconds / 1000} s go by")
        self.world.advance(milliseconds)
        if milliseconds > TOMBSTONES_MS:
            self.oldest = self.newest + 1
        limit = self.world.now_ms() - GRACE_S * 1000
        self.readers = [reader for reader in self.readers if reader.since_ms > limit]

    # Readers

    def begin_read(self) -> None:
        """Load the view and the base, as the analysis of a statement does."""
        table = self.orders.observe()
        if table is None:
            return
        self._note("a reader loads the base")
        base = self.world.catalog.load_table(table.base.schema, table.base.identifier)
        assert base is not None
        assert base.current_snapshot_id is not None
        self.readers.append(Reader(table, base.current_snapshot_id, self.world.now_ms()))

    def end_read(self) -> None:
        """Load the change table, and read both."""
        if not self.readers:
            return
        reader = self.readers.pop(0)
        self._note("a reader loads the changes")
        table = reader.table
        self.orders.observe()
        log = self.orders.generations[table.generation.change_id]
        change = self.world.catalog.load_table(table.change.schema, table.change.identifier)
        if change is None or change.current_snapshot_id not in log.states:
            return  # dropped, or written by an unknown program
        if not set(table.column_names) <= {column.name for column in change.columns}:
            return  # the reader's view names a column that is gone: an error, not a wrong row
        version = Version(table.generation.number, change.current_snapshot_id, reader.base_snapshot)
        rows = self._read(self._at(table, version), ("amount", "day"))
        self._compare("a reader", rows, log.states[change.current_snapshot_id], ("amount", "day"))

    def _at(self, table: KeyedTable, version: Version) -> str:
        catalog = self.world.catalog
        known = {
            **columns_at(catalog, table.base, (version.base_snapshot,)),
            **columns_at(catalog, table.change, (version.change_snapshot,)),
        }
        return merge_on_read(table, version, known)

    # Checks

    def check(self) -> None:
        """Everything that must hold now."""
        self.steps += 1
        for table in (self.orders, self.copy):
            self._observe(table)
            if table.shown is not None:
                self._check_rows(table)
        if self.orders.shown is not None:
            self._remember()
            if self.steps % self.thorough == 0:
                self._check_versions()
                if self._depth == 0:
                    self._verify(with_rows=True)

    def _observe(self, table: TableLog) -> None:
        if table.observe() is None and table.generations:
            self._fail(f"the view {table.name} is gone")

    def _check_rows(self, table: TableLog) -> None:
        assert table.shown is not None
        log = table.current
        assert log.base_head is not None
        seen = (table.shown, log.head, log.base_head)
        if self._seen.get(table.name.identifier) == seen:
            return  # snapshots do not change
        columns = [name for name in table.shown.column_names if name != "id"]
        name = table.name.identifier
        rows = self._read(f"SELECT * FROM {table.name.sql}", columns)
        self._compare(name, rows, log.now, columns)
        rows = self._read(f"SELECT * FROM {table.shown.base.sql}", columns)
        kept = [column for column in columns if column not in log.dropped]
        self._compare(f"the base of {name}", rows, log.base_state(log.base_head), kept)
        self._seen[name] = seen

    def _compare(
        self, what: str, rows: Sequence[Mapping[str, Any]], expected: State, columns: Sequence[str]
    ) -> None:
        difference = same_rows(rows, expected, columns)
        if difference:
            raise Different(f"{what}: {difference}\n" + "\n".join(self.trace[-40:]))

    def _read(self, sql: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        names = ["id", *columns]
        rows = self.world.query(f"SELECT {quote_all(names)} FROM (\n{sql}\n)")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def version(self) -> str:
        """The version of ``orders`` now."""
        return current_version(self.world.catalog, load_keyed(self.world.catalog, self.orders.name)).token

    def _remember(self) -> None:
        token = self.version()
        if not self.versions or self.versions[-1] != token:
            self.versions.append(token)
            del self.versions[:-12]

    def _check_versions(self) -> None:
        """A version that is remembered reads as it was, and the changes since then lead to now."""
        assert self.orders.shown is not None
        before = self.versions[self.steps // self.thorough % len(self.versions)]
        after = self.versions[-1]
        name, catalog = self.orders.name, self.world.catalog
        columns = [one for one in self.orders.shown.column_names if one not in ("id", "extra")]
        try:
            old = self._read(rows_at(catalog, name, before, "test"), columns)
        except ArcticError:
            if self._is_expired(before):
                return
            raise
        self._compare(f"the version {before}", old, self.orders.at(before), columns)
        if before.split(".")[0] != after.split(".")[0]:
            return
        try:
            sql = plan_changes(catalog, name, before, after, "both", "test")
        except VersionUnavailable:
            return
        names = ["id", *columns, "_action"]
        rows = {row["id"]: row for row in old}
        changes = self.world.query(f"SELECT {quote_all(names)} FROM (\n{sql}\n)")
        for change in sorted(changes, key=lambda row: bool(row[-1] == "U")):
            row = dict(zip(names[:-1], change, strict=False))
            if change[-1] == "U":
                rows[row["id"]] = row
            elif rows.pop(row["id"], row) != row:
                raise Different(f"the old image {row} is not what was there")
        what = f"the changes from {before} to {after}"
        self._compare(what, list(rows.values()), self.orders.at(after), columns)

    def _is_expired(self, token: str) -> bool:
        number, change_snapshot, base_snapshot = (int(part) for part in token.split("."))
        for role, snapshot in (("base", base_snapshot), ("change", change_snapshot)):
            name = f"orders__{role}_{number}"
            state = self.world.catalog.load_table(self.world.schema, name)
            if state is None or snapshot not in {one.snapshot_id for one in state.snapshots}:
                return True
        return False

    def _verify(self, with_rows: bool) -> None:
        findings = self.findings(with_rows)
        allowed = LEFT_BEHIND if self.faulty else ("leftover-",)
        wrong = [found for found in findings if not found.kind.startswith(allowed)]
        if wrong:
            raise Different(f"verify: {wrong}\n" + "\n".join(self.trace[-40:]))

    def findings(self, with_rows: bool = True) -> list[Finding]:
        catalog, schema = self.world.catalog, self.world.schema
        return verify_schema(
            catalog,
            take_inventory(catalog, "lake", schema),
            self.world.now_ms(),
            lambda path: None,
            self.world.query if with_rows else None,
        )

    # The middle of it

    def _note(self, text: str) -> None:
        self.trace.append("  " * self._depth + text)

    def _attempt(
        self,
        what: str,
        action: Callable[[Process], None],
        disturbance: Disturbance | None,
        writes: TableLog | None = None,
        intend: Callable[[str], None] | None = None,
        may_end: tuple[type[ArcticError], ...] = (),
        begun: Callable[[], None] | None = None,
    ) -> bool:
        """Run an operation to its end, or to its interruption, and check the tables.

        A successful operation has written everything; a refused one has written nothing.

        :param intend: records in the oracle what the run with an id is to do.
        :param may_end: the errors with which it may end without a fault.
        :param begun: called once, before the first statement.
        """
        self.runs += 1
        run_id = f"run {self.runs}"
        if intend is not None:
            intend(run_id)
        if self.part == "intend":
            return False
        disturbed = disturbance or Disturbance()
        kind = "" if disturbed.kind == "none" else f" [{disturbed.kind} at {disturbed.at}]"
        self._note(what + kind)
        process = self.world.process(run_id, disturbed)
        if self.part == "act":
            action(process)
            process.dead = True
            return True
        process.watch = lambda step: self._meanwhile(process, begun)
        error: Exception | None = None
        seen = 0
        self._depth += 1
        try:
            for table in (self.orders, self.copy):
                self._observe(table)
            if writes is not None and writes.shown is not None:
                seen = len(writes.current.order)
            action(process)
        except (Killed, ArcticError) as raised:
            error = raised
        finally:
            self._depth -= 1
            process.dead = True
        if error is not None:
            process.cut_off = True
            self._note(f"-> {error!r}".splitlines()[0][:200])
            self._judge(error, disturbed, may_end)
        self.check()
        if writes is not None and writes.shown is not None:
            landed = writes.current.runs.count(process.context.run_id)
            if (
                error is None
                and process.context.run_id not in writes.done
                and not _changes_nothing(writes, process.context.run_id, seen)
            ):
                self._fail(f"{what} was done, and is not in the log")
            if landed > 1 or (isinstance(error, ConcurrentRun) and landed):
                self._fail(f"{what} is {landed} times in the log, although {error!r}")
        return error is None

    def _judge(
        self, error: Exception, disturbed: Disturbance, may_end: tuple[type[ArcticError], ...]
    ) -> None:
        """Whether an operation may end like this."""
        if (
            isinstance(error, Killed)
            or (isinstance(error, CommitStateUnknown) and disturbed.kind in ("lose", "refuse"))
            or (isinstance(error, (ConcurrentRun, VersionUnavailable)) and disturbed.kind == "meet")
        ):
            self.faulty = True
        elif disturbed.kind == "meet" and "UNRESOLVED_COLUMN" in str(error):
            self.faulty = True  # a column was dropped in the meantime: Spark refuses, and nothing is written
        elif disturbed.kind == "meet" and "savepoint" in str(error) and " already" in str(error):
            pass  # two of one name at once: the second one fails
        elif disturbed.kind == "meet" and "__" in str(error) and _is_missing(error):
            self.faulty = True  # of a generation that two full refreshes since have retired
        elif self._depth and isinstance(error, (ConcurrentRun, VersionUnavailable)):
            pass  # another run holds the lease
        elif not isinstance(error, may_end):
            raise error

    def _meanwhile(self, process: Process, begun: Callable[[], None] | None) -> None:
        """Before each statement."""
        if begun is not None and not process.ran:
            begun()
        if self.watched:
            self._check_meanwhile()

    def _check_meanwhile(self) -> None:
        for table in (self.orders, self.copy):
            self._observe(table)
            if table.shown is not None:
                log = table.current
                rows = self._read(f"SELECT * FROM {table.name.sql}", ("amount", "day"))
                self._compare(f"{table.name.identifier} meanwhile", rows, log.now, ("amount", "day"))

    def _fail(self, text: str) -> None:
        raise Different(text + "\n" + "\n".join(self.trace[-40:]))


def _difference(before: State, after: State) -> State:
    gone = {key: Cell(None, None) for key in visible(before).keys() - visible(after).keys()}
    return {**gone, **{key: cell for key, cell in after.items() if before.get(key) != cell}}


def _listed(batch: Sequence[Change]) -> str:
    return f"[{', '.join(map(str, batch))}]"


def _changes_nothing(table: TableLog, run_id: str, seen: int) -> bool:
    """Whether a run changes no row of a state that there was while it ran. Then it need not commit.

    :param seen: how many commits there were when it began.
    """
    log, effect = table.current, table.effects.get(run_id)
    states = [log.states[one] for one in log.order[max(seen - 1, 0) :]] or [log.now]
    return effect is not None and any(
        visible(apply(state, effect(table, state, None))) == visible(state) for state in states
    )


def _is_missing(error: Exception) -> bool:
    return isinstance(error, UnknownRelation) or "TABLE_OR_VIEW_NOT_FOUND" in str(error)
