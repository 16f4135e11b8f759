"""The folder of the embedded catalog, made before Spark opens it."""

from __future__ import annotations

from dbt_arctic.engine.settings import SparkSettings, is_embedded, local_warehouse
from dbt_arctic.errors import CatalogUnavailable


def prepare_warehouse(settings: SparkSettings) -> None:
    """Make the embedded catalog's folder: SQLite creates its file, but no folder above it."""
    folder = local_warehouse(settings)
    if folder is None or not is_embedded(settings):
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CatalogUnavailable(
            "The warehouse folder cannot be made.",
            where=str(folder),
            why=str(error),
            fix="Choose a folder that you may write to: `warehouse` in the profile.",
        ) from error
