"""The catalog of the embedded engine: a SQLite file in the warehouse folder, and metadata files.

It is read with the standard library alone, because loading pyiceberg takes a third of a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbt_arctic.catalog.jdbc import JdbcCatalog
from dbt_arctic.catalog.sqlite import BUSY_SECONDS, SqliteRows

CATALOG_FILE = "catalog.db"


class EmbeddedCatalog(JdbcCatalog):
    """Reads ``<warehouse>/catalog.db`` and the metadata files that it refers to. A ``CatalogReader``.

    :param name: Spark's name of the catalog: the file may hold several.
    :param warehouse: the folder. Without a catalog file it is an empty catalog, and no file is created.
    :param file: the SQLite file, if it is not ``<warehouse>/catalog.db``.
    :param properties: pyiceberg FileIO properties, for tables whose location is not on this machine.
    """

    def __init__(
        self,
        name: str,
        warehouse: str | Path,
        file: str | Path | None = None,
        properties: Mapping[str, str] | None = None,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        path = Path(file) if file else Path(warehouse) / CATALOG_FILE
        super().__init__(name, SqliteRows(name, path, busy_seconds), properties)


__all__ = ["CATALOG_FILE", "EmbeddedCatalog"]
