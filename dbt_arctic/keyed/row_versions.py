"""SQL for every stored version of one key's row, in snapshots of a generation's base and change table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.keyed.columns_at import ColumnsAt, select_columns
from dbt_arctic.keyed.log import SnapshotLike, is_change
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.table import ACTION, MARKER_TXN, OFFSET, TXN, KeyedTable

_SEQUENCE = quote("_last_updated_sequence_number")
_KEEPS_ROWS = ("append", "replace")


@dataclass(frozen=True)
class SideSnapshot:
    """A snapshot of a base or change table."""

    is_change: bool
    snapshot_id: int


def rows_of_key(
    table: KeyedTable, snapshots: Sequence[SideSnapshot], condition: str, known: ColumnsAt
) -> str:
    """SQL for the rows of a key. A row that several snapshots contain is returned for each of them.

    Columns: the place of the snapshot in ``snapshots``, ``_txn``, ``_offset``, ``_action``, the sequence
    number of the commit, and the columns of the table. For a base table, the first three are NULL.

    :param condition: SQL that selects the key. It applies to each scan, so that buckets and files are pruned.
    """
    return "\nUNION ALL\n".join(
        _scan(table, place, one, condition, known) for place, one in enumerate(snapshots)
    )


def _scan(table: KeyedTable, place: int, one: SideSnapshot, condition: str, known: ColumnsAt) -> str:
    columns = select_columns(table, one.snapshot_id, known)
    if one.is_change:
        system = f"{quote(TXN)}, {quote(OFFSET)}, {quote(ACTION)}"
        source, only = table.change, f" AND {quote(TXN)} <> {MARKER_TXN}"
    else:
        system = (
            f"CAST(NULL AS BIGINT) AS {quote(TXN)}, CAST(NULL AS BIGINT) AS {quote(OFFSET)}, "
            f"CAST(NULL AS STRING) AS {quote(ACTION)}"
        )
        source, only = table.base, ""
    return (
        f"SELECT {place} AS {quote('_arctic_place')}, {system}, {_SEQUENCE}, {columns}\n"
        f"FROM {source.at(one.snapshot_id)}\nWHERE ({condition}){only}"
    )


def complete_snapshots(history: Sequence[SnapshotLike]) -> list[int]:
    """Snapshots of a change table that together contain every row of its history.

    Newest first: the head, and the state before each commit that removed rows.

    :param history: newest first.

    >>> from collections import namedtuple
    >>> Commit = namedtuple("Commit", "snapshot_id parent_id timestamp_ms operation summary")
    >>> txn = {"arctic.txn": "7", "added-records": "1"}
    >>> complete_snapshots([Commit(3, 2, 0, "delete", {}), Commit(2, 1, 0, "append", txn)])
    [3, 2]
    """
    found: list[int] = []
    known = {one.snapshot_id for one in history}
    has_new_rows = True  # rows of expired commits
    for one in reversed(history):
        if one.operation not in _KEEPS_ROWS and has_new_rows and one.parent_id in known:
            found.append(one.parent_id)
            has_new_rows = False
        has_new_rows = has_new_rows or is_change(one)
    head = [history[0].snapshot_id] if history else []
    return [*head, *(one for one in reversed(found) if one not in head)]
