"""Reads the contents of a change table at a version from its manifests, without a Spark job.

A read that is pinned to the version skips what is not there. Right after a compaction that is the whole
change table, which would take one task per bucket.
"""

from __future__ import annotations

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.keyed.log import PROPERTY_TXN
from dbt_arctic.keyed.read import Logged
from dbt_arctic.keyed.table import MARKER_TXN, TXN, KeyedTable


def logged_at(catalog: CatalogReader, table: KeyedTable, change: TableState, snapshot_id: int) -> Logged:
    """What the change table holds at a snapshot, by the bounds of ``_txn``.

    ``several`` if only Spark could answer.
    """
    if catalog.of(table.change).needs_spark or not any(
        one.snapshot_id == snapshot_id for one in change.snapshots
    ):
        return "several"
    files = catalog.of(table.change).data_files(
        table.change.schema, table.change.identifier, snapshot_id, TXN
    )
    files = [file for file in files if file.upper is None or file.upper > MARKER_TXN]
    if not files:
        return "nothing"
    transactions = {bound for file in files for bound in (file.lower, file.upper)}
    if len(transactions) > 1 or None in transactions:
        return "several"
    # A statement that was delivered twice has committed each of its rows twice.
    (txn,) = transactions
    commits = [one for one in change.history(snapshot_id) if one.summary.get(PROPERTY_TXN) == str(txn)]
    rows = str(sum(file.record_count for file in files))
    return "one" if [one.summary.get("added-records") for one in commits] == [rows] else "several"
