"""The folder of the embedded catalog, made before Spark opens it."""

from __future__ import annotations

import os
from contextlib import suppress
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
    except OSError as error:
        raise CatalogUnavailable(
            "The warehouse folder or the catalog's file in it cannot be made.",
            where=str(folder),
            why=str(error),
            fix="Choose a folder that you may write to: `warehouse` in the profile.",
        ) from error
