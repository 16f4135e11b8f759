"""Chooses for a profile: a Spark in this process or a server; the reader of its catalog."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dbt.adapters.events.logging import AdapterLogger

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.profile_methods import SERVERS
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.by_sql import Run, SparkSqlCatalog
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.multi_catalog import together
from dbt_arctic.catalog.open import open_catalog
from dbt_arctic.catalog.translate import names_a_kind, sqlite_file
from dbt_arctic.catalog.without_views import RecordNames, WithRecords
from dbt_arctic.engine import server, start_notices
from dbt_arctic.engine.api import Engine
from dbt_arctic.engine.connect import ConnectEngine
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import OtherCatalog
from dbt_arctic.engine.thrift import ThriftEngine
from dbt_arctic.keyed.table import is_keyed, side_root
from dbt_arctic.keyed.without_views import record_of, recorded

logger = AdapterLogger("Arctic")

RECORDS = RecordNames(record_of, recorded, is_keyed, side_root)
HAVE_VIEWS = (EmbeddedCatalog,)
"""The readers of catalogs that have views in any case."""


class ChosenEngine(NamedTuple):
    """An engine and its description."""

    engine: Engine
    description: str


def choose_engine(
    credentials: ArcticCredentials, project_root: str | None, connectors: tuple[str, ...] = ()
) -> ChosenEngine:
    """The Spark that a profile uses.

    It is the server of the profile; otherwise the project's own, if it is running; otherwise a Spark in this
    process.

    :param connectors: the formats that the project reads and that are not a part of Spark.
    """
    if credentials.method == "connect":
        settings = credentials.connect_settings()
        return ChosenEngine(ConnectEngine(settings), f"Spark Connect server {settings.endpoint}")
    if credentials.method == "thrift":
        by_sql = credentials.thrift_settings()
        return ChosenEngine(ThriftEngine(by_sql), f"Spark Thrift server {by_sql.endpoint}")
    embedded = credentials.spark_settings(project_root)
    running = server.usable_server(project_folder(project_root), embedded) if credentials.use_server else None
    if running is not None:
        described = f"the project's own server, process {running.pid}"
        logger.debug(f"Spark: {described}")
        return ChosenEngine(ConnectEngine(running.connect_settings(embedded)), described)
    embedded = replace(embedded, connectors=tuple(sorted({*embedded.connectors, *connectors})))
    if not start_notices.is_reported():  # dbt-arctic reports to stderr itself
        start_notices.report_to(lambda text: logger.info(text))
    return ChosenEngine(SessionEngine(embedded), f"Spark in this process, {embedded.master}")


def choose_catalog(credentials: ArcticCredentials, project_root: str | None, run: Run) -> CatalogReader:
    """A reader of the profile's own catalog, which leads to those of its other catalogs.

    It uses SQL if the server defines a catalog, or its file is not local.
    """
    if credentials.method in SERVERS:
        properties = credentials.iceberg_properties
        own = _by_server(OtherCatalog(credentials.database, credentials.warehouse or "", properties), run)
    else:
        settings = credentials.spark_settings(project_root)
        own = open_catalog(settings.catalog, settings.warehouse, settings.catalog_properties, run)
    readers = {credentials.database: own}
    for other in credentials.other_catalogs(project_root):
        if credentials.method in SERVERS or other.properties is None:
            readers[other.name] = _by_server(other, run)
        else:
            readers[other.name] = open_catalog(other.name, other.warehouse, other.properties, run)
    found = together(readers)
    have_views = all(isinstance(reader, HAVE_VIEWS) for reader in readers.values())
    return found if have_views else WithRecords(found, RECORDS)


def _by_server(catalog: OtherCatalog, run: Run) -> CatalogReader:
    """The reader of a catalog that a server opens, or that Spark's configuration defines."""
    properties = catalog.properties or {}
    file = sqlite_file(properties.get("uri", ""))
    if not names_a_kind(properties) or (file and not Path(file).exists()):
        return SparkSqlCatalog(catalog.name, run)
    return open_catalog(catalog.name, catalog.warehouse, properties, run)


def cores_of(credentials: ArcticCredentials) -> int | None:
    """The cores of a local Spark; ``None`` for a remote one."""
    return credentials.spark_settings().cores if credentials.method == "session" else None


def project_folder(project_root: str | None) -> Path:
    """The folder that a server belongs to."""
    return Path(project_root or ".").resolve()
