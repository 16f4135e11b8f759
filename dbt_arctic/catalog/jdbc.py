"""Reads Iceberg's JDBC catalog: its rows in a database, and the metadata files that they refer to.

Spark writes the catalog. It is not read with pyiceberg's catalog, which does not support views. Only lists of
data files need pyiceberg's Avro reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar

from dbt_arctic import secret
from dbt_arctic.catalog.api import (
    ArrowTable,
    CatalogColumn,
    DataFile,
    ListedFile,
    Loaded,
    PlacedFile,
    RelationEntry,
    StoredFile,
    TableState,
    ViewState,
)
from dbt_arctic.catalog.damage import unreadable_metadata
from dbt_arctic.catalog.files import LruCache, read_bytes
from dbt_arctic.catalog.folder_listing import list_files
from dbt_arctic.catalog.jdbc_rows import JdbcRows, Row
from dbt_arctic.catalog.metadata import TableMetadata, read_table, read_view
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.catalog.snapshot_files import (
    existing,
    no_table,
    snapshot_columns,
    snapshot_files,
    snapshot_placed_files,
    snapshot_stored_files,
)
from dbt_arctic.errors import CatalogUnavailable

T = TypeVar("T")


class JdbcCatalog(OneCatalog):
    """A catalog in a database. A ``CatalogReader``.

    :param name: Spark's name of the catalog: the database may hold several.
    :param properties: pyiceberg FileIO properties, for files that are not on this machine.
    :raises CatalogUnavailable: (any method) the catalog or a metadata file cannot be read.
    """

    needs_spark: ClassVar[bool] = False

    def __init__(self, name: str, rows: JdbcRows, properties: Mapping[str, str] | None = None) -> None:
        self._name = name
        self._rows = rows
        self._properties = dict(properties or {})
        secret.remember(self._properties)
        # Keyed by row, not only by location: a rename keeps the location but changes the names.
        self._tables: LruCache[Row, TableMetadata] = LruCache(limit=1024)
        self._views: LruCache[Row, ViewState] = LruCache(limit=4096)

    def has_views(self) -> bool:
        return self._rows.has_views()

    def list_schemas(self) -> list[str]:
        return self._rows.schemas()

    def list_relations(self, schema: str) -> list[RelationEntry]:
        entries: list[RelationEntry] = []
        for row in self._rows.relations(schema):
            if row.kind == "table":
                entries.append(RelationEntry(schema, row.name, "table"))
            else:
                # None: dropped since the rows were read.
                view = self._current(row, self._view)
                if view is not None:
                    entries.append(RelationEntry(schema, row.name, "view", view.properties))
        return entries

    def list_names(self, schema: str) -> list[RelationEntry]:
        return [RelationEntry(schema, row.name, row.kind) for row in self._rows.relations(schema)]

    def load_table(self, schema: str, name: str) -> TableState | None:
        metadata = self._load(schema, name, "table", self._table)
        return metadata.state if metadata else None

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self._load(schema, name, "view", self._view)

    def load_all(self, schema: str, entries: Sequence[RelationEntry]) -> list[Loaded]:
        # One query for all of them, and none of them read twice.
        rows = {row.name: row for row in self._rows.relations(schema)} if entries else {}
        return [self._loaded(rows.get(entry.name), entry) for entry in entries]

    def _loaded(self, row: Row | None, entry: RelationEntry) -> Loaded:
        if row is None or row.kind != entry.kind:
            return None
        try:
            if row.kind == "view":
                return self._current(row, self._view)
            table = self._current(row, self._table)
            return table.state if table else None
        except CatalogUnavailable as error:
            return error

    def columns_at(self, schema: str, name: str, snapshot_id: int) -> dict[str, CatalogColumn]:
        metadata = self._load(schema, name, "table", self._table)
        return snapshot_columns(self._name, schema, name, metadata, snapshot_id)

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        metadata = self._load(schema, name, "table", self._table)
        return snapshot_files(self._name, schema, name, metadata, snapshot_id, column, self._properties)

    def stored_files(self, schema: str, name: str, snapshot_id: int) -> list[StoredFile]:
        metadata = self._load(schema, name, "table", self._table)
        return snapshot_stored_files(self._name, schema, name, metadata, snapshot_id, self._properties)

    def placed_files(self, schema: str, name: str, snapshot_id: int, column: str = "") -> list[PlacedFile]:
        metadata = self._load(schema, name, "table", self._table)
        return snapshot_placed_files(
            self._name, schema, name, metadata, snapshot_id, column, self._properties
        )

    def read_rows(
        self, schema: str, name: str, columns: Sequence[str], snapshot_id: int | None = None
    ) -> list[tuple[Any, ...]]:
        from dbt_arctic.catalog.table_scan import TableFiles

        def read(row: Row) -> list[tuple[Any, ...]]:
            files = TableFiles(f"{self._name}.{schema}.{name}", self._table(row), self._properties)
            return files.tuples(columns, snapshot_id)

        found = self._load(schema, name, "table", read)
        if found is None:
            raise no_table(f"{self._name}.{schema}.{name}")
        return found

    def arrow_table(self, schema: str, name: str) -> ArrowTable:
        metadata = existing(f"{self._name}.{schema}.{name}", self._load(schema, name, "table", self._table))
        from dbt_arctic.catalog.table_scan import TableFiles

        return TableFiles(f"{self._name}.{schema}.{name}", metadata, self._properties)

    def list_files(self, folder: str) -> list[ListedFile]:
        return list_files(folder, self._properties)

    def _load(
        self, schema: str, name: str, kind: Literal["table", "view"], read: Callable[[Row], T]
    ) -> T | None:
        rows = [row for row in self._rows.relations(schema, name) if row.kind == kind]
        return self._current(rows[0], read) if rows else None

    def _current(self, row: Row, read: Callable[[Row], T]) -> T | None:
        """The metadata that ``row`` refers to; ``None`` if the relation was changed since.

        A missing file is an error only if the catalog still refers to it, because a commit or a drop between
        the two reads removes old files.
        """
        while True:
            try:
                return read(row)
            except CatalogUnavailable:
                again = self._rows.relations(row.schema, row.name)
                if again == [row]:
                    raise
                if not again or again[0].kind != row.kind:
                    return None
                row = again[0]

    def _table(self, row: Row) -> TableMetadata:
        return self._tables.get(row, lambda: self._document(row, read_table))

    def _view(self, row: Row) -> ViewState:
        return self._views.get(row, lambda: self._document(row, read_view))

    def _document(self, row: Row, read: Callable[[str, str, dict[str, Any]], T]) -> T:
        try:
            return read(row.schema, row.name, json.loads(self._bytes(row)))
        except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
            raise unreadable_metadata(
                self._name, row.schema, row.name, row.kind, row.metadata_location, error
            ) from error

    def _bytes(self, row: Row) -> bytes:
        return read_bytes(row.metadata_location, self._properties)
