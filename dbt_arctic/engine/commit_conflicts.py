"""Tests whether a catalog refuses a commit that was prepared on an old version, with Iceberg's own classes.

SQL cannot show this, because each statement reads the newest version before it commits. The test requires a
Spark in this process, because Spark Connect gives no access to Java.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from dbt_arctic.engine.api import Connection
from dbt_arctic.engine.hive_commit_check import ignores_location
from dbt_arctic.engine.iceberg_api import iceberg_catalog, table_identifier
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.engine.translate import translated
from dbt_arctic.errors import ConfigError

_BRANCH = "arctic_stale_commit"
_ICEBERG = "org.apache.iceberg"
_COMPARING = {
    f"{_ICEBERG}.jdbc.JdbcCatalog",
    f"{_ICEBERG}.hive.HiveCatalog",
    f"{_ICEBERG}.aws.glue.GlueCatalog",
}
"""Iceberg's own catalogs whose client compares the location of the metadata with each commit."""
_HADOOP = f"{_ICEBERG}.hadoop.HadoopCatalog"
_WITH_ATOMIC_RENAME = {"", "file", "hdfs", "viewfs"}
"""The schemes of file systems in which a file cannot replace another one of its name."""

_comparing: set[tuple[str, str]] = set()
"""The catalogs that have refused a commit in this process, by name and address."""


def require_commit_conflicts(connection: Connection, catalog: str, schema: str, table: str) -> None:
    """Check that a catalog refuses the second of two commits on one version of a table that has a snapshot.

    It is tried once in a process, and not with Iceberg's own catalogs that are known to do so. A server of
    Spark cannot try it.

    :raises ConfigError: the catalog would let two writers overwrite each other's commits.
    """
    if not isinstance(connection, SessionConnection):
        return
    session = connection.session
    with translated(f"two commits on one version of {schema}.{table}", connection.process):
        opened = iceberg_catalog(session, catalog)
        kind = "" if opened is None else opened.getClass().getName()
        prefix = f"spark.sql.catalog.{catalog}"
        tried = catalog, session.conf.get(f"{prefix}.uri", "")
        if opened is None or kind in _COMPARING or tried in _comparing:
            return
        loaded = opened.loadTable(table_identifier(session, schema, table))
        if kind == _HADOOP and not session.conf.get(f"{prefix}.lock-impl", ""):
            refuses = urlsplit(loaded.location()).scheme in _WITH_ATOMIC_RENAME
        else:
            refuses = refuses_stale_commit(session, catalog, schema, table)
            loaded.refresh()
            if loaded.refs().containsKey(_BRANCH):
                loaded.manageSnapshots().removeBranch(_BRANCH).commit()
    if not refuses:
        raise ConfigError(
            f"the catalog `{catalog}` accepts two commits on one version of a table",
            where=f"{catalog}.{schema}.{table}",
            why="two writers would overwrite each other's rows; nothing was published",
            fix="use another catalog, such as postgres, rest or hive; `dbt debug` shows what it can do",
        )
    _comparing.add(tried)


def refuses_stale_commit(session: Any, catalog: str, schema: str, table: str) -> bool:
    """Commit twice on the same version of a table that has a snapshot.

    Both commits create one branch. So a REST catalog, which checks the references that a commit changes, sees
    the conflict as well as a catalog that compares the location of the metadata.

    :returns: whether the catalog refuses the second commit.
    """
    from py4j.protocol import Py4JJavaError

    iceberg = session.sparkContext._gateway.jvm.org.apache.iceberg
    # Of any class that has a catalog of Iceberg, unlike ``iceberg_catalog``.
    opened = session._jsparkSession.sessionState().catalogManager().catalog(catalog).icebergCatalog()
    name = table_identifier(session, schema, table)
    writers = [opened.loadTable(name).operations() for _ in range(2)]
    prepared = []
    for writer in writers:
        base = writer.current()
        branch = iceberg.SnapshotRef.branchBuilder(base.currentSnapshot().snapshotId()).build()
        prepared.append((base, iceberg.TableMetadata.buildFrom(base).setRef(_BRANCH, branch).build()))
    writers[0].commit(*prepared[0])
    try:
        writers[1].commit(*prepared[1])
    except Py4JJavaError as error:
        if "CommitFailedException" not in str(error.java_exception.getClass().getName()):
            raise
        return not ignores_location(session.sparkContext._gateway.jvm, opened, schema, table)
    return False
