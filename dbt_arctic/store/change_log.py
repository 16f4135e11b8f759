"""The contents of a change table at a version, from its manifests. No Spark job.

A read that is pinned there leaves out what there is not. Right after a compaction that is the whole change
table, with a task for each of its buckets.
"""

from __future__ import annotations

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.keyed.log import PROPERTY_TXN
from dbt_arctic.keyed.read import Logged
from dbt_arctic.keyed.table import MARKER_TXN, TXN, KeyedTable


def logged_at(catalog: CatalogReader, table: KeyedTable, change: TableState, snapshot_id: int) -> Logged:
    """By the bounds of ``_txn``, whatever the log still says; ``several`` where it takes Spark to ask."""
    if catalog.needs_spark or not any(one.snapshot_id == snapshot_id for one in change.snapshots):
        return "several"
    files = catalog.data_files(table.change.schema, table.change.identifier, snapshot_id, TXN)
    files = [file for file in files if file.upper is None or file.upper > MARKER_TXN]
    if not files:
        return "nothing"
    transactions = {bound for file in files for bound in (file.lower, file.upper)}
    if len(transactions) > 1 or None in transactions:
        return "several"
    # A statement that arrived twice has committed each of its rows twice.
    (txn,) = transactions
    commits = [one for one in change.history(snapshot_id) if one.summary.get(PROPERTY_TXN) == str(txn)]
    rows = str(sum(file.record_count for file in files))
    return "one" if [one.summary.get("added-records") for one in commits] == [rows] else "several"
