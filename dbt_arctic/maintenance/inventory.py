"""The contents of one schema, read once: what can be read, and why the rest cannot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from dbt_arctic.catalog.api import CatalogReader, InCatalog, RelationEntry, TableState, ViewState
from dbt_arctic.errors import ArcticError, CatalogUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable, side_root
from dbt_arctic.store.state import keyed_from_view


@dataclass(frozen=True)
class Inventory:
    """The tables and views of a schema by name.

    :param damaged_tables: tables of the catalog whose metadata cannot be read, and why.
    :param keyed: the keyed tables.
    :param invalid_views: the keyed views with invalid properties.
    """

    catalog: str
    schema: str
    tables: Mapping[str, TableState]
    views: Mapping[str, ViewState]
    damaged_tables: Mapping[str, CatalogUnavailable]
    damaged_views: Mapping[str, CatalogUnavailable]
    keyed: Mapping[str, KeyedTable]
    invalid_views: Mapping[str, ArcticError]

    def name(self, identifier: str) -> Name:
        """The full name of an identifier in the schema."""
        return Name(self.catalog, self.schema, identifier)

    @property
    def has_unreadable_views(self) -> bool:
        """Whether a view cannot be read; it is then unknown which side tables the views refer to."""
        return bool(self.damaged_views or self.invalid_views)

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
        return next((table for table in self.keyed.values() if table.storage_name.identifier == root), None)


def take_inventory(
    catalog: CatalogReader, catalog_name: str, schema: str, only: Collection[str] | None = None
) -> Inventory:
    """Read a schema.

    Relations that disappear in the meantime are left out; damaged ones are kept separately.

    :param only: the names of the relations to read, to which the current side tables of the keyed ones among
        them are added; ``None`` for all.
    """
    reader = catalog.of(Name(catalog_name, schema, ""))
    entries = reader.list_names(schema)
    loaded = _Loaded(reader, schema)
    loaded.load(entry for entry in entries if only is None or entry.name in only)
    keyed: dict[str, KeyedTable] = {}
    invalid_views: dict[str, ArcticError] = {}
    for name, view in loaded.views.items():
        try:
            found = keyed_from_view(Name(catalog_name, schema, name), view)
        except ArcticError as error:
            invalid_views[name] = error
            continue
        if found is not None:
            keyed[name] = found
    if only is not None:
        sides = {side.identifier for table in keyed.values() for side in (table.base, table.change)}
        loaded.load(entry for entry in entries if entry.name in sides and entry.name not in only)
    return Inventory(
        catalog_name,
        schema,
        loaded.tables,
        loaded.views,
        loaded.damaged_tables,
        loaded.damaged_views,
        keyed,
        invalid_views,
    )


@dataclass
class _Loaded:
    """The relations of a schema that were read."""

    reader: CatalogReader
    schema: str
    tables: dict[str, TableState] = field(default_factory=dict)
    views: dict[str, ViewState] = field(default_factory=dict)
    damaged_tables: dict[str, CatalogUnavailable] = field(default_factory=dict)
    damaged_views: dict[str, CatalogUnavailable] = field(default_factory=dict)

    def load(self, entries: Iterable[RelationEntry]) -> None:
        """Read relations."""
        found = list(entries)
        for entry, state in zip(found, self.reader.load_all(self.schema, found), strict=True):
            if isinstance(state, CatalogUnavailable):
                damaged = self.damaged_tables if entry.kind == "table" else self.damaged_views
                damaged[entry.name] = state
            elif isinstance(state, TableState):
                self.tables[entry.name] = state
            elif state is not None:
                self.views[entry.name] = state


def roots(inventory: Inventory) -> set[str]:
    """The names after which the schema's side tables are named, whether or not a view uses them."""
    names = [*inventory.tables, *inventory.damaged_tables]
    return {root for name in names if (root := side_root(name)) is not None}
