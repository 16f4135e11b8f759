"""Schema evolution of a keyed table: what a model's new columns mean for base, change and view."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.errors import ConcurrentRun, SchemaChanged, StatementError
from dbt_arctic.keyed import create
from dbt_arctic.keyed.assignment import is_reordered
from dbt_arctic.keyed.layout import partition_column
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, KeyedTable
from dbt_arctic.keyed.widening import can_widen
from dbt_arctic.refresh.batch import require_same_columns
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.edge import Edge
from dbt_arctic.refresh.state import load_keyed
from dbt_arctic.refresh.switch import show_again

_SMALL_INTEGER = re.compile(r"(`(?:``|[^`])*`)|(?<![^:<,])(?:tinyint|smallint)(?![^,>])")


@dataclass(frozen=True)
class SchemaDifference:
    """A model's columns against a table's."""

    added: tuple[Column, ...]
    removed: tuple[str, ...]
    widened: tuple[Column, ...]
    incompatible: tuple[tuple[Column, str], ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.widened or self.incompatible)

    def describe(self) -> str:
        parts = []
        if self.added:
            parts.append("new: " + ", ".join(f"{column.name} {column.type}" for column in self.added))
        if self.removed:
            parts.append("gone: " + ", ".join(self.removed))
        changed = [f"{column.name} is now {column.type}" for column in self.widened]
        changed += [f"{column.name} was {old}, is now {column.type}" for column, old in self.incompatible]
        if changed:
            parts.append("; ".join(changed))
        return "; ".join(parts)


def compare_columns(table: tuple[Column, ...], produced: tuple[Column, ...]) -> SchemaDifference:
    by_lower = {column.name.lower(): column for column in table}
    produced_names = {column.name.lower() for column in produced}
    widened, incompatible = [], []
    for new in produced:
        column = replace(new, type=stored_type(new.type))
        old = by_lower.get(column.name.lower())
        if old is None or old.type == column.type or column.type == "void":
            continue
        if can_widen(old.type, column.type):
            widened.append(Column(old.name, column.type, old.comment))
        elif not (can_widen(column.type, old.type) or is_reordered(column.type, old.type)):
            incompatible.append((Column(old.name, column.type, old.comment), old.type))
    return SchemaDifference(
        added=tuple(
            replace(column, type=stored_type(column.type))
            for column in produced
            if column.name.lower() not in by_lower
        ),
        removed=tuple(column.name for column in table if column.name.lower() not in produced_names),
        widened=tuple(widened),
        incompatible=tuple(incompatible),
    )


def same_columns(table: tuple[Column, ...], produced: Sequence[tuple[str, str]]) -> bool:
    """Whether a query's columns (name, type) are the table's, in whatever order."""
    stored = {column.name.lower(): column.type for column in table}
    return {name.lower(): stored_type(type_) for name, type_ in produced} == stored


def stored_type(spark_type: str) -> str:
    """The type that a column has in an Iceberg table, which knows no integers shorter than 32 bits.

    >>> stored_type("struct<tinyint:smallint,`a,tinyint`:array<tinyint>>")
    'struct<tinyint:int,`a,tinyint`:array<int>>'
    """
    return _SMALL_INTEGER.sub(lambda found: found[1] or "int", spark_type)


def evolve(edge: Edge, config: KeyedConfig, table: KeyedTable, produced: tuple[Column, ...]) -> KeyedTable:
    """Make the table fit the model's columns, as far as ``on_schema_change`` allows.

    Columns are added to base and change before the view shows them, and dropped after the view
    has stopped to: readers never see half of it. Where a run was cut off, the next one adds what is still
    wanted, and what was to be dropped is empty from then on, and goes before a column of its name comes.
    """
    difference = compare_columns(table.columns, produced)
    if config.on_schema_change == "ignore":
        require_same_columns(config, table, produced)
        return table
    if not difference:
        return table
    if config.on_schema_change == "fail":
        raise SchemaChanged(
            "the model's columns differ from the table's",
            where=config.model,
            why=difference.describe(),
            fix="set on_schema_change to 'append_new_columns' or 'sync_all_columns', or rebuild: "
            f"dbt run --full-refresh --select {config.model}",
        )
    sync = config.on_schema_change == "sync_all_columns"
    if difference.incompatible and sync:
        raise SchemaChanged(
            "a column changed to a type that Iceberg cannot promote to",
            where=config.model,
            why=difference.describe(),
            fix=f"cast the column in the model, or rebuild: dbt run --full-refresh --select {config.model}",
        )
    removed = difference.removed if sync else ()
    widened = difference.widened if sync else ()
    if not (difference.added or removed or widened):
        return table
    _refuse_layout_columns(config, table, removed)
    widened_by_name = {column.name: column for column in widened}
    kept = tuple(
        widened_by_name.get(column.name, column) for column in table.columns if column.name not in removed
    )
    evolved = replace(
        table,
        columns=(*kept, *difference.added),
        required=tuple(column for column in table.required if column not in removed),
    )
    for side in (table.base, table.change):
        state = edge.catalog.load_table(side.schema, side.identifier)
        existing = {column.name.lower(): column for column in state.columns} if state else {}
        leftovers = [
            existing[name] for column in difference.added if (name := column.name.lower()) in existing
        ]
        if leftovers:
            _drop_leftovers(edge, config, table, side, leftovers)
            state = edge.catalog.load_table(side.schema, side.identifier)
        before = () if state is None else state.columns
        if difference.added:
            sql = create.add_columns(side, difference.added)
            _alter(edge, config, table, side, "add_columns", sql, before)
        for column in widened:
            if existing[column.name.lower()].type != column.type:
                _alter(edge, config, table, side, "widen_column", create.widen_column(side, column))
    required = [column for column in table.required if column in removed]
    if required:
        # What is written from here on lacks them, and has to be merged even if this run ends before they go.
        edge.run("drop_not_null", create.drop_not_null(table.base, required), table)
    show_again(edge, evolved, before=table, where=config.model)
    if removed:
        for side in (table.change, table.base):
            _drop(edge, config, table, side, removed)
    return evolved


def relax(edge: Edge, config: KeyedConfig, table: KeyedTable) -> KeyedTable:
    """Let the base table take NULL in columns that the model's contract no longer declares NOT NULL.

    Before a row is written that compaction could not merge. The base first: a run that is cut off in
    between is finished by the next.
    """
    wanted = {column.lower() for column in config.required}
    loosened = [column for column in table.required if column.lower() not in wanted]
    if not loosened:
        return table
    edge.run("drop_not_null", create.drop_not_null(table.base, loosened), table)
    relaxed = replace(table, required=tuple(c for c in table.required if c not in loosened))
    show_again(edge, relaxed, before=table, where=config.model)
    return relaxed


def require_same_fields(
    edge: Edge, config: KeyedConfig, table: KeyedTable, written: Sequence[CatalogColumn]
) -> None:
    """After a write with new columns: another run that adds the same ones may have taken them for what a run
    that was cut off has left, and made them anew.

    :param written: the change table's columns before the write.
    :raises ConcurrentRun: what was written to them is gone.
    """
    there = {column.name: column.field_id for column in _columns_of(edge, table.change)}
    if any(there.get(column.name, -1) != column.field_id for column in written):
        raise ConcurrentRun(
            f"another run made new columns of {table.name} again while this one wrote to them",
            where=config.model,
            why="it began with the same change of the model's columns; they are NULL in the rows of this run",
            fix="run the model again",
        )


def _drop_leftovers(
    edge: Edge, config: KeyedConfig, table: KeyedTable, side: Name, leftovers: Sequence[CatalogColumn]
) -> None:
    """Drop a side table's columns that the view does not show: a run that was cut off left them.

    If it was dropping them, they still hold the old values, which must not come back.
    """
    if load_keyed(edge.catalog, table.name).columns != table.columns:
        raise _changed_by_another(config, table)
    _drop(edge, config, table, side, [column.name for column in leftovers])


def _drop(edge: Edge, config: KeyedConfig, table: KeyedTable, side: Name, names: Sequence[str]) -> None:
    """:raises ConcurrentRun: another run has dropped them."""
    if not set(names) <= {column.name for column in _columns_of(edge, side)}:
        raise _changed_by_another(config, table)
    _alter(edge, config, table, side, "drop_columns", create.drop_columns(side, names))


def _alter(
    edge: Edge,
    config: KeyedConfig,
    table: KeyedTable,
    side: Name,
    step: str,
    sql: str,
    before: tuple[CatalogColumn, ...] | None = None,
) -> None:
    """:raises ConcurrentRun: another run with the same change of columns was faster."""
    before = _columns_of(edge, side) if before is None else before
    try:
        edge.run(step, sql, table)
    except StatementError as error:
        if _columns_of(edge, side) == before:
            raise
        raise _changed_by_another(config, table) from error


def _columns_of(edge: Edge, side: Name) -> tuple[CatalogColumn, ...]:
    state = edge.catalog.load_table(side.schema, side.identifier)
    return () if state is None else state.columns


def _changed_by_another(config: KeyedConfig, table: KeyedTable) -> ConcurrentRun:
    return ConcurrentRun(
        f"another run changed the columns of {table.name}",
        where=config.model,
        why="it began with the same change of the model's columns",
        fix="nothing was written by this run; run the model again",
    )


def _refuse_layout_columns(config: KeyedConfig, table: KeyedTable, removed: tuple[str, ...]) -> None:
    used = {
        *table.key,
        *table.layout.sort_by,
        *(partition_column(text) for text in table.layout.partition_by),
    }
    needed = [column for column in removed if column in used]
    if needed:
        raise SchemaChanged(
            f"the model no longer produces {', '.join(needed)}",
            where=config.model,
            why="the table is keyed, partitioned or sorted by it",
            fix=f"rebuild the table: dbt run --full-refresh --select {config.model}",
        )
