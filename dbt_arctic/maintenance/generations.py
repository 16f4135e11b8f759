"""The existing generations of a keyed table: the current one, the previous one, and others."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.store.generations import load_generation, unreadable_generation
from dbt_arctic.store.state import load_base, load_change

__all__ = ["as_shown", "generation_of", "load_sides"]


def generation_of(catalog: CatalogReader, table: KeyedTable, number: int) -> KeyedTable:
    """A generation of a table with its own columns.

    :raises VersionUnavailable: it no longer exists, or other tables have its names.
    """
    if number == table.generation.number:
        return table
    found = load_generation(catalog, table.name, table.storage_name.identifier, number)
    if table.previous and table.previous.number == number and found.generation != table.previous:
        raise unreadable_generation(
            table.name, number, "other tables took the names of its base and change table"
        )
    return found


def load_sides(catalog: CatalogReader, table: KeyedTable) -> tuple[TableState, TableState]:
    """The metadata of a generation's base and change table."""
    return load_base(catalog, table), load_change(catalog, table)


def as_shown(table: KeyedTable, generation: KeyedTable) -> KeyedTable:
    """An older generation with the table's current columns and its own key."""
    return replace(generation, columns=table.columns)
