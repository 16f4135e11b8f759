"""Finds the base snapshot that belongs to a snapshot of the change table, from logs and not from clocks.

Every base that has merged only commits of the change table up to that snapshot gives the same merged rows.
The newest of these bases has also merged everything that was trimmed by then.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.keyed.log import PROPERTY_TXN, merged_by


def base_for(base: Sequence[Snapshot], change: Sequence[Snapshot], change_snapshot: int) -> int | None:
    """The base snapshot to read together with a change snapshot; ``None`` if none is left.

    :param base: the base table's history of branch main, newest first.
    :param change: the same for the change table.
    """
    later: set[int] = set()
    first_later_ms: int | None = None
    for commit in change:
        if commit.snapshot_id == change_snapshot:
            break
        if PROPERTY_TXN in commit.summary:
            later.add(int(commit.summary[PROPERTY_TXN]))
            first_later_ms = commit.timestamp_ms
    else:
        return None
    found = None
    for commit in reversed(base):
        if later & merged_by(commit):
            break
        if found is None and commit.parent_id is not None and _may_be_too_new(commit, first_later_ms):
            return None
        found = commit.snapshot_id
    return found


def _may_be_too_new(oldest: Snapshot, first_later_ms: int | None) -> bool:
    """Whether an expired commit before the oldest remaining base may have merged later changes.

    Its list of transactions has expired with it, so this compares commit times.
    """
    return first_later_ms is not None and oldest.timestamp_ms > first_later_ms
