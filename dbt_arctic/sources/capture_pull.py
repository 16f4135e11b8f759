"""Plans what a model reads of a table that is captured from the log of its database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from dbt_arctic.databases.api import Database, TableName, TableTransaction, shape_of
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.version import Consumed, of_relations
from dbt_arctic.refresh.pull import Pull, StagedView
from dbt_arctic.sources.capture_changes import Capture, CaptureRead
from dbt_arctic.sources.capture_evolution import (
    Evolution,
    all_rows_and_deletes,
    all_rows_and_logged_deletes,
    plan_evolution,
)
from dbt_arctic.sources.capture_messages import TableChanges
from dbt_arctic.sources.capture_settings import CapturedColumns, CaptureSource, resolve_columns, upstream_of
from dbt_arctic.sources.capture_table import (
    PLACE_DIGITS,
    Captured,
    position_of,
    recorded_table,
    shapes_statement,
    unread_statement,
    unseen_statement,
)
from dbt_arctic.sources.change_pull import TRUNCATED, TakenChanges, take_changes, truncation_error
from dbt_arctic.sources.change_settings import SEQUENCE, ChangeEvents, must_select
from dbt_arctic.sources.change_sql import Delivery, rows_of_events
from dbt_arctic.sources.column_changes import RecordedTable
from dbt_arctic.sources.cursor import Progress
from dbt_arctic.sources.database_columns import value_of
from dbt_arctic.sources.database_plan import ReadPlan, Writes
from dbt_arctic.sources.database_pull import create_view
from dbt_arctic.sources.source_planner import Planned, PullPurpose, dropped_on_error, no_rows, refuse_renamed
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import load_keyed


class ReadAgain(NamedTuple):
    """Why a model reads all rows of a table that it has read before.

    :param start: the position up to which it has read the changes.
    """

    evolution: Evolution
    start: int


class _SnapshotPosition(NamedTuple):
    """What a transaction that reads all rows has seen.

    :param consumed: what the model has consumed.
    :param place: text that sorts after each change that the rows have, and before each one to be read.
    """

    consumed: Consumed
    place: str


_FEW_CHANGES, _FEW_SCANNED = 5_000, 50_000
"""The most changes that are read without generated code, which saves about 0.1 s of a statement."""


@dataclass(frozen=True)
class CapturePlanner:
    """Plans what a model reads of a table.

    The first run reads the rows of the table, and later ones the changes since.

    :param database: the table.
    :param place: its name.
    :param writes: how the model writes what it reads.
    :param standing: as for ``DatabasePlanner``.
    """

    capture: Capture
    database: Database
    place: TableName
    writes: Writes
    standing: Callable[[], Name]

    @property
    def source(self) -> CaptureSource:
        """The settings of the source."""
        return self.capture.source

    @property
    def context(self) -> Context:
        """The context in which the SQL of the pull will run."""
        return self.capture.context

    @property
    def upstream(self) -> Name:
        """The name of the source among what a model has consumed."""
        return upstream_of(self.source)

    def plan(self, last_consumed: Mapping[str, Consumed], model: str, purpose: PullPurpose) -> Planned:
        """Plan a run. The changes of the whole slot are captured first, once for all models of a run.

        :raises ConfigError: the model has read the table as another source; see also ``resolve_columns``.
        :raises VersionUnavailable: changes that the model has not read are lost.
        :raises SourceTruncated: the table was truncated.
        """
        name, last = self.upstream, last_consumed.get(self.upstream.dotted)
        if purpose == "describe":
            types = self._columns(model).events
            return Planned(Pull(name, self._no_rows(types), last or Consumed("", ""), last is None), last)
        first = last is None and self.source.loads
        taken = self._take(model, purpose, last is None)
        if first:
            return self._load_rows(taken, last_consumed, model, purpose)
        if taken is None:
            columns = self._columns(model).events
            return Planned(Pull(name, self._no_rows(columns), last or Consumed("", ""), False), last)
        return self._read_changes(taken, last_consumed, model, purpose)

    def _take(self, model: str, purpose: PullPurpose, starts_again: bool) -> CaptureRead | None:
        """The capture table. Only a run takes changes of the slot, so there may be none otherwise."""
        if purpose == "consume":
            return self.capture.take(self.place, model, starts_again)
        captured = self.capture.load()
        return None if captured is None else CaptureRead(captured)

    def _read_changes(
        self, read: CaptureRead, last_consumed: Mapping[str, Consumed], model: str, purpose: PullPurpose
    ) -> Planned:
        name, table, captured, warnings = self.upstream, self.place.dotted, read.captured, read.warnings
        found, start, last = self._columns(model), captured.range.start, last_consumed.get(name.dotted)
        before = None
        if last is not None:
            start = captured.require_unread(last, table, self.source.name, model, found.table_id)
            before = recorded_table(last)
        known = captured.changes_since(table, start)
        if last is not None:
            others = {one for one in of_relations(last_consumed) if one != name.dotted}
            evolution = self._evolution(found, before, captured, start, known, others, model, purpose)
            if evolution.reads_again:
                return self._load_rows(read, last_consumed, model, purpose, ReadAgain(evolution, start))
            found = evolution.applied_to(found)
        else:
            warnings = (*warnings, *_other_columns(self.source, found, known))
        columns = found.events
        if last is not None and known is not None and not known.number:
            return Planned(Pull(name, self._no_rows(columns), last, False), last, warnings)
        view = f"{self.source.name.replace('.', '__')}__pull_{self.context.new_txn()}"
        rows_read = unread_statement(captured, table, start)
        self.context.run("stage", f"CREATE OR REPLACE TEMPORARY VIEW {quote(view)} AS\n{rows_read}")
        recorded = found.recorded(before, read.versions.get(self.place))
        consumed = captured.range.at(captured.range.end, table, found.table_id, recorded)
        stage = StagedView(view)
        if purpose != "consume":
            rows = rows_of_events(columns, _delivery(self.source), view)
            return Planned(Pull(name, rows, consumed, True, stage=stage), last)
        with dropped_on_error(self.context, view):
            changes = self._take_changes(columns, view, known, last is None, model)
        few_rows = known is not None and _are_few(known.number, captured.rows_since(start))
        pull = Pull(name, changes.sql, consumed, True, stage=stage, few_rows=few_rows)
        return Planned(pull, last, warnings, notes=changes.notes, must_select=must_select(columns))

    def _take_changes(
        self, events: ChangeEvents, view: str, known: TableChanges | None, first: bool, model: str
    ) -> TakenChanges:
        """The rows of the changes in a view.

        :param known: what the commits of the capture table say of them; ``None`` to look at the messages.
        """
        delivery = _delivery(self.source)
        if known is None:
            return take_changes(self.context, events, delivery, view, first, model)
        if known.truncated_at and not first:
            raise truncation_error(delivery, first, model)
        notes = (TRUNCATED.format(delivery.name),) if known.truncated_at else ()
        return TakenChanges(rows_of_events(events, delivery, view, known.truncated_at), notes)

    def _evolution(
        self,
        columns: CapturedColumns,
        before: RecordedTable | None,
        captured: Captured,
        start: int,
        known: TableChanges | None,
        others: Collection[str],
        model: str,
        purpose: PullPurpose,
    ) -> Evolution:
        """What the run does about changes of the table that are not changes of rows."""
        if known is None:
            found = {
                str(one)
                for (one,) in self.context.query(shapes_statement(captured, self.place.dotted, start))
            }
            shapes, truncated = found - {""}, "" in found
        else:
            shapes, truncated = set(known.shapes), bool(known.truncated_at)
        if truncated and self.source.truncation == "fail" and purpose == "consume":
            raise truncation_error(_delivery(self.source), False, model)
        applied = truncated and self.source.truncation == "apply"
        return plan_evolution(self.source, columns, before, shapes, applied, self.writes, others, model)

    def _load_rows(
        self,
        read: CaptureRead | None,
        last_consumed: Mapping[str, Consumed],
        model: str,
        purpose: PullPurpose,
        again: ReadAgain | None = None,
    ) -> Planned:
        """Read the rows of the table, and record a position up to which they have all changes.

        :param again: why, if the model has read the table before.
        """
        last = last_consumed.get(self.upstream.dotted)
        before = None if last is None else recorded_table(last)
        transaction = self.database.begin()
        is_open = False
        try:
            columns = self._resolved(transaction, model)
            seen = _SnapshotPosition(Consumed("", ""), "")
            if read is not None:
                seen = self._seen(read, transaction, columns, before)
            consumed = seen.consumed
            if purpose == "consume" and again is None:
                table = f"the table {self.source.table.table}"
                name = self.source.name
                refuse_renamed(last_consumed, consumed.table_id, model, name, table, "all its rows")
            snapshot = transaction.share() if purpose == "consume" else ""
            view = self._view(transaction, columns, snapshot, purpose)
            is_open = bool(snapshot)
        finally:
            if not is_open:
                transaction.close()
        notes: tuple[str, ...] = ()
        if read is None or again is None:
            sql = _loaded(self.source, columns, view, "''")
        else:
            sql = self._with_deletes(columns, view, read.captured, seen, again)
            notes = (f"The source {self.source.name} is read again as a whole: {again.evolution.note}.",)
        pull = Pull(self.upstream, sql, consumed, True, stage=StagedView(view))
        return Planned(
            pull,
            last,
            () if read is None else read.warnings,
            release=transaction.close if is_open else None,
            notes=notes,
            must_select=must_select(columns.events),
        )

    def _with_deletes(
        self,
        columns: CapturedColumns,
        view: str,
        captured: Captured,
        seen: _SnapshotPosition,
        again: ReadAgain,
    ) -> str:
        """SQL of all rows of the table in a view, and of deletes of other rows."""
        sequence, compared = literal(seen.place), again.evolution.compared
        loaded = _loaded(self.source, columns, view, sequence)
        if compared:
            table = load_keyed(self.context.catalog, self.standing())
            stored = dict(zip(compared, table.key, strict=False))  # the write compares them
            return all_rows_and_deletes(columns, loaded, stored, merge_on_read(table.visible), sequence)
        types = {name: columns.events.columns[name] for name in columns.events.key}
        of_key = replace(columns.events, columns=types, optional=(), unavailable="fail")
        changes = f"{self.source.name.replace('.', '__')}__changes"
        # Later changes are read by the next run.
        rows = unread_statement(captured, self.place.dotted, again.start, position_of(seen.consumed))
        deletes = rows_of_events(of_key, _delivery(self.source), changes)
        sql = all_rows_and_logged_deletes(columns, loaded, deletes)
        return f"WITH {quote(changes)} AS (\n{rows}\n)\n{sql}"

    def _seen(
        self,
        read: CaptureRead,
        transaction: TableTransaction,
        columns: CapturedColumns,
        recorded: RecordedTable | None,
    ) -> _SnapshotPosition:
        """What a model has seen that reads the table in a transaction.

        A commit is in the log before it is visible, which can take long if it waits for a standby. The model
        reads the changes of such a transaction again.
        """
        captured, table = read.captured, self.place.dotted
        end, known = captured.range.end, captured.changes_since(table, captured.range.start)
        place = f"{end:0{PLACE_DIGITS}}"
        if known is None or known.number:
            statement = unseen_statement(captured, table, transaction.unseen())
            ((before, first),) = self.context.query(statement)
            end, place = (end, place) if before is None else (min(end, int(before)), str(first))
        version = columns.recorded(recorded, read.versions.get(self.place))
        return _SnapshotPosition(captured.range.at(end, table, columns.table_id, version), place)

    def _view(
        self, transaction: TableTransaction, columns: CapturedColumns, snapshot: str, purpose: PullPurpose
    ) -> str:
        plan = ReadPlan(columns.read, None, Progress("", None, "", "", ""), changed=True)
        return create_view(
            self.context,
            self.capture.connection(),
            self.database,
            self.source.table,
            transaction,
            plan,
            snapshot,
            purpose,
        )

    def _columns(self, model: str) -> CapturedColumns:
        transaction = self.database.begin()
        try:
            return self._resolved(transaction, model)
        finally:
            transaction.close()

    def _resolved(self, transaction: TableTransaction, model: str) -> CapturedColumns:
        return resolve_columns(self.source, transaction.table, self.place, model)

    def _no_rows(self, events: ChangeEvents) -> str:
        return no_rows(f"no changes of {self.source.name}", {**events.columns, **events.added})


def _other_columns(
    source: CaptureSource, columns: CapturedColumns, known: TableChanges | None
) -> tuple[str, ...]:
    """A warning about changes from before the table's columns changed, for a model that reads them all."""
    version = columns.table.version
    if known is None or version is None or set(known.shapes) <= {shape_of(version.logged)}:
        return ()
    return (
        f"The columns of the table {columns.events.table} have changed since the oldest changes of the "
        f"source {source.name} were captured. Values of these are read by the names that columns had "
        "then. If columns were renamed, check the rows.",
    )


