"""Asks a Hive metastore whether it compares the location of a table's metadata with each commit (HIVE-26882).

Without locks, Iceberg's client relies on this. It compares the location by itself before, so only a call
of the metastore shows what the server does. It needs a Spark in this process, for Java's client.
"""

from __future__ import annotations

from typing import Any

_HIVE_CATALOG = "org.apache.iceberg.hive.HiveCatalog"
_LOCKS = "iceberg.engine.hive.lock-enabled"
_REFUSAL = "The table has been modified"
_EXPECTED = {
    "expected_parameter_key": "metadata_location",
    "expected_parameter_value": "dbt-arctic: no location",
}


def ignores_location(jvm: Any, catalog: Any, schema: str, table: str) -> bool:
    """Whether a catalog commits without locks to a metastore that compares nothing.

    Writes the entry of the table again, as it is, with an expected location that it does not have.

    :param catalog: Iceberg's catalog, of any class.
    """
    from py4j.protocol import Py4JJavaError

    if catalog.getClass().getName() != _HIVE_CATALOG:
        return False
    conf = catalog.getConf()
    if conf.get(_LOCKS, "true") != "false":
        return False
    kind = jvm.java.lang.Class.forName("org.apache.hadoop.hive.conf.HiveConf")
    metastore = jvm.org.apache.hadoop.hive.metastore
    client = metastore.HiveMetaStoreClient(jvm.org.apache.hadoop.hive.conf.HiveConf(conf, kind))
    try:
        environment = metastore.api.EnvironmentContext()
        for name, value in _EXPECTED.items():
            environment.putToProperties(name, value)
        entry = client.getTable(schema, table)
        client.alter_table_with_environmentContext(schema, table, entry, environment)
    except Py4JJavaError as error:
        if _REFUSAL in str(error.java_exception.getMessage()):
            return False
        raise
    finally:
        client.close()
    return True


__all__ = ["ignores_location"]
