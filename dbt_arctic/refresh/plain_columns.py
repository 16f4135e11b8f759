"""Schema evolution of plain tables and snapshots, including nested fields."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.errors import SchemaChanged
from dbt_arctic.keyed.assignment import unstorable
from dbt_arctic.keyed.create import add_columns, drop_columns, widen_column
from dbt_arctic.keyed.layout import partition_column
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.schema_difference import FieldChange, compare_columns, evolved
from dbt_arctic.keyed.table import Column
from dbt_arctic.refresh.batch import (
    FILLING,
    not_storable,
    require_no_metadata_columns,
    require_same_columns,
)
from dbt_arctic.refresh.schema_policy import FULL_REFRESH, changes_to_make
from dbt_arctic.store.context import Context


def evolve_plain(
    context: Context,
    name: Name,
    model: str,
    on_schema_change: str,
    stored: Sequence[Column],
    produced: Sequence[Column],
) -> tuple[Column, ...]:
    """Change the columns of a plain table to those of a query, as far as ``on_schema_change`` allows.

    Returns the new columns.

    :raises SchemaChanged: a value would be changed when it is stored, or a column is missing. Nothing was
        changed.
    """
    require_no_metadata_columns(model, [column.name for column in produced])
    if on_schema_change in ("ignore", FULL_REFRESH):
        require_same_columns(model, stored, produced)
    changes = changes_to_make(model, on_schema_change, compare_columns(stored, produced))
    _refuse_partition_columns(context, name, model, changes)
    after = _fitting(model, changes, stored, produced, fill=on_schema_change in FILLING)
    _alter(context, name, changes)
    return after


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
    for change in changes:
        if change.kind == "widened":
            context.run("widen_column", widen_column(name, change.path, change.new))
    if removed := [change.path for change in changes if change.kind == "removed"]:
        context.run("drop_columns", drop_columns(name, removed))


def _refuse_partition_columns(
    context: Context, name: Name, model: str, changes: Sequence[FieldChange]
) -> None:
    """Refuse to drop columns and fields by which the table is partitioned.

    :raises SchemaChanged: Iceberg cannot drop them.
    """
    removed = {".".join(change.path).lower(): change.label for change in changes if change.kind == "removed"}
    state = context.catalog.of(name).load_table(name.schema, name.identifier) if removed else None
    for text in (state.partitioning or ()) if state is not None else ():
        column = partition_column(text).lower()
        for path, label in removed.items():
            if column == path or column.startswith(f"{path}."):
                raise SchemaChanged(
                    f"the model no longer returns {label}",
                    where=model,
                    why=f"the table is partitioned by {text}, and Iceberg cannot drop that column",
                    fix="select it, or remove it from partition_by and rebuild: "
                    f"dbt run --full-refresh --select {model}",
                )
