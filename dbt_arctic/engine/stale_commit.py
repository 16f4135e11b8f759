"""Tests whether a catalog refuses a commit that was prepared on an old version, with Iceberg's own classes.

SQL cannot show this, because each statement reads the newest version before it commits. The test requires a
Spark in this process, because Spark Connect gives no access to Java.
"""

from __future__ import annotations

from typing import Any

_BRANCH = "arctic_stale_commit"


def refuses_stale_commit(session: Any, catalog: str, schema: str, table: str) -> bool:
    """Commit twice on the same version of a table that has a snapshot.

    Both commits create one branch. So a REST catalog, which checks the references that a commit changes, sees
    the conflict as well as a catalog that compares the location of the metadata.

    :returns: whether the catalog refuses the second commit.
    """
    from py4j.protocol import Py4JJavaError

    gateway = session.sparkContext._gateway
    iceberg = gateway.jvm.org.apache.iceberg
    opened = session._jsparkSession.sessionState().catalogManager().catalog(catalog).icebergCatalog()
    parts = gateway.new_array(gateway.jvm.java.lang.String, 2)
    parts[0], parts[1] = schema, table
    name = iceberg.catalog.TableIdentifier.of(parts)
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
        return True
    return False
