"""Chooses the reader of a catalog."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.by_sql import Run, SparkSqlCatalog
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.files import is_in_hadoop, local_path
from dbt_arctic.catalog.jdbc import JdbcCatalog
from dbt_arctic.catalog.remote import RemoteCatalog
from dbt_arctic.catalog.sqlalchemy_rows import SqlAlchemyRows
from dbt_arctic.catalog.translate import (
    catalog_kind,
    missing_extra,
    names_a_kind,
    pyiceberg_properties,
    sqlite_file,
)


def open_catalog(name: str, warehouse: str | Path, properties: Mapping[str, str], run: Run) -> CatalogReader:
    """The reader of the catalog that Spark calls ``name``. Does not open it yet.

    :param warehouse: the folder or location of the profile.
    :param properties: the settings of the profile below ``spark.sql.catalog.<name>.``. With neither ``type``
        nor ``catalog-impl``, this is the embedded catalog.
    :param run: executes a statement on Spark. It is called only for what cannot be read otherwise: all
        metadata in HDFS, and what pyiceberg does not support.
    """
    named = names_a_kind(properties)
    # SQLite is read with the standard library alone, without SQLAlchemy, which other databases need.
    file = sqlite_file(properties.get("uri", "")) if not named or catalog_kind(properties) == "jdbc" else None
    if file or not named:
        return EmbeddedCatalog(name, _folder(warehouse), file=file, properties=properties)
    if is_in_hadoop(properties.get("warehouse", str(warehouse))):
        return SparkSqlCatalog(name, run)
    by_sql = SparkSqlCatalog(name, run, missing_extra(properties))
    # Spark uses the warehouse of the profile if the properties have none.
    translated = pyiceberg_properties({"warehouse": str(warehouse), **properties})
    if translated is None:
        return by_sql
    if translated["type"] == "sql":
        wants_views = properties.get("jdbc.schema-version", "").upper() == "V1"
        return JdbcCatalog(name, SqlAlchemyRows(name, translated["uri"], wants_views=wants_views), translated)
    return RemoteCatalog(name, translated, by_sql, views_by_sql=catalog_kind(properties) != "rest")


def _folder(warehouse: str | Path) -> Path:
    """The warehouse path as Spark interprets it: ``~`` and ``file:`` are allowed."""
    return Path(local_path(str(warehouse)) or warehouse).expanduser()
