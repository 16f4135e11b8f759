"""The bucket markers of a change table: their number, and whether they are lost.

A change of the number of buckets drops the markers and creates new ones. If the statement that drops them is
executed minutes late, after another process has finished the change, it drops the new ones. No row depends on
markers, but joins shuffle until they are created again. The log shows whether this may have happened, and the
manifests whether it has.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.catalog.api import CatalogReader, PlacedFile, Snapshot, TableState
from dbt_arctic.keyed.log import PROPERTY_MARKERS, PROPERTY_TXN
from dbt_arctic.keyed.table import MARKER_TXN, TXN, KeyedTable


def count_markers(table: KeyedTable, change: TableState) -> tuple[int, int]:
    """The number of markers that were created, one file each, and their size.

    :param table: with the current number of buckets of its change table.
    """
    made, _ = _made(change.history())
    if made is None:
        return max(1, table.layout.buckets), 0
    summary = made.summary
    count = summary.get(PROPERTY_MARKERS) or summary.get("added-records", "0")
    return int(count), int(summary.get("added-files-size", "0"))


def may_be_lost(table: KeyedTable, change: TableState) -> bool:
    """Whether a commit may have removed the markers: it removed as many rows as there were markers.

    Uses the log alone, so a trim may be mistaken for it. If the commit that created them has expired, only an
    empty table is reported.
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
    """Whether the change table has lost its markers. Manifests are read only if the log allows for it."""
    if change.current_snapshot_id is None or not may_be_lost(table, change):
        return False
    files = catalog.of(table.change).placed_files(change.schema, change.name, change.current_snapshot_id, TXN)
    return not any(map(_may_hold_a_marker, files))


def _made(history: Sequence[Snapshot]) -> tuple[Snapshot | None, Sequence[Snapshot]]:
    """The commit that created the markers, and all later commits, newest first."""
    for at, commit in enumerate(history):
        if PROPERTY_MARKERS in commit.summary:
            return commit, history[:at]
    first = history[-1] if history else None
    if first is not None and first.parent_id is None and PROPERTY_TXN not in first.summary:
        return first, history[:-1]
    return None, history


def _took(commit: Snapshot) -> str | None:
    """The number of rows that a commit removed.

    It removed whole files, or single rows if markers were merged with other files.
    """
    summary = commit.summary
    return summary.get("deleted-records") or summary.get("added-position-deletes")


def _may_hold_a_marker(file: PlacedFile) -> bool:
    return file.is_data and (file.bounds is None or file.bounds[0] <= MARKER_TXN)
