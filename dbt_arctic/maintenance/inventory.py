"""The contents of one schema, read once: what can be read, and why the rest cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogReader, InCatalog, TableState, ViewState
from dbt_arctic.errors import ArcticError, CatalogUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable, is_keyed, side_root
from dbt_arctic.store.state import keyed_from_view


@dataclass(frozen=True)
class Inventory:
    """The tables and views of a schema by name.

    :param damaged_tables: tables of the catalog whose metadata cannot be read, and why.
    :param keyed: the keyed tables.
    :param strange: the keyed views with invalid properties.
    """

    catalog: str
    schema: str
    tables: Mapping[str, TableState]
    views: Mapping[str, ViewState]
    damaged_tables: Mapping[str, CatalogUnavailable]
    damaged_views: Mapping[str, CatalogUnavailable]
    keyed: Mapping[str, KeyedTable]
    strange: Mapping[str, ArcticError]

    def name(self, identifier: str) -> Name:
        """The full name of an identifier in the schema."""
        return Name(self.catalog, self.schema, identifier)

    @property
    def has_unreadable_views(self) -> bool:
        """Whether a view cannot be read; it is then unknown which side tables the views refer to."""
        return bool(self.damaged_views or self.strange)

    def of(self, name: InCatalog) -> Inventory:
        """Itself. A name of another catalog is not in it."""
        return self

    def load_table(self, schema: str, name: str) -> TableState | None:
        """As the catalog's method of this name, for this schema."""
        return self.tables.get(name) if schema == self.schema else None

    def exists(self, identifier: str) -> bool:
        """Whether a relation has this name, even a damaged one."""
        found = (self.tables, self.views, self.damaged_tables, self.damaged_views)
        return any(identifier in group for group in found)

    def shown_as(self, root: str) -> KeyedTable | None:
        """The keyed table whose side tables are named after ``root``."""
        return next((table for table in self.keyed.values() if table.made_as.identifier == root), None)


def take_inventory(catalog: CatalogReader, catalog_name: str, schema: str) -> Inventory:
    """Read a schema. Relations that disappear in the meantime are left out; damaged ones are kept
    separately."""
    tables: dict[str, TableState] = {}
    views: dict[str, ViewState] = {}
    damaged_tables: dict[str, CatalogUnavailable] = {}
    damaged_views: dict[str, CatalogUnavailable] = {}
    reader = catalog.of(Name(catalog_name, schema, ""))
    for entry in reader.list_names(schema):
        try:
            if entry.kind == "table":
                table = reader.load_table(schema, entry.name)
                if table is not None:
                    tables[entry.name] = table
            else:
                view = reader.load_view(schema, entry.name)
                if view is not None:
                    views[entry.name] = view
        except CatalogUnavailable as error:
            (damaged_tables if entry.kind == "table" else damaged_views)[entry.name] = error
    keyed: dict[str, KeyedTable] = {}
    strange: dict[str, ArcticError] = {}
    for name, view in views.items():
        try:
            found = keyed_from_view(Name(catalog_name, schema, name), view)
        except ArcticError as error:
            strange[name] = error
            continue
        if found is not None:
            keyed[name] = found
    return Inventory(catalog_name, schema, tables, views, damaged_tables, damaged_views, keyed, strange)


def is_ordinary(view: ViewState) -> bool:
    """Whether a view does not belong to a keyed table."""
    return not is_keyed(view.properties)


def roots(inventory: Inventory) -> set[str]:
    """The names after which the schema's side tables are named, whether or not a view uses them."""
    names = [*inventory.tables, *inventory.damaged_tables]
    return {root for name in names if (root := side_root(name)) is not None}
