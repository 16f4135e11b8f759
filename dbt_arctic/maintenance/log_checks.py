"""Checks that the logs of base and change table are consistent and contain only dbt-arctic's commits.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dbt_arctic.catalog.api import DataFile, Snapshot, TableState
from dbt_arctic.compaction.markers import may_be_lost
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.adoption import PROPERTY_ADOPTED
from dbt_arctic.keyed.erasure import BRANCH, HIDDEN, PROPERTY_ERASE, PROPERTY_SPLIT
from dbt_arctic.keyed.log import PROPERTY_ROLLBACK, PROPERTY_TXN, merged_transactions, rows_added
from dbt_arctic.keyed.table import MARKER_TXN, KeyedTable
from dbt_arctic.maintenance.finding import Finding, rebuild_command
from dbt_arctic.maintenance.layout_checks import compact_full
from dbt_arctic.store.state import with_current_buckets

_SHOWN = 5
_OURS = "arctic."


def check_log(
    table: KeyedTable, base: TableState, change: TableState, files: Sequence[DataFile]
) -> Iterator[Finding]:
    """Check that trimmed ⊆ merged ⊆ history.

    :param files: the change table's data files now, with the bounds of ``_txn``.
    """
    bases, changes = base.history(), change.history()
    merged = merged_transactions(bases)
    lost = [
        txn for txn in _required_transactions(bases, changes) if txn not in merged and not _in(files, txn)
    ]
    if lost:
        yield Finding(
            "trimmed-unmerged",
            table.name.dotted,
            f"{table.change} and {table.base} lack {counted(len(lost), 'commit')}: {_list(lost)}",
            table.change.dotted,
            "rows of the change table were deleted manually before compaction had merged them, or the base "
            "table was rolled back manually",
            rebuild_command(table.name),
        )
    if changes and changes[-1].parent_id is None:
        logged = {int(c.summary[PROPERTY_TXN]) for c in changes if PROPERTY_TXN in c.summary}
        unknown = sorted(merged - logged)
        if unknown:
            yield Finding(
                "merged-unknown",
                table.name.dotted,
                f"{table.base} has merged {counted(len(unknown), 'commit')} that the change table's history "
                f"lacks: {_list(unknown)}",
                table.base.dotted,
                "the change table was rolled back manually",
                rebuild_command(table.name),
            )


def check_commits(table: KeyedTable, base: TableState, change: TableState) -> Iterator[Finding]:
    """Commits of other programs, unless the table was rolled back or adopted since then."""
    bases, changes = base.history(), change.history()
    resets = [c for c in changes if PROPERTY_ROLLBACK in c.summary]
    resets += [c for c in bases if PROPERTY_ADOPTED in c.summary]
    since = max((commit.timestamp_ms for commit in resets), default=0)
    # A trim drops whole files, unless a rewrite, which may have expired by now, has mixed them, or tombstones
    # must remain.
    rewritten = any(c.operation == "replace" or _was_expired(c, changes) for c in changes)
    partial = table.sequence_by is not None or rewritten
    for side, commits, foreign in (
        (table.base, bases, [c for c in bases if not _is_ours(c) and c.operation != "replace"]),
        (table.change, changes, [c for c in changes if _is_foreign_change(c, partial)]),
    ):
        found = [commit for commit in foreign if commit.timestamp_ms > since]
        if found and commits:
            yield Finding(
                "by-hand",
                table.name.dotted,
                f"{side} has {counted(len(found), 'commit')} of other programs: "
                f"{_list([commit.snapshot_id for commit in found])} ({found[0].operation})",
                side.dotted,
                "rows were written or deleted manually or by another program; these changes are not in "
                "the change log, so models that pull from this table do not see them",
                f"dbt-arctic rollback {table.name.schema}.{table.name.identifier} VERSION, with the version "
                f"before it from dbt-arctic history; or {rebuild_command(table.name)}",
            )


def check_erased(table: KeyedTable, base: TableState, change: TableState) -> Iterator[Finding]:
    """Detect an unfinished erasure; a complete one has expired the commit that deleted the rows."""
    for state in (base, change):
        hidden = [commit for commit in state.snapshots if commit.summary.get(PROPERTY_ERASE) == HIDDEN]
        if hidden or BRANCH in state.branches or PROPERTY_SPLIT in state.properties:
            yield Finding(
                "erase-unfinished",
                table.name.dotted,
                f"an erasure of keys of {table.name} is running or was interrupted",
                table.name.sibling(state.name).dotted,
                "older versions and files may still contain them",
                f"dbt-arctic erase {table.name.schema}.{table.name.identifier} with the same options",
            )
            return


def check_markers(table: KeyedTable, change: TableState, files: Sequence[DataFile]) -> Iterator[Finding]:
    """Check for bucket markers.

    Their file has no statistics; a rewritten file with them starts at their number.
    """
    if not any(file.lower is None or file.lower <= MARKER_TXN for file in files):
        yield Finding(
            "markers",
            table.name.dotted,
            f"{table.change} has no bucket markers",
            table.change.dotted,
            "they were deleted manually, or by a late statement of an interrupted compaction; "
            "reads are correct, but joins of merged rows shuffle both sides",
            # Compaction detects this from the log, unless the log's commits have expired.
            compact_full(table)
            if may_be_lost(with_current_buckets(table, change), change)
            else rebuild_command(table.name),
        )


def _required_transactions(bases: Sequence[Snapshot], changes: Sequence[Snapshot]) -> list[int]:
    """Transactions with rows that must be either merged or pending.

    If the base's oldest commits have expired, the transactions that they merged are unknown and left out.
    """
    oldest = bases[-1] if bases else None
    since_ms = 0 if oldest is None or oldest.parent_id is None else oldest.timestamp_ms
    return [
        int(commit.summary[PROPERTY_TXN])
        for commit in reversed(changes)
        if PROPERTY_TXN in commit.summary and rows_added(commit) > 0 and commit.timestamp_ms > since_ms
    ]


def _in(files: Sequence[DataFile], txn: int) -> bool:
    """Whether a file may have rows of a transaction. A file from a rewrite has a range of transactions."""
    return any(
        file.lower is not None and file.upper is not None and file.lower <= txn <= file.upper
        for file in files
    )


def _is_ours(commit: Snapshot) -> bool:
    return any(name.startswith(_OURS) for name in commit.summary)


def _was_expired(commit: Snapshot, commits: Sequence[Snapshot]) -> bool:
    """Whether commits before the oldest remaining one have expired."""
    return commit is commits[-1] and commit.parent_id is not None


def _is_foreign_change(commit: Snapshot, may_be_partial: bool) -> bool:
    if _is_ours(commit) or commit.operation == "replace":
        return False
    if commit.operation != "delete":
        return True
    is_partial = any(name in commit.summary for name in ("added-dvs", "added-position-deletes"))
    return is_partial and not may_be_partial


def _list(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:_SHOWN])
    return shown if len(numbers) <= _SHOWN else f"{shown}, ..."
