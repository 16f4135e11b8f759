"""Plans what a model reads of a table of a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from dbt_arctic.databases.api import Database, RowQuery, TableTransaction
from dbt_arctic.engine.api import Connection, SourceRead
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.version import DATABASE, Consumed
from dbt_arctic.refresh.pull import Pull, StagedView
from dbt_arctic.sources.database_columns import read_columns, typed
from dbt_arctic.sources.database_plan import ReadPlan, Writes, plan_read, ranges_of
from dbt_arctic.sources.database_rows import TableRows, rows_and_deletes, rows_of, table_rows
from dbt_arctic.sources.database_settings import ADDED, DatabaseSource
from dbt_arctic.sources.source_planner import DELETES, Planned, PullPurpose, no_rows, refuse_renamed
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import load_keyed

PLACE = "database"
"""In the place of a catalog in the name of a table."""


def upstream_of(source: str) -> Name:
    """``database.<source>.<table>``: the same for all models, because each records its own progress."""
    return Name(PLACE, *source.split(".", 1))


class _RowsOfView(NamedTuple):
    """SQL of rows, and the view that it reads."""

    sql: str
    view: str


@dataclass(frozen=True)
class DatabasePlanner:
    """Plans what a model reads of a table.

    :param connection: the session in which the SQL of the pull will run.
    :param standing: gives the name of the table that has the model's rows, which may be the original of a
        clone.
    """

    context: Context
    connection: Callable[[], Connection]
    database: Database
    source: DatabaseSource
    writes: Writes
    standing: Callable[[], Name]

    @property
    def upstream(self) -> Name:
        """The name of the source among what a model has consumed."""
        return upstream_of(self.source.name)

    def plan(self, last_consumed: Mapping[str, Consumed], model: str, purpose: PullPurpose) -> Planned:
        """Plan a run. All is looked up once, and Spark starts only if there is something to read.

        :raises ConfigError: the model has read the table as another source; or see ``plan_read``.
        :raises VersionUnavailable: see ``plan_read``.
        """
        name, last = self.upstream, last_consumed.get(self.upstream.dotted)
        if purpose == "describe":
            return Planned(Pull(name, self._described(model), last or Consumed("", ""), last is None), last)
        transaction = self.database.begin()
        is_open = False
        try:
            if last is None:
                self._refuse_other_source(last_consumed, DATABASE + transaction.table.table_id, model)
            run, commits = str(self.context.new_txn()), purpose == "consume"
            plan = plan_read(self.source, transaction, last, self.writes, model, run, commits=commits)
            table = table_rows(self.source, transaction.table, plan, self.writes, model)
            empty = no_rows(f"no rows of {self.source.name}", typed(plan.columns))
            if (
                not plan.changed
                and last is not None
                and last.table_id == DATABASE + transaction.table.table_id
            ):
                return Planned(Pull(name, empty, last, False), last, plan.warnings, table=table)
            consumed = plan.progress.consumed(transaction.table.table_id)
            snapshot = transaction.share() if purpose == "consume" else ""
            sql, view = self._rows(transaction, plan, table, snapshot, purpose)
            is_open = bool(snapshot)
        finally:
            if not is_open:
                transaction.close()
        pull = Pull(name, sql, consumed, True, stage=StagedView(view))
        return Planned(
            pull,
            last,
            plan.warnings,
            release=transaction.close if is_open else None,
            must_select=DELETES if self.source.compares_keys else {},
            table=table,
        )

    def _described(self, model: str) -> str:
        """SQL with the columns and no rows. Only the database knows a type that is not declared."""
        what, types = f"no rows of {self.source.name}", {**self.source.columns, **ADDED}
        if all(types.values()) and self.source.columns:
            return no_rows(what, types)
        transaction = self.database.begin()
        try:
            return no_rows(what, typed(read_columns(self.source, transaction.table, model)))
        finally:
            transaction.close()

    def _rows(
        self,
        transaction: TableTransaction,
        plan: ReadPlan,
        table: TableRows,
        snapshot: str,
        purpose: PullPurpose,
    ) -> _RowsOfView:
        """SQL of the rows, and the view that it reads."""
        view = create_view(
            self.context, self.connection(), self.database, self.source, transaction, plan, snapshot, purpose
        )
        stored = load_keyed(self.context.catalog, self.standing()) if plan.key else None
        if stored is None:
            return _RowsOfView(rows_of(table, view), view)
        keys = zip((one.column.name for one in plan.key), stored.key, strict=False)  # the write compares them
        rows = merge_on_read(stored.visible)
        return _RowsOfView(rows_and_deletes(table, view, dict(keys), rows), view)

    def _refuse_other_source(self, last_consumed: Mapping[str, Consumed], key: str, model: str) -> None:
        read = f"the table {self.source.table}"
        refuse_renamed(last_consumed, key, model, self.source.name, read, "all rows of the table")


def create_view(
    context: Context,
    connection: Connection,
    database: Database,
    source: DatabaseSource,
    transaction: TableTransaction,
    plan: ReadPlan,
    snapshot: str,
    purpose: PullPurpose,
) -> str:
    """Create a temporary view over the rows that a plan reads, and return its name.

    :param snapshot: of ``TableTransaction.share``.
    """
    ranges = ranges_of(source, transaction, plan, bool(snapshot)) if purpose == "consume" else None
    read = database.read(
        RowQuery(
            [one.selected for one in plan.columns],
            plan.window,
            [one.column.name for one in plan.key],
            ranges[1] if ranges else (),
            ranges[0] if ranges else None,
            snapshot,
            transaction.table.is_alone,
        )
    )
    view = f"{source.name.replace('.', '__')}__pull_{context.new_txn()}"
    connection.create_source_view(view, SourceRead("jdbc", read.options, read.predicates))
    return view


__all__ = ["DatabasePlanner", "create_view", "upstream_of"]
