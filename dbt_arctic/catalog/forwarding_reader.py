"""The part of a ``CatalogReader`` that only passes questions on to the reader behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dbt_arctic.catalog.api import (
    ArrowTable,
    CatalogColumn,
    CatalogReader,
    DataFile,
    InCatalog,
    ListedFile,
    PlacedFile,
    StoredFile,
)


class ForwardingReader:
    """Base of readers that change some answers of another one."""

    def __init__(self, catalog: CatalogReader) -> None:
        self._catalog = catalog

    def names_with(self, name: InCatalog) -> Sequence[str]:
        return self._catalog.names_with(name)

    @property
    def needs_spark(self) -> bool:
        return self._catalog.needs_spark

    def has_views(self) -> bool:
        return self._catalog.has_views()

    def columns_at(self, schema: str, name: str, snapshot_id: int) -> dict[str, CatalogColumn]:
        return self._catalog.columns_at(schema, name, snapshot_id)

    def data_files(self, schema: str, name: str, snapshot_id: int, column: str) -> list[DataFile]:
        return self._catalog.data_files(schema, name, snapshot_id, column)

    def stored_files(self, schema: str, name: str, snapshot_id: int) -> list[StoredFile]:
        return self._catalog.stored_files(schema, name, snapshot_id)

    def placed_files(self, schema: str, name: str, snapshot_id: int, column: str = "") -> list[PlacedFile]:
        return self._catalog.placed_files(schema, name, snapshot_id, column)

    def read_rows(
        self, schema: str, name: str, columns: Sequence[str], snapshot_id: int | None = None
    ) -> list[tuple[Any, ...]]:
        return self._catalog.read_rows(schema, name, columns, snapshot_id)

    def arrow_table(self, schema: str, name: str) -> ArrowTable:
        return self._catalog.arrow_table(schema, name)

    def list_files(self, folder: str) -> list[ListedFile]:
        return self._catalog.list_files(folder)
