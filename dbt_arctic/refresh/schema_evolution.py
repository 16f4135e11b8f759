"""Schema evolution of a keyed table: changes of a model's columns, applied to base, change table and view."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.errors import ConcurrentRun, SchemaChanged, StatementError
from dbt_arctic.keyed import create
from dbt_arctic.keyed.layout import partition_column
from dbt_arctic.keyed.nested import field_ids
from dbt_arctic.keyed.schema_difference import FieldChange, compare_columns, evolved
from dbt_arctic.keyed.table import Column, KeyedTable
from dbt_arctic.refresh.batch import require_same_columns, require_storable
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.schema_policy import changes_to_make, refuse_difference
from dbt_arctic.store.context import Context
from dbt_arctic.store.side_columns import Sides, changed_by_another
from dbt_arctic.store.state import load_keyed
from dbt_arctic.store.view_switch import show_again


def evolve(
    context: Context, config: KeyedConfig, table: KeyedTable, produced: tuple[Column, ...]
) -> KeyedTable:
    """Make the table fit the model's columns, as far as ``on_schema_change`` allows.

    Columns are added to base and change before the view shows them, and dropped after the view
    has stopped to: readers never see half of it. Where a run was cut off, the next one adds what is still
    wanted, and what was to be dropped is empty from then on, and goes before a column of its name comes.

    A view cannot be read where a column is of another type than it says. So before a field inside a column
    comes or goes, or a type gets wider, the view names the fields that it shows (``KeyedTable.projected``).
    What a run that was cut off then has left is put right by the next one, before anything is written.

    :raises SchemaChanged: the model's columns do not fit. Nothing was changed.
    :raises ConcurrentRun: another run is changing the columns. Nothing was written.
    """
    mode = config.on_schema_change
    table = _put_right(context, config, table)
    difference = compare_columns(table.columns, produced)
    if mode == "ignore":
        require_same_columns(config.model, table.columns, produced)
        return table
    if mode == "fail":
        refuse_difference(config.model, difference)
    changes = changes_to_make(config.model, mode, difference)
    if not changes:
        return table
    _refuse_layout_columns(config, table, changes)
    target = replace(
        table,
        columns=evolved(table.columns, changes),
        required=tuple(name for name in table.required if (name,) not in _removed(changes)),
    )
    require_storable(config, produced, target)
    try:
        return _change(context, config, table, target, changes)
    except ConcurrentRun:
        _mend(context, config, table)
        raise
    except StatementError as error:
        if not _mend(context, config, table):
            raise
        raise changed_by_another(config.model, table) from error


def _change(
    context: Context,
    config: KeyedConfig,
    table: KeyedTable,
    target: KeyedTable,
    changes: Sequence[FieldChange],
) -> KeyedTable:
    if any(change.is_nested or change.kind == "widened" for change in changes):
        table = _project(context, config, table)
    sides = Sides(context, config.model, table)
    added = [(change.path, change.new) for change in changes if change.kind == "added"]
    widened = [change for change in changes if change.kind == "widened"]
    for side in (table.base, table.change):
        if added:
            sides.add(side, added)
        for change in widened:
            sides.widen(side, change.path, change.new)
    required = [column for column in table.required if column not in target.required]
    if required:
        # What is written from here on lacks them, and has to be merged even if this run ends before they go.
        context.run("drop_not_null", create.drop_not_null(table.base, required), table)
    removed = _removed(changes)
    if any(len(path) > 1 for path in removed):
        target = replace(target, projected=table.projected)
    show_again(context, target, before=table, where=config.model)
    sides = Sides(context, config.model, target)
    if removed:
        for side in (table.change, table.base):
            sides.drop(side, removed)
    if not target.projected:
        return target
    found = replace(target, projected="")
    show_again(context, found, before=target, where=config.model)
    return found


def _put_right(context: Context, config: KeyedConfig, table: KeyedTable) -> KeyedTable:
    """Finish a change of fields inside columns, or of types, that was cut off.

    Fields that the view does not show are dropped: they may hold values that were to go. A type that got
    wider stays so, since no type gets narrower.
    """
    if not table.projected:
        return table
    table = _project(context, config, table)
    sides = Sides(context, config.model, table)
    columns = table.columns
    for side in (table.base, table.change):
        columns = evolved(columns, compare_columns(columns, sides.columns(side)).widened)
    for side in (table.base, table.change):
        for change in compare_columns(sides.columns(side), columns).widened:
            sides.widen(side, change.path, change.new)
        extra = [
            change.path for change in compare_columns(columns, sides.columns(side)).added if change.is_nested
        ]
        if extra:
            sides.drop(side, extra)
    found = replace(table, columns=columns, projected="")
    show_again(context, found, before=table, where=config.model)
    return found


def _mend(context: Context, config: KeyedConfig, table: KeyedTable) -> bool:
    """After another run got in between: a statement of this one may have landed when that one had ended, and
    nobody can read a plain view over sides that differ from it.

    :returns: whether there was such a thing.
    """
    shown = load_keyed(context.catalog, table.name)
    if shown.generation != table.generation or shown.projected:
        return False  # not ours any more, or read by its fields: the next run puts it right
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
    """Let the view name the fields that it shows; whoever else was changing them gives way."""
    found = replace(table, projected=str(context.new_txn()))
    show_again(context, found, before=table, where=config.model)
    return found


def relax(context: Context, config: KeyedConfig, table: KeyedTable) -> KeyedTable:
    """Let the base table take NULL in columns that the model's contract no longer declares NOT NULL.

    Before a row is written that compaction could not merge. The base first: a run that is cut off in
    between is finished by the next.
    """
    wanted = {column.lower() for column in config.required}
    loosened = [column for column in table.required if column.lower() not in wanted]
    if not loosened:
        return table
    context.run("drop_not_null", create.drop_not_null(table.base, loosened), table)
    relaxed = replace(table, required=tuple(c for c in table.required if c not in loosened))
    show_again(context, relaxed, before=table, where=config.model)
    return relaxed


def require_same_fields(
    context: Context, config: KeyedConfig, table: KeyedTable, written: Sequence[CatalogColumn]
) -> None:
    """After a write with new columns: another run that adds the same ones may have taken them for what a run
    that was cut off has left, and made them anew.

    :param written: the change table's columns before the write.
    :raises ConcurrentRun: what was written to them is gone.
    """
    state = context.catalog.load_table(table.change.schema, table.change.identifier)
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

    :raises SchemaChanged: files are laid out, or rows known, by what would change.
    """
    used = {
        *table.key,
        *table.layout.sort_by,
        *(partition_column(text) for text in table.layout.partition_by),
    }
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