def _are_few(changes: int, scanned: int | None) -> bool:
    """Whether the changes of a table are few.

    :param scanned: the changes of all tables among which they are looked up; ``None`` if unknown.
    """
    return changes <= _FEW_CHANGES and scanned is not None and scanned <= _FEW_SCANNED


def _delivery(source: CaptureSource) -> Delivery:
    at = "concat('position ', CAST(`position` AS STRING))"
    return Delivery(source.name, "`message`", "CAST(NULL AS STRING)", at, {})


def _loaded(source: CaptureSource, columns: CapturedColumns, view: str, sequence: str) -> str:
    """SQL of the rows of the table, with the columns of changes.

    All changes since the table was read will follow, so the last one of a key decides.

    :param sequence: SQL of the order of these rows. At first, an empty one: less than that of each change.
    """
    made = {
        SEQUENCE: sequence,
        "_source_operation": "'read'",
        "_action": "'U'",
    }
    added = [
        f"{made.get(name, f'CAST(NULL AS {kind})')} AS {quote(name)}"
        for name, kind in columns.events.added.items()
    ]
    values = [
        f"CAST({value_of(source.table, one, quote(f'c{at}'))} AS {columns.events.columns[one.column.name]}) "
        f"AS {quote(one.column.name)}"
        for at, one in enumerate(columns.read)
    ]
    listed = ",\n  ".join([*values, *added])
    return f"SELECT\n  {listed}\nFROM {quote(view)}"


__all__ = ["CapturePlanner"]
