"""Measures the files of a table, and the cost of reading it compared with freshly written files.

Pure functions.

All input is metadata. The totals of a table are in the summary of its newest snapshot; the distribution over
buckets requires its manifests. The cost of a read is an estimate, explained in
docs/explanation/compaction.md. When compaction is due is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from dbt_arctic.catalog.api import PlacedFile, Snapshot, TableState

MIB = 1024 * 1024
TARGET_FILE_BYTES = 512 * MIB
"""Iceberg's default target file size."""
OPEN_COST_BYTES = MIB
"""Opening a file costs as much as reading this many bytes: 10 ms. Spark's ``openCostInBytes`` is four
times as large, but it packs files into tasks and is not a time.
"""
LOOKUP_BYTES = 16
"""While there are changes, the key of each base row is looked up. This costs as much as reading this many
bytes.
"""
CHANGE_WEIGHT = 4.0
"""A row of the change table is read twice, hashed and ranked: it costs as much as this many base rows."""
SMALL_SHARE = 0.75
"""A file below this share of the target size is small, as in Iceberg."""


@dataclass(frozen=True)
class SideMetrics:
    """The measures of a base, change or plain table.

    ``rows`` are stored rows, of which ``deleted`` are hidden.

    ``files`` are data files, ``delete_files`` are delete files and deletion vectors; ``size_bytes`` is the
    size of all.
    """

    files: int = 0
    size_bytes: int = 0
    rows: int = 0
    deleted: int = 0
    delete_files: int = 0

    @property
    def live_rows(self) -> int:
        """Stored rows that are not deleted."""
        return max(0, self.rows - self.deleted)

    @property
    def delete_ratio(self) -> float:
        """Deleted rows as a share of the stored rows."""
        return self.deleted / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class BucketMetrics:
    """The measures of one bucket of a partition.

    ``pending_rows`` are rows of the change table that are not merged.

    :param ideal_files: the number of files if its rows were freshly written.
    :param overlap: the maximum number of base files that share a value of the first sort column, which is the
        number of files that a lookup opens. ``None`` if file statistics are missing.
    :param is_old: whether its files were written with a different partitioning.
    """

    partition: tuple[str, ...]
    base: SideMetrics
    change: SideMetrics
    small_files: int
    pending_rows: int
    ideal_files: int
    is_old: bool = False
    overlap: int | None = None

    @property
    def read_amplification(self) -> float:
        """The cost of reading the bucket relative to fresh files, see ``read_amplification``."""
        return read_amplification(self.base, self.change, self.ideal_files)


def side_metrics(state: TableState) -> SideMetrics | None:
    """The measures from the totals that Iceberg writes into each snapshot.

    ``None`` if the newest has none.
    """
    snapshot = newest(state)
    if snapshot is None:
        return SideMetrics()
    summary = snapshot.summary
    try:
        return SideMetrics(
            files=int(summary["total-data-files"]),
            size_bytes=int(summary["total-files-size"]),
            rows=int(summary["total-records"]),
            deleted=int(summary.get("total-position-deletes", "0")),
            delete_files=int(summary.get("total-delete-files", "0")),
        )
    except (KeyError, ValueError):
        return None


def newest(state: TableState) -> Snapshot | None:
    """The current snapshot of main."""
    at = state.current_snapshot_id
    return next((one for one in state.snapshots if one.snapshot_id == at), None)


def sum_files(files: Sequence[PlacedFile]) -> SideMetrics:
    """The measures as a sum over files."""
    data = [file for file in files if file.is_data]
    deletes = [file for file in files if not file.is_data]
    return SideMetrics(
        files=len(data),
        size_bytes=sum(file.size_bytes for file in files),
        rows=sum(file.rows for file in data),
        deleted=sum(file.rows for file in deletes),
        delete_files=len(deletes),
    )


