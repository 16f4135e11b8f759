"""The folder of the embedded catalog, made before Spark opens it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from dbt_arctic.engine.settings import SparkSettings, catalog_conf, is_embedded, local_warehouse
from dbt_arctic.errors import CatalogUnavailable

_SQLITE = "jdbc:sqlite:"


def catalog_file(settings: SparkSettings) -> Path | None:
    """The embedded catalog's SQLite file; ``None`` where the catalog is another one."""
    if local_warehouse(settings) is None or not is_embedded(settings):
        return None
    uri = catalog_conf(settings)["uri"]
    return Path(uri.removeprefix(_SQLITE).partition("?")[0]) if uri.startswith(_SQLITE) else None


_TABLES = (
    "CREATE TABLE IF NOT EXISTS iceberg_tables (catalog_name VARCHAR(255) NOT NULL, "
    "table_namespace VARCHAR(255) NOT NULL, table_name VARCHAR(255) NOT NULL, "
    "metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5), "
    "PRIMARY KEY (catalog_name, table_namespace, table_name))",
    "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, "
    "namespace VARCHAR(255) NOT NULL, property_key VARCHAR(255), property_value VARCHAR(1000), "
    "PRIMARY KEY (catalog_name, namespace, property_key))",
)
"""Those of Iceberg's JDBC catalog, schema version V1."""


def _make_tables(file: Path) -> None:
    """Make the catalog's tables, as Iceberg would at its first use: there two sessions at once both add the
    column of V1, and one of them fails.
    """
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute("COMMIT")


def prepare_warehouse(settings: SparkSettings) -> None:
    """Make the embedded catalog's folder and file, which nobody but the user can read.

    SQLite would make the file as the process makes files, and no folder. What it makes beside it, a journal,
    gets the file's own permissions. A folder or file that is there stays as it is: a team may share it.
    """
    folder = local_warehouse(settings)
    if folder is None or not is_embedded(settings):
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        file = catalog_file(settings)
        if file is not None:
            # An empty file is an empty database to SQLite.
            with suppress(FileExistsError):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                _make_tables(file)
    except (OSError, sqlite3.Error) as error:
        raise CatalogUnavailable(
            "The warehouse folder or the catalog file in it cannot be created.",
            where=str(folder),
            why=str(error),
            fix="Set `warehouse` in the profile to a folder with write permission.",
        ) from error
