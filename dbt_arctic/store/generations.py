"""Loads a generation of a keyed table from its side tables, without the view."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import (
    PROPERTY_ID,
    PROPERTY_OF,
    SYSTEM_COLUMNS,
    KeyedTable,
    SideIds,
    from_sides,
    side_generation,
    side_name,
)
from dbt_arctic.store.state import to_columns


def generation_numbers(catalog: CatalogReader, storage_name: Name) -> list[int]:
    """The numbers of the generations that have a side table, newest first."""
    numbers = {
        number
        for entry in catalog.of(storage_name).list_names(storage_name.schema)
        if entry.kind == "table" and (number := side_generation(storage_name, entry.name)) is not None
    }
    return sorted(numbers, reverse=True)


def load_generation(catalog: CatalogReader, name: Name, root: str, number: int) -> KeyedTable:
    """Load a generation from the description in its side tables.

    :param root: the name from which the names of the side tables are derived.
    :raises VersionUnavailable: the generation does not exist or is incomplete.
    """
    storage_name = name.sibling(root)
    sides = [_side(catalog, storage_name, role, number, name) for role in ("base", "change")]
    base, change = sides
    stored = {column.name for column in change.columns} - set(SYSTEM_COLUMNS)
    # An interrupted schema change may have reached only one of the two tables.
    columns = tuple(column for column in base.columns if column.name in stored)
    table = from_sides(
        name,
        root,
        number,
        SideIds(base.properties[PROPERTY_ID], change.properties[PROPERTY_ID]),
        base.properties,
        to_columns(columns),
        tuple(column.name for column in columns if not column.nullable),
    )
    return table if catalog.of(name).has_views() else replace(table, has_view=False)


def _side(catalog: CatalogReader, storage_name: Name, role: str, number: int, name: Name) -> TableState:
    side = side_name(storage_name, role, number)
    state = catalog.of(side).load_table(side.schema, side.identifier)
    if state is None:
        raise unreadable_generation(
            name, number, f"{side} does not exist; a full refresh keeps only the previous generation"
        )
    if state.properties.get(PROPERTY_OF) != storage_name.dotted or PROPERTY_ID not in state.properties:
        raise unreadable_generation(name, number, f"{side} was not created by dbt-arctic")
    if state.current_snapshot_id is None:
        raise unreadable_generation(name, number, f"{side} has no commit, because the build was interrupted")
    return state


def unreadable_generation(name: Name, number: int, why: str) -> VersionUnavailable:
    """The error for a generation that cannot be read."""
    return VersionUnavailable(
        f"generation {number} of {name} cannot be read",
        where=name.dotted,
        why=why,
        fix=f"choose a version that `dbt-arctic history {name.identifier}` lists",
    )
