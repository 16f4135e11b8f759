"""A catalog without views whose keyed tables have records: the reader that shows a record as a view.

The rest of dbt-arctic finds a keyed table by the properties of its view. This reader returns a record in the
place of that view, so nothing else has to know where the properties are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dbt_arctic.catalog.api import (
    CatalogReader,
    InCatalog,
    Loaded,
    RelationEntry,
    TableState,
    ViewState,
)
from dbt_arctic.catalog.forwarding_reader import ForwardingReader
from dbt_arctic.catalog.load_relations import load_each


class RecordNames(NamedTuple):
    """How records are recognised.

    :param record_of: the name of the record of a keyed table.
    :param recorded: the name of the keyed table whose record would have a name; ``None`` for other names.
    :param is_record: whether a table with these properties is a record.
    :param side_root: the name of the keyed table whose base or change table would have a name; ``None`` for
        other names.
    """

    record_of: Callable[[str], str]
    recorded: Callable[[str], str | None]
    is_record: Callable[[Mapping[str, str]], bool]
    side_root: Callable[[str], str | None]


class WithRecords(ForwardingReader):
    """A ``CatalogReader`` in which records are views. It changes nothing in a catalog that has views."""

    def __init__(self, catalog: CatalogReader, names: RecordNames) -> None:
        super().__init__(catalog)
        self._names = names
        self._others: dict[int, WithRecords] = {}

    @property
    def behind(self) -> CatalogReader:
        """The reader that this one reads from."""
        return self._catalog

    def of(self, name: InCatalog) -> WithRecords:
        catalog = self._catalog.of(name)
        if catalog is self._catalog:
            return self
        return self._others.setdefault(id(catalog), WithRecords(catalog, self._names))

    def list_schemas(self) -> list[str]:
        return self._catalog.list_schemas()

    def list_relations(self, schema: str) -> list[RelationEntry]:
        return self._shown(schema, self._catalog.list_relations(schema), self._record_entry)

    def list_names(self, schema: str) -> list[RelationEntry]:
        entries = self._catalog.list_names(schema)
        roots = {self._names.side_root(entry.name) for entry in entries}

        def shown(schema: str, of: str) -> RelationEntry | None:
            if of in roots and not self.has_views():
                return RelationEntry(schema, of, "view")  # a table without records has no side tables
            entry = self._record_entry(schema, of)
            return None if entry is None else RelationEntry(schema, of, "view")

        return self._shown(schema, entries, shown)

    def load_table(self, schema: str, name: str) -> TableState | None:
        of = self._names.recorded(name)
        if of is not None and self._record(schema, of) is not None:
            return None  # as a view, it is not a table
        return self._catalog.load_table(schema, name)

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self._catalog.load_view(schema, name) or self._record(schema, name)

    def load_all(self, schema: str, entries: Sequence[RelationEntry]) -> list[Loaded]:
        loaded = self._catalog.load_all(schema, entries)
        for place, entry in enumerate(entries):
            # Only these may be a record, or have one.
            if loaded[place] is None if entry.kind == "view" else self._names.recorded(entry.name):
                loaded[place : place + 1] = load_each(self, schema, [entry])
        return loaded

    def _record(self, schema: str, name: str) -> ViewState | None:
        """The record of a keyed table, as a view without a text."""
        if self.has_views():
            return None
        state = self._catalog.load_table(schema, self._names.record_of(name))
        if state is None or not self._names.is_record(state.properties):
            return None
        comment = state.properties.get("comment", "")
        return ViewState(
            schema, name, state.properties, state.columns, "", comment, state.location, is_record=True
        )

    def _record_entry(self, schema: str, name: str) -> RelationEntry | None:
        view = self._record(schema, name)
        return None if view is None else RelationEntry(schema, name, "view", view.properties)

    def _shown(
        self,
        schema: str,
        entries: list[RelationEntry],
        entry_of: Callable[[str, str], RelationEntry | None],
    ) -> list[RelationEntry]:
        """A listing with records as views. In a catalog without views, nothing else has their names.

        :param entry_of: the entry of a keyed table by its schema and name; ``None`` if it has no record.
        """
        if not any(self._names.recorded(entry.name) for entry in entries):
            return entries
        shown = []
        for entry in entries:
            of = self._names.recorded(entry.name) if entry.kind == "table" else None
            shown.append((None if of is None else entry_of(schema, of)) or entry)
        return sorted(shown, key=lambda entry: entry.name)
