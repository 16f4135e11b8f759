"""The bucket markers of a change table: how many there are, and whether they are gone.

A change of the number of buckets drops them and makes others. Where its statement that drops them is
delivered minutes late, when another process has gone on and is done, it takes the new ones. No row depends on
them, but joins shuffle until they are made again. The log tells where that may have happened; the manifests,
whether it has.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.catalog.api import CatalogReader, PlacedFile, Snapshot, TableState
from dbt_arctic.keyed.log import PROPERTY_MARKERS, PROPERTY_TXN
from dbt_arctic.keyed.table import MARKER_TXN, TXN, KeyedTable


def count_markers(table: KeyedTable, change: TableState) -> tuple[int, int]:
    """How many markers were made, a file each, and their size.

    :param table: with the number of buckets that its change table has now.
    """
    made, _ = _made(change.history())
    if made is None:
        return max(1, table.layout.buckets), 0
    summary = made.summary
    count = summary.get(PROPERTY_MARKERS) or summary.get("added-records", "0")
    return int(count), int(summary.get("added-files-size", "0"))


def may_be_lost(table: KeyedTable, change: TableState) -> bool:
    """Whether a commit has taken as many rows as there were markers, since they were made. By the log alone:
    a trim may have, too. Where the commit that made them was expired, only a table without any row is told.
    """
    if not table.layout.buckets:
        return False
    history = change.history()
    made, since = _made(history)
    if made is None:
        return bool(history) and history[0].summary.get("total-records") == "0"
    count = made.summary.get("added-records", "0")
    return count != "0" and any(_took(commit) == count for commit in since)


def are_lost(catalog: CatalogReader, table: KeyedTable, change: TableState) -> bool:
    """Whether the change table has no marker any more. Its manifests are read only where that may be so."""
    if change.current_snapshot_id is None or not may_be_lost(table, change):
        return False
    files = catalog.placed_files(change.schema, change.name, change.current_snapshot_id, TXN)
    return not any(map(_may_hold_a_marker, files))


def _made(history: Sequence[Snapshot]) -> tuple[Snapshot | None, Sequence[Snapshot]]:
    """The commit that made the markers, and all commits since, newest first."""
    for at, commit in enumerate(history):
        if PROPERTY_MARKERS in commit.summary:
            return commit, history[:at]
    first = history[-1] if history else None
    if first is not None and first.parent_id is None and PROPERTY_TXN not in first.summary:
        return first, history[:-1]
    return None, history


def _took(commit: Snapshot) -> str | None:
    """How many rows a commit took: whole files, or, where somebody had put markers together with others, some
    rows of them."""
    summary = commit.summary
    return summary.get("deleted-records") or summary.get("added-position-deletes")


def _may_hold_a_marker(file: PlacedFile) -> bool:
    return file.is_data and (file.bounds is None or file.bounds[0] <= MARKER_TXN)