def bucket_metrics(
    base: Sequence[PlacedFile],
    change: Sequence[PlacedFile],
    merged: frozenset[int],
    target_bytes: int = TARGET_FILE_BYTES,
    specs: tuple[int | None, int | None] = (None, None),
) -> list[BucketMetrics]:
    """The measures by partition and bucket, in the order of their names.

    Partitions with an older spec come last.

    :param base: with the bounds of the sort column, if it holds whole numbers.
    :param change: with the bounds of ``_txn``. Markers, whose number is 0, are excluded.
    :param merged: transactions that the base contains. All rows of a file with several transactions count as
        pending.
    :param specs: the partition specs for new files of the base and the change table.
    """
    changes = [file for file in change if file.bounds is None or file.bounds[1] > 0]
    placed_base, placed_change = _placed(base, specs[0]), _placed(changes, specs[1])
    found = []
    for is_old, partition in sorted({*placed_base, *placed_change}):
        of_base = placed_base.get((is_old, partition), [])
        of_change = placed_change.get((is_old, partition), [])
        side = sum_files(of_base)
        ideal = ideal_files(side, target_bytes)
        small = sum(file.is_data and file.size_bytes < SMALL_SHARE * target_bytes for file in of_base)
        found.append(
            BucketMetrics(
                partition=partition,
                base=side,
                change=sum_files(of_change),
                # The files that a bucket needs anyway are not counted as small.
                small_files=max(0, small - ideal),
                pending_rows=sum(
                    file.rows for file in of_change if file.is_data and _is_pending(file, merged)
                ),
                ideal_files=ideal,
                is_old=is_old,
                overlap=overlap([file.bounds for file in of_base if file.is_data]),
            )
        )
    return found


def overlap(ranges: Sequence[tuple[int, int] | None]) -> int | None:
    """The maximum number of these closed ranges that share a value; ``None`` if one is unknown.

    >>> overlap([(1, 5), (5, 9), (10, 12)]), overlap([]), overlap([(1, 5), None])
    (2, 0, None)
    """
    known = [one for one in ranges if one is not None]
    if len(known) < len(ranges):
        return None
    # At the same value, a range begins before others end.
    steps = sorted([(low, 1) for low, _ in known] + [(high + 1, -1) for _, high in known])
    return max(accumulate(step for _, step in steps), default=0)


def _placed(
    files: Sequence[PlacedFile], spec: int | None
) -> dict[tuple[bool, tuple[str, ...]], list[PlacedFile]]:
    """Files by whether they have an older partitioning, and by partition."""
    now = current_spec(files, spec)
    found: dict[tuple[bool, tuple[str, ...]], list[PlacedFile]] = {}
    for file in files:
        found.setdefault((file.spec_id != now, file.partition), []).append(file)
    return found


def current_spec(files: Sequence[PlacedFile], spec: int | None) -> int:
    """The partition spec of new files; if unknown, the newest spec of existing files."""
    return max((file.spec_id for file in files), default=0) if spec is None else spec


def _is_pending(file: PlacedFile, merged: frozenset[int]) -> bool:
    return file.bounds is None or file.bounds[0] != file.bounds[1] or file.bounds[0] not in merged


def ideal_files(side: SideMetrics, target_bytes: int) -> int:
    """The number of files that the rows would take if they were freshly written."""
    live = side.size_bytes * (1 - side.delete_ratio)
    return max(1, -(-int(live) // target_bytes)) if side.rows else 0


def read_amplification(base: SideMetrics, change: SideMetrics, ideal: int) -> float:
    """The cost of reading all rows relative to freshly written files; 1.0 is optimal.

    :param change: without the markers.
    """
    fresh = fresh_cost_bytes(base, ideal)
    return max(1.0, read_cost_bytes(base, change) / fresh) if fresh else 1.0


def fresh_cost_bytes(base: SideMetrics, ideal: int) -> float:
    """The cost of reading the live rows from as few files as possible."""
    return base.size_bytes * (1 - base.delete_ratio) + ideal * OPEN_COST_BYTES


def share_of(side: SideMetrics, rows: int) -> SideMetrics:
    """The measures of a part of the rows, assuming that all rows have the same size."""
    share = rows / side.rows if side.rows else 0.0
    return replace(
        side, files=round(side.files * share), size_bytes=round(side.size_bytes * share), rows=rows
    )


def read_cost_bytes(base: SideMetrics, change: SideMetrics) -> float:
    """The cost of reading all rows, in bytes of a plain scan."""
    files = base.files + base.delete_files
    return base.size_bytes + files * OPEN_COST_BYTES + change_cost_bytes(base, change)


def change_cost_bytes(base: SideMetrics, change: SideMetrics) -> float:
    """The part of the cost that is caused by changes, independently of the state of the base."""
    return (
        (LOOKUP_BYTES * base.live_rows if change.rows else 0)
        + CHANGE_WEIGHT * change.size_bytes
        # Both sides of the view read them; the second time they are in the operating system's cache.
        + (change.files + change.delete_files) * OPEN_COST_BYTES
    )
