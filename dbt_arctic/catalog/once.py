"""A cached view of a catalog: each relation is read only once, regardless of the number of requests.

For read-only commands (``status``, ``report``) with hundreds of tables that refer to each other. Code that
decides what to write, or waits for another writer, must use the catalog itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt_arctic.catalog.api import (
    CatalogReader,
    InCatalog,
    Loaded,
    RelationEntry,
    TableState,
    ViewState,
)
from dbt_arctic.catalog.forwarding_reader import ForwardingReader
from dbt_arctic.errors import CatalogUnavailable


class Once(ForwardingReader):
    """A caching ``CatalogReader``. Errors are not cached: an unreadable relation is read again each time."""

    def __init__(self, catalog: CatalogReader) -> None:
        super().__init__(catalog)
        self._others: dict[int, Once] = {}
        self._schemas: list[str] | None = None
        self._names: dict[str, list[RelationEntry]] = {}
        self._relations: dict[str, list[RelationEntry]] = {}
        self._tables: dict[tuple[str, str], TableState | None] = {}
        self._views: dict[tuple[str, str], ViewState | None] = {}

    def of(self, name: InCatalog) -> Once:
        catalog = self._catalog.of(name)
        if catalog is self._catalog:
            return self
        # By the reader and not by the name, which may be written with other capitals.
        return self._others.setdefault(id(catalog), Once(catalog))

    def list_schemas(self) -> list[str]:
        if self._schemas is None:
            self._schemas = self._catalog.list_schemas()
        return self._schemas

    def list_relations(self, schema: str) -> list[RelationEntry]:
        if schema not in self._relations:
            self._relations[schema] = self._catalog.list_relations(schema)
        return self._relations[schema]

    def list_names(self, schema: str) -> list[RelationEntry]:
        if schema not in self._names:
            self._names[schema] = self._catalog.list_names(schema)
        return self._names[schema]

    def load_all(self, schema: str, entries: Sequence[RelationEntry]) -> list[Loaded]:
        missing = [one for one in entries if (schema, one.name) not in self._kept(one)]
        states = iter(self._catalog.load_all(schema, missing))
        found: list[Loaded] = []
        for entry in entries:
            kept, key = self._kept(entry), (schema, entry.name)
            state = kept[key] if key in kept else next(states)
            if not isinstance(state, CatalogUnavailable):
                kept[key] = state
            found.append(state)
        return found

    def _kept(self, entry: RelationEntry) -> dict[Any, Any]:
        return self._tables if entry.kind == "table" else self._views

    def load_table(self, schema: str, name: str) -> TableState | None:
        if (schema, name) not in self._tables:
            self._tables[schema, name] = self._catalog.load_table(schema, name)
        return self._tables[schema, name]

    def load_view(self, schema: str, name: str) -> ViewState | None:
        if (schema, name) not in self._views:
            self._views[schema, name] = self._catalog.load_view(schema, name)
        return self._views[schema, name]
