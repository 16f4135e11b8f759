"""The change log: the properties of a change table's snapshots, newest first.

It works on values with the fields of an Iceberg snapshot and does not read them itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Consumed, decode_consumed, without_query

PROPERTY_TXN = "arctic.txn"
"""On a commit of the change table: the ``_txn`` of its rows."""
PROPERTY_RUN = "arctic.run"
"""On every commit of a model's run: invocation and model, to find out later whether it was committed."""
PROPERTY_IMAGES = "arctic.images"
"""On a commit of the change table: it contains the previous row of each existing key as ``-U``."""
PROPERTY_MERGED = "arctic.merged"
"""On a commit of the base table: JSON list of the transactions that it merged."""
PROPERTY_ROLLBACK = "arctic.rollback"
"""On a commit of the change table: the version that it went back to."""
PROPERTY_LOG = "arctic.log"
"""On a commit of the change table before which all commits have expired: the log of the expired commits whose
rows still exist. JSON list of [snapshot, transaction or 0], newest first."""

PROPERTY_MARKERS = "arctic.markers"
"""On a commit of new bucket markers, right after the commit that dropped the old ones: the number of
buckets."""

_KEEPS_ROWS = ("append", "replace")


class SnapshotLike(Protocol):
    """The fields of an Iceberg snapshot that the log needs."""

    @property
    def snapshot_id(self) -> int:
        """The id of the snapshot."""

    @property
    def parent_id(self) -> int | None:
        """The id of the parent."""

    @property
    def timestamp_ms(self) -> int:
        """The commit time in milliseconds since the epoch."""

    @property
    def operation(self) -> str:
        """Iceberg's operation: ``append``, ``replace``, ``overwrite`` or ``delete``."""

    @property
    def summary(self) -> Mapping[str, str]:
        """The summary properties."""


@dataclass(frozen=True)
class LogRange:
    """The commits after one snapshot up to another.

    ``transactions`` are in order, oldest first. ``readable_at`` are snapshots that together contain every row
    of them: the end of the range, and the state just before each commit that removed rows.
    """

    transactions: tuple[int, ...]
    readable_at: tuple[int, ...]


def log_range(history: Sequence[SnapshotLike], after: int) -> LogRange | None:
    """The commits after the snapshot ``after``, up to the newest of ``history``.

    :param history: newest first, each the parent of the one before it.
    :returns: ``None`` if ``after`` is not among them (expired, or of another table).
    """
    transactions: list[int] = []
    readable_at: list[int] = [history[0].snapshot_id] if history else []
    for snapshot in history:
        if snapshot.snapshot_id == after:
            return LogRange(tuple(reversed(transactions)), tuple(readable_at))
        if PROPERTY_TXN in snapshot.summary:
            transactions.append(int(snapshot.summary[PROPERTY_TXN]))
        if snapshot.operation not in _KEEPS_ROWS and snapshot.parent_id not in (None, after):
            readable_at.append(int(snapshot.parent_id or 0))
    for snapshot_id, txn in carried_log(history):
        if snapshot_id == after:
            return LogRange(tuple(reversed(transactions)), tuple(readable_at))
        if txn:
            transactions.append(txn)
    return None


def is_change(snapshot: SnapshotLike) -> bool:
    """Whether a commit of a change table has changed rows. An upsert of an empty batch has none."""
    return PROPERTY_TXN in snapshot.summary and rows_added(snapshot) > 0


def rows_added(snapshot: SnapshotLike) -> int:
    """The number of rows that a commit added."""
    return int(snapshot.summary.get("added-records", "0"))


def has_rows(log: LogRange, history: Sequence[SnapshotLike]) -> bool:
    """Whether a range has a row.

    :param history: newest first, as far as it is known. Expired commits count as commits with rows.
    """
    rows: dict[int, bool] = {}
    for snapshot in history:
        if PROPERTY_TXN in snapshot.summary:
            txn = int(snapshot.summary[PROPERTY_TXN])
            rows[txn] = rows.get(txn, False) or is_change(snapshot)
    return any(rows.get(txn, True) for txn in log.transactions)


