"""Reads all rows of a captured table, and records a position up to which they have all changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import NamedTuple

from dbt_arctic.databases.api import Database, TableName, TableTransaction, columns_shape, shape_of
from dbt_arctic.errors import ConcurrentRun
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.refresh.pull import Pull, StagedView
from dbt_arctic.sources.capture_changes import Capture, CaptureRead
from dbt_arctic.sources.capture_evolution import (
    Evolution,
    all_rows_and_deletes,
    all_rows_and_logged_changes,
    all_rows_and_logged_deletes,
    deletes_by_truncations,
)
from dbt_arctic.sources.capture_queries import (
    later_seen_statement,
    place_after,
    unread_statement,
    unseen_statement,
)
from dbt_arctic.sources.capture_settings import CapturedColumns, CaptureSource, resolve_columns, upstream_of
from dbt_arctic.sources.capture_table import Captured, position_of, recorded_table
from dbt_arctic.sources.change_settings import SEQUENCE, must_select
from dbt_arctic.sources.change_sql import Delivery, rows_of_events
from dbt_arctic.sources.column_changes import RecordedTable
from dbt_arctic.sources.cursor import Progress
from dbt_arctic.sources.database_columns import value_of
from dbt_arctic.sources.database_plan import ReadPlan, Writes
from dbt_arctic.sources.database_pull import create_view
from dbt_arctic.sources.source_planner import Planned, PullPurpose, refuse_renamed
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import load_keyed

_ATTEMPTS = 10
"""How often a transaction begins before the run gives up."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
"""How long the run waits before it begins one again. Each pause is twice as long as the one before."""

_READ_LATER = (
    "The rows of the table {} are read by other connections, which see changes that are made until then. "
    "These changes show twice: in the rows, and with the next run."
)


class ReadAgain(NamedTuple):
    """Why a model reads all rows of a table that it has read before.

    :param start: the position up to which it has read the changes.
    :param columns: of the table when this was decided.
    """

    evolution: Evolution
    start: int
    columns: CapturedColumns


class _SnapshotPosition(NamedTuple):
    """What a transaction that reads all rows has seen.

    :param consumed: what the model has consumed.
    :param place: text that sorts after each change that the rows have, and before each one to be read.
    :param at: a time that is not after any change to be read.
    :param is_split: whether the rows have a change that comes after one that they do not have.
    """

    consumed: Consumed
    place: str
    at: datetime
    is_split: bool = False


class _Opened(NamedTuple):
    """A transaction that reads the table, and what the capture table has then."""

    transaction: TableTransaction
    columns: CapturedColumns
    read: CaptureRead | None
    seen: _SnapshotPosition


