"""Takes the changes of a database's log into a capture table, each exactly once.

A commit of the capture table has the changes and the position up to which it has them. Only then may the
server forget them. If the run ends in between, the next one finds the changes in the log again, and leaves
out those that the table has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from types import MappingProxyType
from typing import NamedTuple

from dbt_arctic.databases.api import TableName, TableVersion
from dbt_arctic.databases.change_log import ChangeLog, LoggedChange, LogState
from dbt_arctic.engine.api import Connection
from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.refresh.plain import begin_plain_write, execute_plain_write
from dbt_arctic.sources.capture_messages import TableChanges, changes_by_table
from dbt_arctic.sources.capture_queries import between_statement
from dbt_arctic.sources.capture_settings import CaptureSource
from dbt_arctic.sources.capture_table import (
    COLUMNS,
    LOG_BEGAN_AGAIN,
    Captured,
    CapturedRange,
    append_statement,
    as_rows,
    create_statement,
    cutoff_of,
    entry,
    load_capture,
    remove_statements,
    removed_statement,
    tables_property,
)
from dbt_arctic.store.context import Context
from dbt_arctic.store.writer_lock import writer_lock

_MESSAGES_OF_COMMIT = 100_000
"""After so many messages, a commit takes no further transaction. They are in memory until then."""
_MUCH_KEPT_BYTES = 1024**3
"""If the server keeps so much of its log for a slot, the run warns."""
_MOST_FOREIGN_BYTES = 64 * 1024 * 1024
"""How much of the log may have passed without a change of a followed table before the slot moves on."""


class CaptureRead(NamedTuple):
    """What the models of an invocation read: the capture table, up to the end that it has.

    :param warnings: what the user should know of the log.
    :param versions: the columns of the tables before the changes were taken; empty if none were. What the
        database has later may not be the columns of later changes.
    """

    captured: Captured
    warnings: tuple[str, ...] = ()
    versions: Mapping[TableName, TableVersion] = MappingProxyType({})


class _LastInvocation(NamedTuple):
    """What an invocation has captured.

    :param tables: those of which the log has all changes.
    """

    invocation: str
    tables: frozenset[TableName]
    captured: Captured
    versions: Mapping[TableName, TableVersion]


_last_invocations: dict[Name, _LastInvocation] = {}
"""By capture table, the last invocation of this process."""


@dataclass(frozen=True)
class Capture:
    """A capture table, and what is needed to append to it.

    :param connection: the session of the context.
    :param open_log: opens the log of the source.
    :param invocation: an id of the dbt command. Its models read up to the same position.
    """

    context: Context
    connection: Callable[[], Connection]
    open_log: Callable[[], AbstractContextManager[ChangeLog]]
    source: CaptureSource
    name: Name
    invocation: str

    def take(self, table: TableName, model: str, starts_again: bool) -> CaptureRead:
        """Take the changes that the log has now, unless this invocation has done so already.

        :param table: whose changes the model reads.
        :param model: for errors.
        :param starts_again: whether the model has read nothing yet, so that it misses no changes.
        :returns: the models of an invocation read up to the same position.
        :raises ConfigError: the log does not have all changes of the table.
        :raises VersionUnavailable: changes are lost, and the model does not start again.
        :raises ConcurrentRun: another run took the same changes at the same time. Nothing was written.
        """
        with writer_lock(self.name):
            last = _last_invocations.get(self.name)
            if last is not None and last.invocation == self.invocation and table in last.tables:
                return CaptureRead(last.captured, versions=last.versions)
            with self.open_log() as log:
                tables = self._followed(log, table)
                read = self._take_all(log, tables, model, starts_again)
            _last_invocations[self.name] = _LastInvocation(
                self.invocation, tables, read.captured, read.versions
            )
            return read

    def take_visible(self, table: TableName, model: str, before: Captured, at: datetime) -> CaptureRead:
        """Take the changes up to a position after each one that a transaction sees now.

        The other models of the invocation still read up to where ``take`` has ended.

        :param before: the capture table before the transaction began.
        :param at: when it began. Changes that are taken later are not made before.
        :raises VersionUnavailable: changes since then are lost.
        """
        with writer_lock(self.name), self.open_log() as log:
            log.write_visible()
            tables, seen_ms = self._followed(log, table), int(at.timestamp() * 1000)
            read = self._take_all(log, tables, model, starts_again=False, seen_ms=seen_ms)
        last = before.range.at(before.range.end, table.dotted, "")
        read.captured.require_unread(last, table.dotted, self.source.name, model)
        return read

    def _followed(self, log: ChangeLog, table: TableName) -> frozenset[TableName]:
        tables = log.followed()
        if table not in tables:
            raise log.not_followed(table)
        return tables

    def _take_all(
        self, log: ChangeLog, tables: frozenset[TableName], model: str, starts_again: bool, seen_ms: int = 0
    ) -> CaptureRead:
        log.lock()
        versions = log.versions()
        state, captured = log.state(), self._load()
        if captured is None or (lost := self._why_lost(captured, state, log)):
            if captured is not None and not starts_again:
                raise changes_lost(self.source.name, model, lost)
            captured = self._begin(state, log, captured, tables)
        captured = self._without_old(captured)
        try:
            captured = self._take_until(log, state, tables, captured, seen_ms)
        except VersionUnavailable:
            # What cannot be read would be in the way of each later run.
            if not starts_again or state.begin <= captured.range.end:
                raise
            captured = self._begin(state, log, self.load(), tables)
            captured = self._take_until(log, state, tables, captured, seen_ms)
        return CaptureRead(captured, _much_kept(log, state), versions)

    def _why_lost(self, captured: Captured, state: LogState, log: ChangeLog) -> str:
        """Why changes after the captured ones are not in the log; empty if they are.

        A slot that has not moved since a commit may be that of an ended run, or one of a restored server,
        where other transactions have these positions. It still has them, so they are compared.
        """
        range_ = captured.range
        lost = why_lost(range_, state, log)
        is_compared = not (lost or range_.mark) and state.oldest < range_.end
        if not is_compared or max(range_.removed.values(), default=0) > state.oldest:
            return lost
        changes, last, _ = log.changes(state.oldest, range_.end, _MESSAGES_OF_COMMIT)
        until = min(last or range_.end, range_.end)
        there = {
            (one.end, one.transaction, one.position, one.at_ms)
            for one in changes
            if state.oldest < one.end <= until
        }
        if not there and captured.rows_since(state.oldest) == 0:
            return ""
        rows = self.context.query(between_statement(captured, state.oldest, until))
        return "" if {tuple(map(int, row)) for row in rows} == there else LOG_BEGAN_AGAIN

    def _take_until(
        self,
        log: ChangeLog,
        state: LogState,
        tables: frozenset[TableName],
        captured: Captured,
        seen_ms: int,
    ) -> Captured:
        """Take the changes up to the end of the log.

        :param seen_ms: later changes are not made before.
        """
        followed, is_all = _dotted(tables), False
        is_added = not followed <= captured.range.tables
        if is_added:
            log.wait_for_prepared()
        while not is_all:
            changes, last, is_all = log.changes(captured.range.end, state.current, _MESSAGES_OF_COMMIT)
            new, at_ms = [one for one in changes if one.end > captured.range.end], captured.range.at_ms
            if state.at_ms:
                new = in_order_of_time(new, at_ms, state.at_ms)
                at_ms = max(new[-1].at_ms if new else at_ms, seen_ms if is_all else 0)
            end, following = max(last, captured.range.end), captured.range.following(followed)
            # The slot moves in any case if there is more behind these. What a table lacks is recorded.
            is_due = not is_all or end - captured.range.end > _MOST_FOREIGN_BYTES
            if new or is_due or is_added or at_ms > captured.range.at_ms:
                following = replace(following, end=end, mark=log.mark(end), at_ms=at_ms)
                captured = self._append(captured, new, following)
                is_added = False
            if changes or captured.range.end == end:
                log.advance(captured.range.end)
        return captured

    def load(self) -> Captured | None:
        """The capture table; ``None`` if nothing was captured yet."""
        found = load_capture(self.context.catalog, self.name, self.source.name)
        return None if found is None else found[1]

    def _load(self) -> Captured | None:
        """The same, and the table exists afterwards."""
        found = load_capture(self.context.catalog, self.name, self.source.name)
        if found is None:
            self.context.run("create_capture", create_statement(self.name, self.source.name))
            return None
        return found[1]

    def _begin(
        self, state: LogState, log: ChangeLog, before: Captured | None, tables: frozenset[TableName]
    ) -> Captured:
        """Begin at the position of the log, without rows from before."""
        begin = state.begin
        log.wait_for_prepared()
        # What models have read of a log from before is no position in this one.
        origin = "" if before is None else str(self.context.new_txn())
        range_ = CapturedRange(
            state.identity,
            begin,
            begin,
            self._today(),
            tables=_dotted(tables),
            mark=log.mark(begin),
            origin=origin,
        )
        self._commit(before, range_, remove_statements)
        return self._reloaded()

    def _append(self, captured: Captured, changes: list[LoggedChange], range_: CapturedRange) -> Captured:
        view = f"{self.name.identifier}_{self.context.new_txn()}"
        self.connection().create_temp_view(view, COLUMNS, as_rows(changes))
        try:
            self._commit(
                captured,
                range_,
                lambda target: [append_statement(target, view, self._today())],
                tables_property(changes),
            )
        finally:
            self.context.run("drop_staging", f"DROP VIEW IF EXISTS {quote(view)}")
        return self._reloaded()

    def _without_old(self, captured: Captured) -> Captured:
        """Remove what is older than the retention. Whole days are removed without reading them."""
        cutoff = cutoff_of(self._today(), self.source.retention_days)
        if captured.range.oldest >= cutoff:
            return captured
        found = self.context.query(removed_statement(self.name, cutoff))
        removed = {str(table): int(position) for table, position in found}
        range_ = captured.range.without(cutoff, removed)
        self._commit(captured, range_, lambda target: remove_statements(target, cutoff))
        return self._reloaded()

    def _commit(
        self,
        before: Captured | None,
        range_: CapturedRange,
        statements: Callable[[str], list[str]],
        notes: dict[str, str] | None = None,
    ) -> None:
        """Publish one commit, if the capture table still has the range that it had before."""
        write = begin_plain_write(
            self.context,
            self.name,
            statements=1,
            last_consumed={} if before is None else entry(before.range),
            consumed=entry(range_),
        )
        assert write.branch is not None
        execute_plain_write(self.context, write, statements(self.name.branch(write.branch)), notes)

    def _reloaded(self) -> Captured:
        captured = self.load()
        assert captured is not None, "a commit records the range"
        return captured

    def _today(self) -> date:
        return datetime.fromtimestamp(self.context.now_ms() / 1000, timezone.utc).date()


def in_order_of_time(changes: Iterable[LoggedChange], since_ms: int, until_ms: int) -> list[LoggedChange]:
    """Changes whose times do not go back.

    The time of a change in the log of MariaDB is when a statement began, which may have waited for the change
    before; or what a session has set.

    :param since_ms: before the first one.
    :param until_ms: after the last one.
    """
    made = []
    for one in changes:
        since_ms = max(since_ms, min(one.at_ms, until_ms))
        made.append(one if one.at_ms == since_ms else one._replace(at_ms=since_ms))
    return made


def waiting_changes(log: ChangeLog, state: LogState, captured: Captured | None) -> dict[str, TableChanges]:
    """The changes that the log has and the capture table lacks, by table; at most those of one commit.

    None while a run takes them.
    """
    if not log.try_lock():
        return {}
    end = state.begin if captured is None else max(captured.range.end, state.oldest)
    changes = log.changes(end, state.current, _MESSAGES_OF_COMMIT).changes
    return changes_by_table(one for one in changes if one.end > end)


def _dotted(tables: frozenset[TableName]) -> frozenset[str]:
    return frozenset(one.dotted for one in tables)


def _much_kept(log: ChangeLog, state: LogState) -> tuple[str, ...]:
    """A warning about a slot that keeps much of the log."""
    if state.kept_bytes < _MUCH_KEPT_BYTES:
        return ()
    return (
        f"Before this run, PostgreSQL kept {state.kept_bytes / 1024**3:.1f} GiB of its log for the "
        f"slot {log.name}. It keeps more if runs are further apart, or if a transaction is open for long. "
        "To limit it, set max_slot_wal_keep_size; a slot that exceeds this loses changes.",
    )


def changes_lost(source: str, model: str, why: str) -> VersionUnavailable:
    """The error of a model of a source whose log lacks changes that were not captured."""
    return VersionUnavailable(
        f"changes of the source {source} are lost",
        where=model,
        why=why,
        fix=f"load the table again: dbt run --full-refresh --select {model}. The other models of the source "
        "need the same",
    )


def another_table(source: str, model: str, table: str) -> VersionUnavailable:
    """The error of a model of a table if the log has changes of another one that had its name."""
    why = f"another table was called {table} for a while, and the log has its changes"
    return changes_lost(source, model, why)


def why_lost(range_: CapturedRange, state: LogState, log: ChangeLog) -> str:
    """Why changes after a range are not in the log; empty if they are."""
    if range_.identity != state.identity:
        return f"they were captured from {range_.identity}, and the log is that of {state.identity}"
    if state.oldest > range_.end:
        return log.why_removed(range_.end, state.oldest)
    if state.current < range_.end or log.mark(range_.end) != range_.mark:
        return LOG_BEGAN_AGAIN
    return ""


__all__ = [
    "Capture",
    "CaptureRead",
    "another_table",
    "changes_lost",
    "in_order_of_time",
    "waiting_changes",
    "why_lost",
]
