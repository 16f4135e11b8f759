"""Which reader serves which catalog: decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.by_sql import Run, SqlCatalog
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.catalog.translate import catalog_kind, pyiceberg_properties, sqlite_file


def open_catalog(name: str, warehouse: str | Path, properties: Mapping[str, str], run: Run) -> CatalogReader:
    """The reader of the catalog that Spark calls ``name``. Opens nothing yet.

    :param warehouse: the folder of the embedded catalog.
    :param properties: what the profile sets below ``spark.sql.catalog.<name>.``; empty for the
        embedded catalog.
    :param run: executes a statement on Spark; called only for what nothing else can read.
    """
    if not properties:
        return EmbeddedCatalog(name, warehouse)
    if catalog_kind(properties) == "jdbc" and (file := sqlite_file(properties.get("uri", ""))):
        return EmbeddedCatalog(name, warehouse, file=file, properties=properties)
    by_sql = SqlCatalog(name, run)
    translated = pyiceberg_properties(properties)
    if translated is None:
        return by_sql
    return RemoteCatalog(name, translated, by_sql, views_by_sql=catalog_kind(properties) != "rest")