@dataclass(frozen=True)
class FollowedTable:
    """A table whose changes are captured.

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


class TableSnapshot(FollowedTable):
    """All rows of a table."""

    def plan(
        self,
        read: CaptureRead | None,
        last_consumed: Mapping[str, Consumed],
        model: str,
        purpose: PullPurpose,
        again: ReadAgain | None = None,
    ) -> Planned:
        """Plan a run that reads all rows.

        :param read: the capture table; ``None`` if nothing was captured yet.
        :param again: why, if the model has read the table before.
        """
        upstream = self.upstream
        last = last_consumed.get(upstream.dotted)
        is_exact, before = purpose == "consume" and self.writes.keeps_changes, read
        (transaction, columns, read, seen), is_open = self._open(read, last, model, is_exact), False
        try:
            if is_exact and again is not None and before is not None and read is not None:
                self._require_same_table(before.captured, read.captured, columns, again, model)
            if purpose == "consume" and again is None:
                table, name = f"the table {self.source.table.table}", self.source.name
                key = seen.consumed.table_id
                refuse_renamed(last_consumed, key, model, name, table, "all its rows")
            snapshot = transaction.share() if purpose == "consume" else ""
            view = self._view(transaction, columns, snapshot, purpose)
            is_open = bool(snapshot)
        finally:
            if not is_open:
                transaction.close()
        notes: tuple[str, ...] = ()
        if read is None or again is None:
            sql = _loaded(self.source, columns, view, "''", seen.at)
        else:
            sql = self._with_changes(columns, view, read.captured, seen, again)
            notes = (f"The source {self.source.name} is read again as a whole: {again.evolution.note}.",)
        warnings = () if read is None else read.warnings
        if is_exact and not snapshot:
            warnings = (*warnings, _READ_LATER.format(self.place.dotted))
        return Planned(
            Pull(upstream, sql, seen.consumed, True, stage=StagedView(view)),
            last,
            warnings,
            release=transaction.close if is_open else None,
            notes=notes,
            must_select=must_select(columns.events),
        )

    def _open(self, read: CaptureRead | None, last: Consumed | None, model: str, is_exact: bool) -> _Opened:
        """Begin a transaction, and look up what it sees.

        Where each change shows, those that the transaction sees must not be read again. So they are captured,
        and the transaction sees all up to a position, and none after it.

        :param is_exact: whether each change shows.
        :raises ConcurrentRun: there is no such position, because a commit that is in the log stays invisible.
        """
        before = None if last is None else recorded_table(last)
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(min(_FIRST_PAUSE_S * 2 ** (attempt - 1), _LONGEST_PAUSE_S))
            transaction = self.database.begin()
            try:
                # Before the capture, so that each change that is not captured is made later.
                at = datetime.fromisoformat(transaction.time()).replace(tzinfo=timezone.utc)
                columns = resolve_columns(self.source, transaction.table, self.place, model)
                if is_exact:
                    assert read is not None, "a run that consumes has captured"
                    # Without the capture before, this one could begin behind what the transaction sees.
                    read = self.capture.take_visible(self.place, model, read.captured, at)
                seen = self._seen(read, transaction, columns, before, at)
            except BaseException:
                transaction.close()
                raise
            if not (is_exact and seen.is_split):
                return _Opened(transaction, columns, read, seen)
            transaction.close()
        raise ConcurrentRun(
            f"the table {self.place.dotted} cannot be read as of one position of the log",
            where=model,
            why="a commit is in the log, and other transactions do not see its rows yet. It may wait for a "
            "standby",
            fix="run again when the standby answers; nothing was written",
        )

    def _require_same_table(
        self, before: Captured, now: Captured, columns: CapturedColumns, again: ReadAgain, model: str
    ) -> None:
        """Require that the table is the one for which it was decided what to do.

        :raises ConcurrentRun: a statement has changed or truncated it in between.
        """
        table, version = self.place.dotted, columns.table.version
        since = now.changes_since(table, before.range.end)
        is_same = columns.events == again.columns.events and version == again.columns.table.version
        current = {shape_of(version.logged)} if version is not None else set()
        shapes = set() if since is None else {columns_shape(one) for one in since.shapes}
        if since is None or since.truncated_at or shapes - current or not is_same:
            raise ConcurrentRun(
                f"the table {table} was changed while its rows were to be read",
                where=model,
                why="a statement such as ALTER TABLE has ended in between",
                fix="run again; nothing was written",
            )

    def _seen(
        self,
        read: CaptureRead | None,
        transaction: TableTransaction,
        columns: CapturedColumns,
        recorded: RecordedTable | None,
        at: datetime,
    ) -> _SnapshotPosition:
        """What a model has seen that reads the table in a transaction.

        A commit is in the log before it is visible, which can take long if it waits for a standby. The model
        reads the changes of such a transaction again.

        :param at: when the transaction began.
        """
        if read is None:
            return _SnapshotPosition(Consumed("", ""), "", at)
        captured, table, is_split = read.captured, self.place.dotted, False
        end, known = captured.range.end, captured.changes_since(table, captured.range.start)
        place = place_after(self.source.kind, end)
        if known is None or known.number:
            unseen = transaction.unseen()
            ((before, first, made_ms),) = self.context.query(unseen_statement(captured, table, unseen))
            if before is not None:
                end, place = min(end, int(before)), str(first)
                at = min(at, datetime.fromtimestamp(int(made_ms) / 1000, timezone.utc))
                if self.writes.keeps_changes:
                    is_split = bool(self.context.query(later_seen_statement(captured, table, unseen, end)))
        version = columns.recorded(recorded, read.versions.get(self.place))
        consumed = captured.range.at(end, table, columns.table_id, version)
        return _SnapshotPosition(consumed, place, at, is_split)

    def _with_changes(
        self,
        columns: CapturedColumns,
        view: str,
        captured: Captured,
        seen: _SnapshotPosition,
        again: ReadAgain,
    ) -> str:
        """SQL of all rows of the table in a view, and of deletes of other rows, or all changes before."""
        sequence, compared = literal(seen.place), again.evolution.compared
        loaded = _loaded(self.source, columns, view, sequence, seen.at)
        keys, stored = self._stored(compared) if compared else ({}, "")
        if compared and not self.writes.keeps_changes:
            return all_rows_and_deletes(columns, loaded, keys, stored, sequence)
        changes = f"{self.source.name.replace('.', '__')}__changes"
        # Later changes are read by the next run.
        rows = unread_statement(captured, self.place.dotted, again.start, position_of(seen.consumed))
        if self.writes.keeps_changes:
            events = again.evolution.applied_to(columns).events
            logged = [rows_of_events(events, delivery_of(self.source), changes)]
            if compared:
                logged.append(deletes_by_truncations(columns, quote(changes), logged[0], keys, stored))
            sql = all_rows_and_logged_changes(loaded, *logged)
        else:
            types = {name: columns.events.columns[name] for name in columns.events.key}
            of_key = replace(columns.events, columns=types, optional=(), unavailable="fail")
            deletes = rows_of_events(of_key, delivery_of(self.source), changes)
            sql = all_rows_and_logged_deletes(columns, loaded, deletes)
        return f"WITH {quote(changes)} AS (\n{rows}\n)\n{sql}"

    def _stored(self, compared: Sequence[str]) -> tuple[Mapping[str, str], str]:
        """The stored columns by those of the table, and SQL of the stored rows."""
        table = load_keyed(self.context.catalog, self.standing())
        # The write compares them. A row of a history has another column in its key.
        return dict(zip(compared, table.key, strict=False)), merge_on_read(table.visible)

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


def delivery_of(source: CaptureSource) -> Delivery:
    """How the messages of a captured table are read."""
    at = "concat('position ', CAST(`position` AS STRING))"
    return Delivery(source.name, "`message`", "CAST(NULL AS STRING)", at, {})


def _loaded(source: CaptureSource, columns: CapturedColumns, view: str, sequence: str, at: datetime) -> str:
    """SQL of the rows of the table, with the columns of changes.

    All changes since the table was read will follow, so the last one of a key decides.

    :param sequence: SQL of the order of these rows. At first, an empty one: less than that of each change.
    :param at: when they were read.
    """
    made = {
        SEQUENCE: sequence,
        "_source_operation": "'read'",
        "_source_changed_at": f"TIMESTAMP'{at:%Y-%m-%d %H:%M:%S.%f}Z'",
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


__all__ = ["FollowedTable", "ReadAgain", "TableSnapshot", "delivery_of"]
