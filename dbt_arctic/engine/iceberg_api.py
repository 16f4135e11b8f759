"""Loads tables with Iceberg's own classes in a Spark of this process, for what needs no statement."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dbt_arctic.engine.active_session import active_session

_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_MISSING = "org.apache.iceberg.exceptions.NoSuchTableException"


def iceberg_catalog(session: Any, name: str) -> Any:
    """Iceberg's catalog behind one of a session's catalogs; ``None`` if it has no such catalog."""
    manager = session._jsparkSession.sessionState().catalogManager()
    with active_session(session):
        if not manager.isCatalogRegistered(name):
            return None
        spark_catalog = manager.catalog(name)
    return spark_catalog.icebergCatalog() if spark_catalog.getClass().getName() == _CATALOG else None


def loaded_table(catalog: Any, table: Any) -> Any:
    """A table; ``None`` if it does not exist. Asking whether it exists would load it as well."""
    from py4j.protocol import Py4JJavaError

    try:
        return catalog.loadTable(table)
    except Py4JJavaError as error:
        if error.java_exception.getClass().getName() != _MISSING:
            raise
    return None


def table_identifier(session: Any, schema: str, name: str) -> Any:
    """Iceberg's identifier of a table."""
    gateway = session.sparkContext._gateway
    string, namespace, identifier = _classes(gateway)
    levels = gateway.new_array(string, 1)
    levels[0] = schema
    return identifier.of(namespace.of(levels), name)


@lru_cache(maxsize=1)
def _classes(gateway: Any) -> tuple[Any, Any, Any]:
    """Java's classes, once for each Spark: py4j tries each part of a name as a class in each jar."""
    iceberg = gateway.jvm.org.apache.iceberg.catalog
    return gateway.jvm.java.lang.String, iceberg.Namespace, iceberg.TableIdentifier
