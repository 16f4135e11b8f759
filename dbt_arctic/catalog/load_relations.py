"""Loads the relations of a listing one after the other, and keeps the error of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dbt_arctic.catalog.api import Loaded, RelationEntry, TableState, ViewState
from dbt_arctic.errors import CatalogUnavailable


class LoadsRelations(Protocol):
    """The part of a ``CatalogReader`` that loads one relation."""

    def load_table(self, schema: str, name: str) -> TableState | None:
        """Load a table."""
        ...

    def load_view(self, schema: str, name: str) -> ViewState | None:
        """Load a view."""
        ...


def load_each(reader: LoadsRelations, schema: str, entries: Sequence[RelationEntry]) -> list[Loaded]:
    """Load relations with one request for each."""
    return [_load(reader, schema, entry) for entry in entries]


def _load(reader: LoadsRelations, schema: str, entry: RelationEntry) -> Loaded:
    try:
        if entry.kind == "table":
            return reader.load_table(schema, entry.name)
        return reader.load_view(schema, entry.name)
    except CatalogUnavailable as error:
        return error


__all__ = ["LoadsRelations", "load_each"]
