"""Which reader serves which catalog: decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.by_sql import Run, SqlCatalog
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.files import local_path
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.catalog.translate import catalog_kind, names_a_kind, pyiceberg_properties, sqlite_file


def open_catalog(name: str, warehouse: str | Path, properties: Mapping[str, str], run: Run) -> CatalogReader:
    """The reader of the catalog that Spark calls ``name``. Opens nothing yet.

    :param warehouse: the folder or location that the profile names.
    :param properties: what the profile sets below ``spark.sql.catalog.<name>.``; with neither ``type``
        nor ``catalog-impl`` the catalog is the embedded one.
    :param run: executes a statement on Spark; called only for what nothing else can read.
    """
    named = names_a_kind(properties)
    # SQLite is read directly in either case: pyiceberg would want SQLAlchemy and know no views.
    file = sqlite_file(properties.get("uri", "")) if not named or catalog_kind(properties) == "jdbc" else None
    if file or not named:
        return EmbeddedCatalog(name, _folder(warehouse), file=file, properties=properties)
    by_sql = SqlCatalog(name, run)
    # Spark is given the profile's warehouse where the properties have none.
    translated = pyiceberg_properties({"warehouse": str(warehouse), **properties})
    if translated is None:
        return by_sql
    return RemoteCatalog(name, translated, by_sql, views_by_sql=catalog_kind(properties) != "rest")


def _folder(warehouse: str | Path) -> Path:
    """The warehouse as Spark understands it: ``~`` and ``file:`` are allowed."""
    return Path(local_path(str(warehouse)) or warehouse).expanduser()
