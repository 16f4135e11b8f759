"""Schema evolution of a keyed table: changes of a model's columns, applied to base, change table and view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.errors import ConcurrentRun, SchemaChanged, StatementError
from dbt_arctic.keyed import create
from dbt_arctic.keyed.layout import partition_column
from dbt_arctic.keyed.nested import field_ids
from dbt_arctic.keyed.schema_difference import FieldChange, Path, compare_columns, evolved
from dbt_arctic.keyed.table import Column, KeyedTable
from dbt_arctic.refresh.batch import require_same_columns
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.schema_policy import (
    FULL_REFRESH,
    changes_to_make,
    needs_rebuild,
    refuse_difference,
)
from dbt_arctic.store.context import Context
from dbt_arctic.store.publish_view import replace_view
from dbt_arctic.store.side_columns import Sides, changed_by_another
from dbt_arctic.store.state import load_keyed


@dataclass(frozen=True)
class ColumnPlan:
    """The changes that bring a table to the columns of a model.

    :param table: the table as it is.
    :param target: the table with the new columns; ``table`` itself if nothing changes.
    """

    table: KeyedTable
    target: KeyedTable
    changes: tuple[FieldChange, ...] = ()


def plan_columns(
    context: Context, config: KeyedConfig, table: KeyedTable, produced: tuple[Column, ...]
) -> ColumnPlan:
    """Plan the change of a table's columns to those of the model, as far as ``on_schema_change`` allows.

    Changes nothing, except that it completes a change that was interrupted.

    :raises SchemaChanged: the columns of the model do not fit.
    """
    mode = config.on_schema_change
    table = _put_right(context, config, table)
    difference = compare_columns(table.columns, produced)
    if mode == "ignore":
        require_same_columns(config.model, table.columns, produced)
    if mode == "fail" or (mode == FULL_REFRESH and needs_rebuild(table.columns, produced)):
        # With full_refresh, the run was to rebuild the table, and another one has changed it since.
        refuse_difference(config.model, difference)
    changes = tuple(changes_to_make(config.model, mode, difference))
    if not changes:
        return ColumnPlan(table, table)
    _refuse_layout_columns(config, table, changes)
    required = tuple(name for name in table.required if (name,) not in _removed(changes))
    target = replace(table, columns=evolved(table.columns, changes), required=required)
    return ColumnPlan(table, target, changes)


def change_columns(context: Context, config: KeyedConfig, plan: ColumnPlan) -> KeyedTable:
    """Change the columns of a table.

    Columns are added to the base and change table before the view shows them, and dropped after the view has
    stopped showing them, so readers see a consistent state. After an interrupted run, the next one adds the
    columns that are still required. Columns that were to be dropped are not written any more, and are dropped
    before a new column gets the same name.

    A view cannot be read if a column has a different type than the view declares. So before a nested field is
    added or dropped, or a type is widened, the view names the fields that it shows
    (``KeyedTable.projected``). The next run repairs the result of an interrupted change before it writes
    anything.

    :raises ConcurrentRun: another run is changing the columns. Nothing was written.
    """
    if not plan.changes:
        return plan.table
    try:
        return _change(context, config, plan)
    except ConcurrentRun:
        _mend(context, config, plan.table)
        raise
    except StatementError as error:
        if not _mend(context, config, plan.table):
            raise
        raise changed_by_another(config.model, plan.table) from error


def _change(context: Context, config: KeyedConfig, plan: ColumnPlan) -> KeyedTable:
    table, target, changes = plan.table, plan.target, plan.changes
    if any(change.is_nested or change.kind in ("widened", "typed") for change in changes):
        table = _project(context, config, table)
    sides = Sides(context, config.model, table)
    added = [(change.path, change.new) for change in changes if change.kind == "added"]
    typed = [(change.path, change.new) for change in changes if change.kind == "typed"]
    widened = [change for change in changes if change.kind == "widened"]
    for side in (table.base, table.change):
        if typed:
            sides.retype(side, typed)
        if added:
            sides.add(side, added)
        for change in widened:
            sides.widen(side, change.path, change.new)
    required = [column for column in table.required if column not in target.required]
    if required:
        # Rows written from here on lack these columns, and must be mergeable even if this run ends before
        # they are dropped.
        context.run(
            "drop_not_null", create.drop_not_null(table.base, [(column,) for column in required]), table
        )
    removed = _removed(changes)
    if any(len(path) > 1 for path in removed):
        target = replace(target, projected=table.projected)
    replace_view(context, target, before=table, where=config.model)
    sides = Sides(context, config.model, target)
    if removed:
        for side in (table.change, table.base):
            sides.drop(side, removed)
    if not target.projected:
        return target
    found = replace(target, projected="")
    replace_view(context, found, before=target, where=config.model)
    return found


def _put_right(context: Context, config: KeyedConfig, table: KeyedTable) -> KeyedTable:
    """Complete an interrupted change of nested fields or types.

    Fields that the view does not show are dropped, because they may hold values that were to be deleted. A
    widened type is kept, since types cannot be narrowed. A column that was getting its type has none again.
    """
    if not table.projected:
        return table
    table = _project(context, config, table)
    sides = Sides(context, config.model, table)
    columns = table.columns
    for side in (table.base, table.change):
        columns = evolved(columns, compare_columns(columns, sides.columns(side)).widened)
    for side in (table.base, table.change):
        if untyped := _untyped(sides.columns(side), columns):
            sides.retype(side, untyped)
        for change in compare_columns(sides.columns(side), columns).widened:
            sides.widen(side, change.path, change.new)
        extra = [
            change.path for change in compare_columns(columns, sides.columns(side)).added if change.is_nested
        ]
        if extra:
            sides.drop(side, extra)
    found = replace(table, columns=columns, projected="")
    replace_view(context, found, before=table, where=config.model)
    return found


def _untyped(side: Sequence[Column], columns: Sequence[Column]) -> list[tuple[Path, str]]:
    """The columns and fields that have no type in the table, but have one in a side table or are missing."""
    lacking = [change for change in compare_columns(side, columns).added if change.new == "void"]
    getting = compare_columns(columns, side).typed
    return [(change.path, "void") for change in (*lacking, *getting)]


def _mend(context: Context, config: KeyedConfig, table: KeyedTable) -> bool:
    """Repair the columns after a concurrent run.

    A statement of this run may have been executed after that run had ended, and a plain view over different
    side tables cannot be read.

    :returns: whether a repair was needed.
    """
    shown = load_keyed(context.catalog, table.name)
    if shown.generation != table.generation or shown.projected:
        return False  # the view names another generation or reads by field; the next run repairs it
    sides = Sides(context, config.model, shown)
    types = shown.types
    if all(
        types.get(column.name, column.type) == column.type
        for side in (shown.base, shown.change)
        for column in sides.columns(side)
    ):
        return False
    for side in (shown.base, shown.change):
        missing = compare_columns(sides.columns(side), shown.columns).added
        if nested := [(one.path, one.new) for one in missing if one.is_nested]:
            sides.add(side, nested)
    _put_right(context, config, _project(context, config, shown))
    return True


def _project(context: Context, config: KeyedConfig, table: KeyedTable) -> KeyedTable:
    """Let the view name the fields that it shows. A concurrent run that was changing them gives up."""
    found = replace(table, projected=str(context.new_txn()))
    replace_view(context, found, before=table, where=config.model)
    return found


def relax(context: Context, config: KeyedConfig, table: KeyedTable) -> KeyedTable:
    """Allow NULL in columns of the base table that the model's contract no longer declares NOT NULL.

    This happens before a row is written that compaction could not merge. The base table comes first: the next
    run completes an interrupted change.
    """
    wanted = {column.lower() for column in config.required}
    loosened = [column for column in table.required if column.lower() not in wanted]
    if not loosened:
        return table
    context.run("drop_not_null", create.drop_not_null(table.base, [(column,) for column in loosened]), table)
    relaxed = replace(table, required=tuple(c for c in table.required if c not in loosened))
    replace_view(context, relaxed, before=table, where=config.model)
    return relaxed


def require_same_fields(
    context: Context, config: KeyedConfig, table: KeyedTable, written: Sequence[CatalogColumn]
) -> None:
    """Check after a write that the new columns are still the same.

    Another run that adds the same columns may have dropped and added them again, because it took them for the
    remains of an interrupted run.

    :param written: the columns of the change table before the write.
    :raises ConcurrentRun: the values written to these columns are lost.
    """
    state = context.catalog.of(table.change).load_table(table.change.schema, table.change.identifier)
    there = {} if state is None else {column.name: column for column in state.columns}
    if not all(_has_fields_of(there.get(column.name), column) for column in written):
        raise ConcurrentRun(
            f"another run dropped and added columns of {table.name} again while this run wrote to them",
            where=config.model,
            why="both started with the same change of columns; these are NULL in the rows of this run",
            fix="run the model again",
        )


def _has_fields_of(column: CatalogColumn | None, written: CatalogColumn) -> bool:
    if column is None or column.field_id != written.field_id:
        return False
    return field_ids(written.nested) <= field_ids(column.nested)


def _removed(changes: Sequence[FieldChange]) -> list[tuple[str, ...]]:
    return [change.path for change in changes if change.kind == "removed"]


def _refuse_layout_columns(config: KeyedConfig, table: KeyedTable, changes: Sequence[FieldChange]) -> None:
    """Refuse changes of columns by which the table is keyed, partitioned or sorted.

    :raises SchemaChanged: the layout of files or the identity of rows depends on the column.
    """
    used = {
        *table.key,
        *table.layout.sort_by,
        *(partition_column(text) for text in table.layout.partition_by),
    }
    typed = [one for one in changes if one.kind == "typed" and one.path[0] in used]
    if typed:
        raise SchemaChanged(
            f"{typed[0].label} had only NULL, and is now {typed[0].new}",
            where=config.model,
            why="the table is keyed, partitioned or sorted by it",
            fix=f"rebuild the table: dbt run --full-refresh --select {config.model}",
        )
    needed = [one.label for one in changes if one.kind == "removed" and ".".join(one.path) in used]
    if needed:
        raise SchemaChanged(
            f"the model no longer returns {', '.join(needed)}",
            where=config.model,
            why="the table is keyed, partitioned or sorted by it",
            fix=f"rebuild the table: dbt run --full-refresh --select {config.model}",
        )
    inside = [one for one in changes if one.is_nested and one.path[0] in used]
    if inside:
        raise SchemaChanged(
            f"fields inside {inside[0].path[0]} changed: {inside[0].label}",
            where=config.model,
            why="the table is keyed, partitioned or sorted by the column, and its values would change",
            fix=f"rebuild the table: dbt run --full-refresh --select {config.model}",
        )
