"""What the files of a table are like, and what a read of it costs compared with freshly written files. Pure.

Everything comes from metadata. What a whole table weighs is in the summary of its newest snapshot; where its
weight lies, by bucket, takes its manifests. The cost of a read is an estimate, explained in
docs/explanation/compaction.md; nothing here knows when compaction is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from dbt_arctic.catalog.api import PlacedFile, Snapshot, TableState

MIB = 1024 * 1024
TARGET_FILE_BYTES = 512 * MIB
"""Iceberg's own target."""
OPEN_COST_BYTES = MIB
"""To open a file costs as much as to read so much of it: 10 ms. Spark's ``openCostInBytes`` is four times
that, but it is a rule for what goes into one task, not a time."""
LOOKUP_BYTES = 16
"""While there are changes, the key of each row of the base is looked up: as much as to read so many bytes."""
CHANGE_WEIGHT = 4.0
"""A row of the change table is read twice, hashed and ranked: it costs as much as so many of the base."""
SMALL_SHARE = 0.75
"""A file below this share of the target is a small one: Iceberg's own measure."""


@dataclass(frozen=True)
class SideMetrics:
    """Base or change table, or a plain one. ``rows`` are stored ones; of these, ``deleted`` are hidden.

    ``files`` are data files, ``delete_files`` delete files and deletion vectors; ``size_bytes`` of all.
    """

    files: int = 0
    size_bytes: int = 0
    rows: int = 0
    deleted: int = 0
    delete_files: int = 0

    @property
    def live_rows(self) -> int:
        return max(0, self.rows - self.deleted)

    @property
    def delete_ratio(self) -> float:
        return self.deleted / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class BucketMetrics:
    """One partition and bucket. ``pending_rows`` are those of the change table that the base lacks.

    :param ideal_files: as many as its rows take, freshly written.
    :param overlap: how many base files share a value of the first column that they are sorted by, at most: so
        many a look for it opens. ``None`` where files do not tell.
    :param is_old: the table was partitioned in another way when its files were written.
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
        """As of the whole table."""
        return read_amplification(self.base, self.change, self.ideal_files)


def side_metrics(state: TableState) -> SideMetrics | None:
    """From the totals that Iceberg writes into each snapshot; ``None`` where the newest has none."""
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
    """Main's snapshot."""
    at = state.current_snapshot_id
    return next((one for one in state.snapshots if one.snapshot_id == at), None)


def sum_files(files: Sequence[PlacedFile]) -> SideMetrics:
    """The same from the files themselves."""
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
    """By partition and bucket, in the order of their names; what is partitioned in an older way comes last.

    :param base: with the bounds of the column that its files are sorted by, where they are whole numbers.
    :param change: with the bounds of ``_txn``. Markers, whose number is 0, are left out.
    :param merged: transactions that the base has. Of a file with several, all rows count as pending.
    :param specs: the partition spec of new files of the base, and of the change table.
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
                # What the bucket's rows need anyway is not small, however few they are.
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
    """How many of these closed ranges share a value, at most; ``None`` where one is not known.

    >>> overlap([(1, 5), (5, 9), (10, 12)]), overlap([]), overlap([(1, 5), None])
    (2, 0, None)
    """
    known = [one for one in ranges if one is not None]
    if len(known) < len(ranges):
        return None
    # A range begins before others end at the same value.
    steps = sorted([(low, 1) for low, _ in known] + [(high + 1, -1) for _, high in known])
    return max(accumulate(step for _, step in steps), default=0)


def _placed(
    files: Sequence[PlacedFile], spec: int | None
) -> dict[tuple[bool, tuple[str, ...]], list[PlacedFile]]:
    """By whether they are partitioned in an older way, and where they are."""
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
    live = side.size_bytes * (1 - side.delete_ratio)
    return max(1, -(-int(live) // target_bytes)) if side.rows else 0


def read_amplification(base: SideMetrics, change: SideMetrics, ideal: int) -> float:
    """What a read of all rows costs, over what it would cost in freshly written files; 1.0 is as good as new.

    :param change: without the markers.
    """
    fresh = fresh_cost_bytes(base, ideal)
    return max(1.0, read_cost_bytes(base, change) / fresh) if fresh else 1.0


def fresh_cost_bytes(base: SideMetrics, ideal: int) -> float:
    """The same of the live rows in as few files as they take."""
    return base.size_bytes * (1 - base.delete_ratio) + ideal * OPEN_COST_BYTES


def share_of(side: SideMetrics, rows: int) -> SideMetrics:
    """What some of its rows weigh, if all weigh the same."""
    share = rows / side.rows if side.rows else 0.0
    return replace(
        side, files=round(side.files * share), size_bytes=round(side.size_bytes * share), rows=rows
    )


def read_cost_bytes(base: SideMetrics, change: SideMetrics) -> float:
    """What a read of all rows costs, in bytes of a plain scan."""
    files = base.files + base.delete_files
    return base.size_bytes + files * OPEN_COST_BYTES + change_cost_bytes(base, change)


def change_cost_bytes(base: SideMetrics, change: SideMetrics) -> float:
    """The part of it that is paid for changes, whatever the base is like."""
    return (
        (LOOKUP_BYTES * base.live_rows if change.rows else 0)
        + CHANGE_WEIGHT * change.size_bytes
        # Both sides of the view read them; the second time they are in the operating system's cache.
        + (change.files + change.delete_files) * OPEN_COST_BYTES
    )
