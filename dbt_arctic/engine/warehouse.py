"""Creates the folder of the embedded catalog before Spark opens it, and checks those of other catalogs."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from dbt_arctic.engine.settings import (
    SparkSettings,
    catalog_conf,
    each_catalog,
    is_embedded,
    local_warehouse,
)
from dbt_arctic.errors import CatalogUnavailable

_SQLITE = "jdbc:sqlite:"


def catalog_file(settings: SparkSettings) -> Path | None:
    """The SQLite file of the embedded catalog; ``None`` for any other catalog."""
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
"""The tables of Iceberg's JDBC catalog, schema version V1."""


def _make_tables(file: Path) -> None:
    """Create the tables of the catalog, as Iceberg would on its first use.

    In Iceberg, two concurrent sessions both add the column of V1, and one of them fails.
    """
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute("COMMIT")


def prepare_warehouses(settings: SparkSettings) -> None:
    """Create what the embedded catalog needs, and check that other embedded catalogs exist.

    An empty folder becomes a new catalog.

    :raises CatalogUnavailable: the folder cannot be created, or another catalog does not exist. It may
        belong to another project, and an empty one in its place would hide a wrong path.
    """
    own, *others = each_catalog(settings)
    prepare_warehouse(own)
    for other in others:
        file = catalog_file(other)
        if file is None or file.exists():
            continue
        folder = local_warehouse(other)
        if folder is not None and folder.is_dir() and not any(folder.iterdir()):
            prepare_warehouse(other)
            continue
        raise CatalogUnavailable(
            f"There is no catalog {other.catalog} in its warehouse.",
            where=str(file),
            why="The file does not exist, and only an empty folder becomes a new catalog.",
            fix=f"correct profiles.yml, catalogs: {other.catalog}; or run the project that builds it. "
            f"For a new catalog: mkdir -p {folder}",
        )


def prepare_warehouse(settings: SparkSettings) -> None:
    """Create the folder and file of the embedded catalog, which only the user can read.

    SQLite would create the file with default permissions, and no folder. Its journal gets the permissions of
    the file. An existing folder or file is unchanged, because a team may share it. Git ignores a new folder.
    """
    folder = local_warehouse(settings)
    if folder is None or not is_embedded(settings):
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            # Keeps the data out of the project's repository, as caches of other programs do.
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        file = catalog_file(settings)
        if file is not None:
            # SQLite treats an empty file as an empty database.
            with suppress(FileExistsError):
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                _make_tables(file)
    except (OSError, sqlite3.Error) as error:
        raise CatalogUnavailable(
            "The warehouse folder or the catalog file in it cannot be created.",
            where=str(folder),
            why=str(error),
            fix="set `warehouse` in the profile to a folder with write permission",
        ) from error