def is_single(log: LogRange, history: Sequence[SnapshotLike]) -> bool:
    """Whether a range is a single commit that occurs once, and so has one change per key.

    A statement that was executed twice has committed the rows of its transaction twice.

    :param history: newest first, as far as it is known.
    """
    if len(log.transactions) != 1 or len(log.readable_at) != 1:
        return False
    landed = [snapshot.summary.get(PROPERTY_TXN) for snapshot in history].count(str(log.transactions[0]))
    return landed + [txn for _, txn in carried_log(history)].count(log.transactions[0]) == 1


def carried_log(history: Sequence[SnapshotLike]) -> list[tuple[int, int]]:
    """The expired commits that the oldest commit of a history still records: snapshot, transaction or 0."""
    text = history[-1].summary.get(PROPERTY_LOG, "[]") if history else "[]"
    return [(int(snapshot_id), int(txn)) for snapshot_id, txn in json.loads(text)]


def encode_log(entries: Iterable[tuple[int, int]]) -> str:
    """The JSON form of a carried log."""
    return json.dumps([list(entry) for entry in entries], separators=(",", ":"))


def consumed_versions(history: Iterable[SnapshotLike]) -> dict[str, Consumed]:
    """The upstream versions from which the data was computed, by the newest commit that records them."""
    for snapshot in history:
        text = snapshot.summary.get(PROPERTY_CONSUMED)
        if text is not None:
            return decode_consumed(text)
    return {}


def is_written_to(history: Iterable[SnapshotLike]) -> bool:
    """Whether rows were written after the newest commit that records consumed versions."""
    newest = next((one for one in history if PROPERTY_TXN in one.summary), None)
    return newest is not None and PROPERTY_CONSUMED not in newest.summary


def versions_to_carry(history: Sequence[SnapshotLike], *, are_its_rows: bool = True) -> dict[str, Consumed]:
    """The consumed versions that a commit other than a refresh has to repeat.

    :param are_its_rows: whether the rows are still those that were committed with them. If they are not, or
        other rows were written since, they do not belong to a query. Then the entries that identify the
        query are left out, and the next refresh of an automatic model is full (``first-plan``).
    """
    found = consumed_versions(history)
    if are_its_rows and not is_written_to(history):
        return found
    return without_query(found)


def find_transaction(history: Iterable[SnapshotLike], txn: int) -> SnapshotLike | None:
    """The commit of a transaction; ``None`` if it was not committed."""
    for snapshot in history:
        if snapshot.summary.get(PROPERTY_TXN) == str(txn):
            return snapshot
    return None


def newest_merge_ms(history: Iterable[SnapshotLike], until_ms: int | None = None) -> int | None:
    """The time of the last commit of the base table that merged changes.

    Optionally the last one before a point in time.
    """
    times = (one.timestamp_ms for one in history if one.summary.get(PROPERTY_MERGED, "[]") != "[]")
    return max((at for at in times if until_ms is None or at <= until_ms), default=None)


def merged_by(commit: SnapshotLike) -> set[int]:
    """The transactions that one commit of a base table merged."""
    return {int(txn) for txn in json.loads(commit.summary.get(PROPERTY_MERGED, "[]"))}


def merged_transactions(history: Iterable[SnapshotLike], before_ms: int | None = None) -> frozenset[int]:
    """Transactions that commits of the base table merged; with ``before_ms``, only older commits."""
    commits = (one for one in history if before_ms is None or one.timestamp_ms <= before_ms)
    return frozenset().union(*map(merged_by, commits))


def landed_again(changes: Iterable[SnapshotLike], bases: Sequence[SnapshotLike]) -> frozenset[int]:
    """The merged transactions that were committed another time after their last merge.

    A statement that arrives a second time is the newest change, whatever was merged before.

    :param changes: the commits of the change table; ``bases`` those of the base table, both newest first.
    """
    landed: dict[int, list[int]] = {}
    for commit in changes:
        if PROPERTY_TXN in commit.summary:
            landed.setdefault(int(commit.summary[PROPERTY_TXN]), []).append(commit.timestamp_ms)
    twice = {txn: max(times) for txn, times in landed.items() if len(times) > 1}
    if not twice:
        return frozenset()
    merged_ms = {txn: one.timestamp_ms for one in reversed(bases) for txn in merged_by(one)}
    return frozenset(txn for txn, at_ms in twice.items() if txn in merged_ms and merged_ms[txn] < at_ms)


def encode_merged(transactions: Iterable[int]) -> str:
    """The JSON form of merged transactions."""
    return json.dumps(sorted(transactions), separators=(",", ":"))
