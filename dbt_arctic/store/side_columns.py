"""The columns of the side tables of a keyed table, and how they are altered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.errors import ConcurrentRun, StatementError
from dbt_arctic.keyed import create
from dbt_arctic.keyed.assignment import same_shape
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.schema_difference import Path, field_type
from dbt_arctic.keyed.table import SYSTEM_COLUMNS, Column, KeyedTable
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import load_keyed, to_columns


@dataclass(frozen=True)
class Sides:
    """The base and change table of a keyed table whose columns a run is changing.

    :param table: the table as the view shows it in the meantime.
    """

    context: Context
    model: str
    table: KeyedTable

    def columns(self, side: Name) -> tuple[Column, ...]:
        """The current columns of a side table, without the internal ones."""
        return tuple(one for one in to_columns(self._state(side)) if one.name not in SYSTEM_COLUMNS)

    def add(self, side: Name, added: Sequence[tuple[Path, str]]) -> None:
        """Add columns and fields to a side table.

        A column that already exists under such a name was left by an interrupted run. If that run was
        dropping it, it still holds old values, which must not reappear.

        :raises ConcurrentRun: another run with the same change of columns was faster.
        """
        before = self._state(side)
        there = to_columns(before)
        leftovers = [path for path, _ in added if field_type(there, path) is not None]
        if leftovers:
            if load_keyed(self.context.catalog, self.table.name).columns != self.table.columns:
                raise changed_by_another(self.model, self.table)
            self.drop(side, leftovers)
            before = self._state(side)
        self._add(side, added, before)

    def retype(self, side: Name, changed: Sequence[tuple[Path, str]]) -> None:
        """Give columns and fields of a side table that hold only NULL another type.

        Iceberg cannot change the type of a column without one, so they are dropped and added again.

        :param changed: paths with their new types.
        :raises ConcurrentRun: another run with the same change of columns was faster.
        """
        there = to_columns(self._state(side))
        differing = [(path, type_) for path, type_ in changed if field_type(there, path) != type_]
        if present := [path for path, _ in differing if field_type(there, path) is not None]:
            self.drop(side, present)
        if differing:
            self._add(side, differing, self._state(side))

    def _add(self, side: Name, added: Sequence[tuple[Path, str]], before: tuple[CatalogColumn, ...]) -> None:
        self._alter(side, "add_columns", create.add_columns(side, added), before)
        # Iceberg refuses such a property of a column that does not exist yet.
        if statement := create.leave_float_statistics_out(side, added):
            self._alter(side, "leave_float_statistics_out", statement, self._state(side))

    def widen(self, side: Name, path: Path, type_: str) -> None:
        """Give a column or field of a side table a wider type.

        :raises ConcurrentRun: another run with the same change of columns was faster.
        """
        before = self._state(side)
        if field_type(to_columns(before), path) != type_:
            self._alter(side, "widen_column", create.widen_column(side, path, type_), before)

    def drop(self, side: Name, paths: Sequence[Path]) -> None:
        """Drop columns and fields of a side table.

        :raises ConcurrentRun: another run has dropped them.
        """
        before = self._state(side)
        there = to_columns(before)
        if any(field_type(there, path) is None for path in paths):
            raise changed_by_another(self.model, self.table)
        self._alter(side, "drop_columns", create.drop_columns(side, paths), before)

    def _alter(self, side: Name, step: str, sql: str, before: tuple[CatalogColumn, ...]) -> None:
        shown = load_keyed(self.context.catalog, self.table.name) if self.table.projected else self.table
        if shown.projected != self.table.projected:
            raise changed_by_another(self.model, self.table)
        try:
            self.context.run(step, sql, self.table)
        except StatementError as error:
            if self._state(side) == before:
                raise
            raise changed_by_another(self.model, self.table) from error

    def _state(self, side: Name) -> tuple[CatalogColumn, ...]:
        state = self.context.catalog.of(side).load_table(side.schema, side.identifier)
        return () if state is None else state.columns


def takes_rows(side: Sequence[CatalogColumn], table: KeyedTable) -> bool:
    """Whether a row in the table's current layout can be written to a side table with these columns.

    That is not possible while nested fields are added or dropped, or a column is dropped to get its type.
    """
    there = {column.name: column.type for column in side}
    return all(
        same_shape(column.type, there[column.name]) if column.name in there else column.type != "void"
        for column in table.columns
    )


def changed_by_another(model: str, table: KeyedTable) -> ConcurrentRun:
    """The error for a run that was overtaken by another one that changed the columns."""
    return ConcurrentRun(
        f"another run changed the columns of {table.name}",
        where=model,
        why="it ran at the same time",
        fix="nothing was written by this run; run the model again",
    )


def changing_columns(name: Name, where: str, again: str) -> ConcurrentRun:
    """The error for a run that cannot write a row because nested fields are being added or dropped."""
    return ConcurrentRun(
        f"another run is changing the columns of {name}",
        where=where,
        why="until it is done, the fields of base and change table differ from the view's; if it was "
        "interrupted, the next run of the model completes it",
        fix=f"run the model, dbt run --select {name.identifier}; then {again}. Nothing was written",
    )
