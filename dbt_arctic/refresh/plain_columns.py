"""Schema evolution of plain tables and snapshots, including nested fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import CommitConflict, SchemaChanged, StatementError
from dbt_arctic.keyed.assignment import unstorable
from dbt_arctic.keyed.create import (
    add_columns,
    drop_columns,
    drop_not_null,
    leave_float_statistics_out,
    widen_column,
)
from dbt_arctic.keyed.layout import partition_column
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.schema_difference import FieldChange, Path, compare_columns, evolved
from dbt_arctic.keyed.table import Column
from dbt_arctic.refresh.batch import (
    FILLING,
    not_storable,
    require_no_metadata_columns,
    require_same_columns,
)
from dbt_arctic.refresh.schema_policy import FULL_REFRESH, changes_to_make
from dbt_arctic.store.context import Context


@dataclass(frozen=True)
class EvolvedColumns:
    """The columns of a plain table while a batch is written.

    :param columns: the columns, including those that are dropped after the batch.
    :param dropped: the paths of these columns and nested fields.
    """

    columns: tuple[Column, ...]
    dropped: tuple[Path, ...] = ()


def evolve_plain(
    context: Context,
    name: Name,
    model: str,
    on_schema_change: str,
    stored: Sequence[Column],
    produced: Sequence[Column],
    *,
    drop_first: bool = False,
) -> EvolvedColumns:
    """Change the columns of a plain table to those of a query, as far as ``on_schema_change`` allows.

    Columns are dropped by ``drop_last``, after the batch is written, so that a run that fails loses no value.

    :param drop_first: whether they are dropped here, because the statement of the batch expects the columns
        of the batch only.
    :raises SchemaChanged: a value would be changed when it is stored, or a column is missing. Nothing was
        changed.
    """
    require_no_metadata_columns(model, [column.name for column in produced])
    if on_schema_change in ("ignore", FULL_REFRESH):
        require_same_columns(model, stored, produced)
    changes = changes_to_make(model, on_schema_change, compare_columns(stored, produced))
    removed = [change for change in changes if change.kind == "removed"]
    now = [change for change in changes if drop_first or change.kind != "removed"]
    state = context.catalog.of(name).load_table(name.schema, name.identifier) if removed else None
    if state is not None:
        _refuse_layout_columns(model, removed, state)
    columns = _fitting(model, now, stored, produced, fill=on_schema_change in FILLING)
    _alter(context, name, now)
    if drop_first or not removed:
        return EvolvedColumns(columns)
    if state is not None and (required := _required(removed, state)):
        # The rows of this batch have NULL there.
        context.run("drop_not_null", drop_not_null(name, required))
    return EvolvedColumns(columns, tuple(change.path for change in removed))


def drop_last(context: Context, name: Name, model: str, changed: EvolvedColumns) -> SchemaChanged | None:
    """Drop the columns that a written batch does not have.

    Returns a warning if that fails. The rows are written, so it must not be an error: the run would be
    repeated, and write them again.
    """
    if not changed.dropped:
        return None
    try:
        context.run("drop_columns", drop_columns(name, changed.dropped))
    except (StatementError, CommitConflict) as error:
        listed = ", ".join(".".join(path) for path in changed.dropped)
        return SchemaChanged(
            f"the rows are written, but not all of {listed} could be dropped",
            where=model,
            why=error.why or error.what,
            fix="the next run drops them; until then they are NULL in new rows",
        )
    return None


def snapshot_columns(
    model: str, stored: Sequence[Column], produced: Sequence[Column]
) -> tuple[tuple[Column, ...], list[FieldChange]]:
    """The columns of a snapshot with the new fields and wider types of its query, and the changes to these.

    Nothing is dropped, since a snapshot cannot be rebuilt. New columns are added together with the rows.

    :raises SchemaChanged: a value would be changed when it is stored.
    """
    require_no_metadata_columns(model, [column.name for column in produced])
    changes = [
        change
        for change in compare_columns(stored, produced).of("added", "widened", "typed")
        if change.is_nested or change.kind != "added"
    ]
    return _fitting(model, changes, stored, produced, fill=True), changes


def evolve_snapshot(
    context: Context, name: Name, model: str, stored: Sequence[Column], produced: Sequence[Column]
) -> tuple[Column, ...]:
    """Add the new fields of a query to a snapshot, and widen its column types. Returns the new columns.

    :raises SchemaChanged: a value would be changed when it is stored. Nothing was changed.
    """
    after, changes = snapshot_columns(model, stored, produced)
    _alter(context, name, changes)
    return after


def _fitting(
    model: str,
    changes: Sequence[FieldChange],
    stored: Sequence[Column],
    produced: Sequence[Column],
    *,
    fill: bool,
) -> tuple[Column, ...]:
    """The columns of a table after some changes.

    :raises SchemaChanged: they cannot store the values of the query without loss.
    """
    after = evolved(stored, changes)
    given = ((column.name, column.type) for column in produced)
    found = unstorable(given, ((column.name, column.type) for column in after), fill=fill)
    if found:
        raise not_storable(model, found)
    return after


def _alter(context: Context, name: Name, changes: Sequence[FieldChange]) -> None:
    # Iceberg cannot change the type of an untyped field in place. It holds no value that could be lost.
    if typed := [change.path for change in changes if change.kind == "typed"]:
        context.run("drop_columns", drop_columns(name, typed))
    if added := [(change.path, change.new) for change in changes if change.kind in ("added", "typed")]:
        context.run("add_columns", add_columns(name, added))
        if statement := leave_float_statistics_out(name, added):
            context.run("set_properties", statement)
    for change in changes:
        if change.kind == "widened":
            context.run("widen_column", widen_column(name, change.path, change.new))
    if removed := [change.path for change in changes if change.kind == "removed"]:
        context.run("drop_columns", drop_columns(name, removed))


def _refuse_layout_columns(model: str, removed: Sequence[FieldChange], state: TableState) -> None:
    """Refuse to drop columns and fields by which the table is partitioned or sorted.

    :raises SchemaChanged: Iceberg cannot drop them.
    """
    used = [("partitioned", "remove it from partition_by", text) for text in state.partitioning or ()]
    used += [("sorted", "give the table another sort order", text) for text in state.sort_order or ()]
    for change in removed:
        path = ".".join(change.path).lower()
        for layout, remedy, text in used:
            column = partition_column(text).lower()
            if column == path or column.startswith(f"{path}."):
                raise SchemaChanged(
                    f"the model no longer returns {change.label}",
                    where=model,
                    why=f"the table is {layout} by {text}, and Iceberg cannot drop that column",
                    fix=f"select it, or {remedy} and rebuild: dbt run --full-refresh --select {model}",
                )


def _required(removed: Sequence[FieldChange], state: TableState) -> list[Path]:
    """The paths of columns that may have no NULL. Of fields in columns, the catalog does not say it."""
    required = {column.name for column in state.columns if not column.nullable}
    return [change.path for change in removed if change.is_nested or change.path[0] in required]
