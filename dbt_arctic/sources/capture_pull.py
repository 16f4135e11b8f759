"""Plans what a model reads of a table that is captured from the log of its database."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dbt_arctic.databases.api import columns_shape, shape_of
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.version import Consumed, of_relations
from dbt_arctic.refresh.pull import Pull, StagedView
from dbt_arctic.sources.capture_changes import CaptureRead, another_table
from dbt_arctic.sources.capture_evolution import Evolution, plan_evolution, require_old_keys
from dbt_arctic.sources.capture_messages import TableChanges
from dbt_arctic.sources.capture_queries import shapes_statement, unread_statement
from dbt_arctic.sources.capture_settings import CapturedColumns, CaptureSource, resolve_columns
from dbt_arctic.sources.capture_snapshot import FollowedTable, ReadAgain, TableSnapshot, delivery_of
from dbt_arctic.sources.capture_table import Captured, recorded_table
from dbt_arctic.sources.change_pull import TRUNCATED, TakenChanges, take_changes, truncation_error
from dbt_arctic.sources.change_settings import ChangeEvents, must_select
from dbt_arctic.sources.change_sql import rows_of_events
from dbt_arctic.sources.column_changes import RecordedTable
from dbt_arctic.sources.source_planner import Planned, PullPurpose, dropped_on_error, no_rows

_FEW_CHANGES, _FEW_SCANNED = 5_000, 50_000
"""The most changes that are read without generated code, which saves about 0.1 s of a statement."""


class CapturePlanner(FollowedTable):
    """Plans what a model reads of a table.

    The first run reads the rows of the table, and later ones the changes since.
    """

    @property
    def _snapshot(self) -> TableSnapshot:
        return TableSnapshot(self.capture, self.database, self.place, self.writes, self.standing)

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
            return self._snapshot.plan(taken, last_consumed, model, purpose)
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
        own = ""
        if known is not None and {*known.table_ids} <= {found.table_id}:
            shapes = {*known.shapes, *([""] if known.truncated_at else [])}
        else:
            known = None  # what the commits say may be of another table of this name as well
            shapes, has_others = self._shapes(captured, start, found.table_id)
            if has_others and last is not None:
                raise another_table(self.source.name, model, table)
            own = found.table_id if has_others else ""
        if last is not None:
            others = {one for one in of_relations(last_consumed) if one != name.dotted}
            evolution = self._evolution(found, before, shapes, others, model, purpose)
            if evolution.reads_again:
                again = ReadAgain(evolution, start, found)
                return self._snapshot.plan(read, last_consumed, model, purpose, again)
            found = evolution.applied_to(found)
        else:
            require_old_keys(self.source, found.events, shapes, model)
            warnings = (*warnings, *_other_columns(self.source, found, known))
        columns = found.events
        if last is not None and known is not None and not known.number:
            return Planned(Pull(name, self._no_rows(columns), last, False), last, warnings)
        view = f"{self.source.name.replace('.', '__')}__pull_{self.context.new_txn()}"
        rows_read = unread_statement(captured, table, start, None, own)
        self.context.run("stage", f"CREATE OR REPLACE TEMPORARY VIEW {quote(view)} AS\n{rows_read}")
        recorded = found.recorded(before, read.versions.get(self.place))
        consumed = captured.range.at(captured.range.end, table, found.table_id, recorded)
        stage = StagedView(view)
        if purpose != "consume":
            rows = rows_of_events(columns, delivery_of(self.source), view)
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
        delivery = delivery_of(self.source)
        if known is None:
            return take_changes(self.context, events, delivery, view, first, model)
        if known.truncated_at and not first:
            raise truncation_error(delivery, first, model)
        notes = (TRUNCATED.format(delivery.name),) if known.truncated_at else ()
        return TakenChanges(rows_of_events(events, delivery, view, known.truncated_at), notes)

    def _shapes(self, captured: Captured, start: int, own: str) -> tuple[set[str], bool]:
        """The shapes of the changes after a position, and whether others had the name of the table.

        An empty shape is that of a truncation.

        :param own: the id of the table.
        """
        rows = self.context.query(shapes_statement(captured, self.place.dotted, start))
        shapes = {str(shape) for shape, table_id in rows if table_id in (own, "")}
        return shapes, any(table_id not in (own, "") for _, table_id in rows)

    def _evolution(
        self,
        columns: CapturedColumns,
        before: RecordedTable | None,
        shapes: Collection[str],
        others: Collection[str],
        model: str,
        purpose: PullPurpose,
    ) -> Evolution:
        """What the run does about changes of the table that are not changes of rows.

        :param shapes: of the changes; an empty one is that of a truncation.
        """
        truncated = "" in shapes
        if truncated and self.source.truncation == "fail" and purpose == "consume":
            raise truncation_error(delivery_of(self.source), False, model)
        applied = truncated and self.source.truncation == "apply"
        of_rows = {*shapes} - {""}
        return plan_evolution(self.source, columns, before, of_rows, applied, self.writes, others, model)

    def _columns(self, model: str) -> CapturedColumns:
        transaction = self.database.begin()
        try:
            return resolve_columns(self.source, transaction.table, self.place, model)
        finally:
            transaction.close()

    def _no_rows(self, events: ChangeEvents) -> str:
        return no_rows(f"no changes of {self.source.name}", {**events.columns, **events.added})


def _other_columns(
    source: CaptureSource, columns: CapturedColumns, known: TableChanges | None
) -> tuple[str, ...]:
    """A warning about changes from before the table's columns changed, for a model that reads them all."""
    version = columns.table.version
    if known is None or version is None or {*map(columns_shape, known.shapes)} <= {shape_of(version.logged)}:
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


__all__ = ["CapturePlanner"]
