"""What the next run of a model would read of a captured table, and how late it is; without Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.databases.api import Table, TableName
from dbt_arctic.databases.change_log import ChangeLog, LogState
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed, of_relations
from dbt_arctic.sources.capture_changes import another_table, changes_lost, waiting_changes, why_lost
from dbt_arctic.sources.capture_evolution import Evolution, plan_evolution, require_old_keys
from dbt_arctic.sources.capture_messages import TableChanges
from dbt_arctic.sources.capture_settings import CapturedColumns, CaptureSource, resolve_columns, upstream_of
from dbt_arctic.sources.capture_table import Captured, load_capture, position_of, recorded_table
from dbt_arctic.sources.change_pull import table_truncated
from dbt_arctic.sources.database_plan import Writes
from dbt_arctic.sources.unread import Positions, RefreshSize, Unread


@dataclass(frozen=True)
class CapturePreview:
    """The next run of a model, as far as one captured table is concerned.

    :param reads_all: whether the model would read all rows of the table.
    :param changes: how many changes it would read.
    :param kept_bytes: how much of its log the server keeps only for this reader.
    :param problem: why the run would fail; empty if nothing is in its way.
    :param table_changes: what has changed in the table apart from its rows.
    """

    model: str
    source: str
    reads_all: bool
    changes: int
    kept_bytes: int
    problem: str = ""
    table_changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogContents:
    """What a log has that was not captured yet.

    :param kept_bytes: how much of it the server keeps only for this reader.
    :param changes: by table.
    :param followed: the tables of which the log has all changes.
    :param lost: why it lacks changes after those that were captured; empty if it has them.
    :param end: its end.
    :param shown: how the database writes a position.
    :param described: tables of the database that were looked up already.
    """

    kept_bytes: int
    changes: Mapping[str, TableChanges]
    followed: frozenset[TableName]
    lost: str = ""
    end: int = 0
    shown: Callable[[int], str] = str
    described: dict[TableName, Table] = field(default_factory=dict)


@dataclass(frozen=True)
class CapturedTable:
    """A captured table, and where its changes are.

    :param name: of the capture table.
    :param table: its name in the database.
    :param describe: gives the table as the database has it now.
    :param logs: the contents of logs that were read already, by capture table. Many tables share one.
    """

    catalog: CatalogReader
    source: CaptureSource
    name: Name
    table: TableName
    open_log: Callable[[], AbstractContextManager[ChangeLog]]
    describe: Callable[[], Table]
    logs: MutableMapping[Name, LogContents] = field(default_factory=dict)

    def preview(self, model: str, consumed: Mapping[str, Consumed], writes: Writes) -> CapturePreview:
        """What the next run would read.

        :param consumed: what the model has consumed, by upstream.
        :param writes: how the model writes what it reads.
        """
        name = upstream_of(self.source).dotted
        last, others = consumed.get(name), {one for one in of_relations(consumed) if one != name}
        reads_all = last is None and self.source.loads
        evolution, kept = Evolution(), 0
        try:
            captured = self.captured()
            contents = self._contents(captured)
            kept = contents.kept_bytes
            found = self._unread(captured, contents, model, last)
            if last is not None:
                evolution = self._evolution(found, last, writes, others, model)
            elif not reads_all:
                columns = self._columns(model)
                if {*found.table_ids} <= {columns.table_id}:
                    require_old_keys(self.source, columns.events, found.shapes, model)
        except ArcticError as error:
            return CapturePreview(model, self.source.name, reads_all, 0, kept, error.what)
        reads_all = reads_all or evolution.reads_again
        texts = tuple(one.text for one in evolution.changes)
        changes = 0 if reads_all else found.number
        return CapturePreview(model, self.source.name, reads_all, changes, kept, table_changes=texts)

    def _evolution(
        self, found: TableChanges, last: Consumed, writes: Writes, others: Collection[str], model: str
    ) -> Evolution:
        """What the next run does about changes of the table that are not changes of rows."""
        if found.truncated_at and self.source.truncation == "fail":
            raise table_truncated(self.source.name, model)
        columns, before, truncated = self._columns(model), recorded_table(last), bool(found.truncated_at)
        return plan_evolution(self.source, columns, before, found.shapes, truncated, writes, others, model)

    def _columns(self, model: str) -> CapturedColumns:
        return resolve_columns(self.source, self.describe(), self.table, model)

    def unread(
        self, model: str, last: Consumed | None, read_ms: int | None, with_full_refresh: bool = False
    ) -> Unread:
        """What a model has not read.

        :param last: what the model has consumed of the table.
        :param read_ms: the time of the commit that consumed it, since when a change has been waiting at most
            if it is not known when it was made.
        :param with_full_refresh: whether to look up what a full refresh would read.
        """
        name = self.source.name
        try:
            captured = self.captured()
            contents = self._contents(captured)
            found = self._unread(captured, contents, model, last)
        except ArcticError as error:
            return Unread(name, "change", problem=error.what)
        read = "" if last is None else contents.shown(position_of(last))
        since = found.oldest_ms or (read_ms if found.number else None)
        positions = Positions(read, contents.shown(contents.end))
        full_refresh = self._full_refresh(captured, contents) if with_full_refresh else None
        return Unread(name, "change", found.number, since, positions=positions, full_refresh=full_refresh)

    def _full_refresh(self, captured: Captured | None, contents: LogContents) -> RefreshSize:
        """What a full refresh would read: the rows of the table, or all changes that are there."""
        if self.source.loads:
            try:
                if self.table not in contents.described:
                    contents.described[self.table] = self.describe()
            except ArcticError:  # the lag is known
                return RefreshSize("row")
            return RefreshSize("row", contents.described[self.table].rows or None)
        table = self.table.dotted
        waiting = contents.changes.get(table, TableChanges())
        if captured is None:
            return RefreshSize("change", waiting.number)
        known = captured.changes_since(table, captured.range.start)
        return RefreshSize("change", None if known is None else known.number + waiting.number)

    def captured(self) -> Captured | None:
        """The capture table; ``None`` if nothing was captured yet."""
        found = load_capture(self.catalog, self.name, self.source.name)
        return None if found is None else found[1]

    def _contents(self, captured: Captured | None) -> LogContents:
        """What the log has.

        :raises ConfigError: it does not have all changes of the table.
        """
        if self.name not in self.logs:
            with self.open_log() as log:
                state = log.state()
                lost = "" if captured is None else self._lost(log, state, captured)
                waiting = waiting_changes(log, state, None if lost else captured)
                self.logs[self.name] = LogContents(
                    state.kept_bytes, waiting, log.followed(), lost, state.current, log.shown
                )
        contents = self.logs[self.name]
        if self.table not in contents.followed:
            with self.open_log() as log:
                raise log.not_followed(self.table)
        return contents

    def _lost(self, log: ChangeLog, state: LogState, captured: Captured) -> str:
        """Why the log lacks changes after the captured ones; empty if it has them, or a run takes them."""
        if not why_lost(captured.range, state, log) or not log.try_lock():
            return ""
        now = self.captured()  # a run may have ended in between
        return "" if now is None else why_lost(now.range, log.state(), log)

    def _unread(
        self,
        captured: Captured | None,
        contents: LogContents,
        model: str,
        last: Consumed | None,
    ) -> TableChanges:
        """The changes that a model has not read, in the capture table and in the log.

        :raises VersionUnavailable: some are in neither, and the model does not start again.
        """
        table = self.table.dotted
        found = contents.changes.get(table, TableChanges())
        if contents.lost and last is not None:
            raise changes_lost(self.source.name, model, contents.lost)
        if captured is None or contents.lost:
            return found
        start = captured.range.start
        if last is not None:
            start = captured.require_unread(last, table, self.source.name, model)
        known = captured.changes_since(table, start)
        found = found if known is None else found.plus(known)
        own = "" if last is None else last.table_id.removeprefix(captured.range.table_key(table))
        if last is not None and {*found.table_ids} - {own}:
            raise another_table(self.source.name, model, table)
        return found


__all__ = ["CapturePreview", "CapturedTable", "LogContents"]
