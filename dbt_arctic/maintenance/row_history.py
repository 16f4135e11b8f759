"""Reconstructs the history of one row from its stored versions and the logs of a generation.

Pure: the versions and the logs are given. The row changes with each write of its key in the change table, in
the order in which readers resolve them, and with the build of the generation. What a compaction merged is in
the base table: it is only needed where the writes themselves have expired.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from typing import Any

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.keyed.adoption import PROPERTY_ADOPTED
from dbt_arctic.keyed.log import (
    PROPERTY_IMAGES,
    PROPERTY_TXN,
    carried_log,
    merged_by,
    merged_transactions,
)
from dbt_arctic.maintenance.row_change import (
    MANUAL,
    RowChange,
    Stored,
    StoredRow,
    Values,
    change_of,
    is_same_row,
    values_of,
)
from dbt_arctic.maintenance.timeline import is_build, kind_of_base, kind_of_change
from dbt_arctic.store.leftovers import txn_ms


@dataclass
class GenerationLog:
    """The logs of a generation, newest first, and the stored versions of the row.

    :param sequence_by: the column that orders the changes of a key, if there is one.
    """

    bases: Sequence[Snapshot]
    changes: Sequence[Snapshot]
    rows: Sequence[StoredRow] = ()
    sequence_by: str | None = None
    _commits: dict[int, Snapshot] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for one in self.changes:
            if PROPERTY_TXN in one.summary:
                self._commits[int(one.summary[PROPERTY_TXN])] = one

    @cached_property
    def origin(self) -> Snapshot:
        """The oldest commit of the base table that is considered.

        It is the build, the adoption, or the oldest one that has not expired.
        """
        adopted = [one for one in self.bases if PROPERTY_ADOPTED in one.summary]
        return adopted[0] if adopted else self.bases[-1]

    @property
    def is_whole(self) -> bool:
        """Whether the log begins with the build of the generation."""
        return self.origin.parent_id is None or PROPERTY_ADOPTED in self.origin.summary

    @cached_property
    def later_bases(self) -> list[Snapshot]:
        """The commits of the base table after the origin, oldest first."""
        newer = []
        for one in self.bases:
            if one.snapshot_id == self.origin.snapshot_id:
                break
            newer.append(one)
        return newer[::-1]

    def snapshots_of_base(self) -> list[int]:
        """The snapshots of the base table whose row is needed.

        They are the origin, the head, and both sides of each commit with rows whose own commits are not in
        the log.
        """
        wanted = {self.origin.snapshot_id: None, self.bases[0].snapshot_id: None}
        for one in self.later_bases:
            if self.is_unrecorded(one) and one.parent_id is not None:
                wanted |= {one.parent_id: None, one.snapshot_id: None}
        return list(wanted)

    def is_unrecorded(self, commit: Snapshot) -> bool:
        """Whether a commit of the base table has rows whose own commits are not in the log."""
        return kind_of_base(commit) == MANUAL or bool(merged_by(commit) - self._known)

    @cached_property
    def _known(self) -> set[int]:
        """The transactions whose commits are in the log."""
        return {*self._commits, *(txn for _, txn in carried_log(self.changes))}

    def commit_of(self, txn: int | None) -> Snapshot | None:
        """The commit of a transaction; ``None`` if it has expired."""
        return self._commits.get(txn or 0)

    def base_row(self, snapshot_id: int) -> StoredRow | None:
        """The row in a snapshot of the base table."""
        return next((row for row in self.rows if not row.is_change and row.snapshot_id == snapshot_id), None)

    @cached_property
    def writes(self) -> list[StoredRow]:
        """The writes of the key in the change table, in the order of their arrival."""
        found = {(row.txn, row.offset): row for row in self.rows if row.is_change and row.action != "-U"}
        return sorted(found.values(), key=lambda row: (row.sequence, row.offset or 0))

    @cached_property
    def stored_now(self) -> set[int | None]:
        """The transactions that are in the change table now."""
        head = self.changes[0].snapshot_id if self.changes else None
        return {row.txn for row in self.rows if row.is_change and row.snapshot_id == head}

    def build_of(self) -> Snapshot | None:
        """The commit of the change table that represents the build."""
        first = self.changes[-1] if self.changes else None
        return first if first is not None and is_build(first) else None


def explain(log: GenerationLog, before: tuple[Values | None] | None = None) -> list[RowChange]:
    """The changes of the row in one generation, oldest first.

    :param before: the row at the end of the generation before this one, if that is known.
    """
    walk = _Walk(log, before)
    walk.run()
    return walk.found


def current_row(log: GenerationLog) -> Values | None:
    """The row as readers see it now."""
    found = _winner_now(log)
    return None if found is None or found.action == "D" else found.values


def _winner_now(log: GenerationLog) -> StoredRow | None:
    winner = log.base_row(log.bases[0].snapshot_id)
    for write in log.writes:
        if write.txn in log.stored_now and _wins(write, winner, log.sequence_by):
            winner = write
    return winner


def _wins(write: StoredRow, over: StoredRow | None, sequence_by: str | None) -> bool:
    """Whether readers take a write and not what was written before it, see ``keyed/read.py:newest_first``."""
    if over is None or sequence_by is None:
        return True
    new, old = (_order(row.values[sequence_by]) for row in (write, over))
    return new > old if new != old else write.action == "D" or over.action != "D"


def _order(value: Any) -> tuple[int, Any]:
    """A value of a sequence column in Spark's order, in which NULL is the least value and NaN the greatest.

    >>> sorted([{"a": 2, "b": None}, {"a": 1, "b": 9}, {"a": 2, "b": 0}], key=_order)
    [{'a': 1, 'b': 9}, {'a': 2, 'b': None}, {'a': 2, 'b': 0}]
    """
    match value:
        case None:
            return 0, 0
        case dict():
            return 1, tuple(map(_order, value.values()))
        case list():
            return 1, tuple(map(_order, value))
        case float() if value != value:
            return 2, 0
        case datetime() if value.tzinfo is not None:
            # Python compares two times of one zone by their clock, which repeats an hour.
            return 1, value.astimezone(timezone.utc)
    return 1, value


class _Walk:
    """Follows the row through the log of a generation."""

    def __init__(self, log: GenerationLog, before: tuple[Values | None] | None) -> None:
        self.log = log
        self.found: list[RowChange] = []
        self._before = before
        self._is_known = False
        self._row: StoredRow | None = None
        self._now = log.stored_now
        self._merged = merged_transactions(log.bases)
        self._in_base = self._merged_write()
        self._images = {row.txn: row.values for row in log.rows if row.action == "-U"}

    def run(self) -> None:
        """Find all changes."""
        log = self.log
        origin = log.base_row(log.origin.snapshot_id)
        writes = log.writes
        if log.is_whole:
            self._build(origin)
        else:
            merged = [write for write in writes if self._is_in_origin(write)]
            writes = [write for write in writes if write not in merged]
            for write in merged:
                self._write(write)
            if not self._is_known or not is_same_row(self._values(), values_of(origin)):
                self._unrecorded(log.origin, origin)
        self._is_known, self._row = True, origin if not self._keeps(origin) else self._row
        special = [one for one in log.later_bases if one.parent_id is not None and log.is_unrecorded(one)]
        for write in writes:
            while special and special[0].timestamp_ms <= self._time(write):
                self._base_commit(special.pop(0))
            self._write(write)
        for one in special:
            self._base_commit(one)
        now = current_row(log)
        if not is_same_row(self._values(), now):
            change = change_of(MANUAL, self._values(), now)
            self.found.append(replace(change, stored="base"))

    def _keeps(self, origin: StoredRow | None) -> bool:
        """Whether the writes that were merged have left a tombstone, which still orders later writes."""
        return origin is None and self._row is not None and self._row.action == "D"

    def _is_in_origin(self, write: StoredRow) -> bool:
        later = merged_transactions(self.log.later_bases)
        if write.txn in later:
            return False
        return write.txn in merged_by(self.log.origin) or write.txn not in self._now

    def _values(self) -> Values | None:
        return values_of(self._row)

    def _build(self, origin: StoredRow | None) -> None:
        commit = self.log.build_of()
        is_adopted = PROPERTY_ADOPTED in self.log.origin.summary
        kind = "adoption" if is_adopted else "build" if commit is None else kind_of_change(commit)
        known = self._before is not None or not is_adopted
        before = self._before[0] if self._before is not None else None
        self._is_known, self._row = True, origin
        if origin is None and before is None:
            return
        change = change_of(kind, before, values_of(origin), is_known=known)
        at = self.log.origin.timestamp_ms if commit is None else commit.timestamp_ms
        is_current = _is_current_base(self.log, origin)
        self.found.append(
            replace(
                change,
                time_ms=at,
                commit=commit or self.log.origin,
                is_base=commit is None,
                stored="base" if is_current else "older versions",
            )
        )

    def _unrecorded(self, commit: Snapshot, row: StoredRow | None) -> None:
        if row is None and not self._is_known:
            return
        change = change_of(kind_of_base(commit), self._values(), values_of(row), is_known=self._is_known)
        is_current = _is_current_base(self.log, row)
        stored: Stored = "base" if is_current else "older versions"
        self.found.append(
            replace(change, time_ms=commit.timestamp_ms, commit=commit, is_base=True, stored=stored)
        )
        self._is_known, self._row = True, row

    def _base_commit(self, commit: Snapshot) -> None:
        """Another program, or a merge of expired commits, has changed the base table."""
        before, after = (self.log.base_row(one or 0) for one in (commit.parent_id, commit.snapshot_id))
        if is_same_row(values_of(before), values_of(after)):
            return
        merged = {
            txn for one in self.log.bases if one.timestamp_ms <= commit.timestamp_ms for txn in merged_by(one)
        }
        if self._row is not None and self._row.is_change and self._row.txn not in merged:
            return  # a later change overrides it
        self._unrecorded(commit, after)

    def _write(self, write: StoredRow) -> None:
        commit = self.log.commit_of(write.txn)
        before, is_known = self._values(), self._is_known
        if not is_known and (write.txn in self._images or (commit and PROPERTY_IMAGES in commit.summary)):
            before, is_known = self._images.get(write.txn), True
        wins = _wins(write, self._row, self.log.sequence_by)
        after = values_of(write) if wins else before
        is_by_hand = commit is None and not self._may_have_expired(write)
        kind = MANUAL if is_by_hand else "upsert" if commit is None else kind_of_change(commit)
        change = change_of(kind, before, after, is_known=is_known)
        self.found.append(
            replace(
                change,
                effect=change.effect if wins else "late",
                time_ms=None if is_by_hand else self._time(write),
                commit=commit,
                txn=write.txn,
                offset=write.offset,
                stored=self._stored(write),
            )
        )
        if wins:
            self._is_known, self._row = True, write

    def _may_have_expired(self, write: StoredRow) -> bool:
        oldest = self.log.changes[-1]
        return oldest.parent_id is not None or write.txn in {txn for _, txn in carried_log(self.log.changes)}

    def _time(self, write: StoredRow) -> int:
        commit = self.log.commit_of(write.txn)
        return txn_ms(write.txn or 0) if commit is None else commit.timestamp_ms

    def _stored(self, write: StoredRow) -> Stored:
        if write.txn in self._now:
            return "merged" if write.txn in self._merged else "pending"
        return "base" if write is self._in_base else "older versions"

    def _merged_write(self) -> StoredRow | None:
        """The write whose row is in the base table; ``None`` if there is none or a build wrote it."""
        found: StoredRow | None = None
        for write in self.log.writes:
            is_pending = write.txn in self._now and write.txn not in self._merged
            if not is_pending and _wins(write, found, self.log.sequence_by):
                found = write
        return found if found is not None and is_same_row(values_of(found), self._base_now()) else None

    def _base_now(self) -> Values | None:
        return values_of(self.log.base_row(self.log.bases[0].snapshot_id))


def _is_current_base(log: GenerationLog, row: StoredRow | None) -> bool:
    """Whether the base table has this very row, and not one that a later commit wrote."""
    now = log.base_row(log.bases[0].snapshot_id)
    return row is not None and now is not None and row.sequence == now.sequence
