"""The columns of a keyed table's side tables, and how they are altered."""

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
    """Base and change of a table whose columns one run is changing.

    :param table: as the view shows it meanwhile.
    """

    context: Context
    model: str
    table: KeyedTable

    def columns(self, side: Name) -> tuple[Column, ...]:
        """The columns of a side as it is now, without those that no model has."""
        return tuple(one for one in to_columns(self._state(side)) if one.name not in SYSTEM_COLUMNS)

    def add(self, side: Name, added: Sequence[tuple[Path, str]]) -> None:
        """Add columns and fields. What is there under their names a run that was cut off has left: if it was
        dropping them, they still hold the old values, which must not come back.

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
        self._alter(side, "add_columns", create.add_columns(side, added), before)

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
        state = self.context.catalog.load_table(side.schema, side.identifier)
        return () if state is None else state.columns


def takes_rows(side: Sequence[CatalogColumn], table: KeyedTable) -> bool:
    """Whether a row of a table as it was looked at can be written to a side with these columns: not while
    fields inside a column come or go.
    """
    there = {column.name: column.type for column in side}
    return all(
        same_shape(column.type, there[column.name]) for column in table.columns if column.name in there
    )


def changed_by_another(model: str, table: KeyedTable) -> ConcurrentRun:
    return ConcurrentRun(
        f"another run changed the columns of {table.name}",
        where=model,
        why="it ran at the same time",
        fix="nothing was written by this run; run the model again",
    )


def changing_columns(name: Name, where: str, again: str) -> ConcurrentRun:
    """For whoever cannot write a row, since fields inside a column come or go."""
    return ConcurrentRun(
        f"another run is changing the columns of {name}",
        where=where,
        why="until it is done, the fields of base and change table differ from the view's; if it was "
        "interrupted, the next run of the model completes it",
        fix=f"run the model, dbt run --select {name.identifier}; then {again}. Nothing was written",
    )
