"""Measures the current state of a table: its files, pending changes and lag. Reads metadata, without Spark.

For most tables, the totals of the newest snapshots and the two logs suffice. Manifests are read if the logs
do not reach back far enough, and for measures by bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogReader, PlacedFile, Snapshot, TableState
from dbt_arctic.compaction.markers import are_lost, count_markers
from dbt_arctic.compaction.metrics import (
    TARGET_FILE_BYTES,
    BucketMetrics,
    SideMetrics,
    bucket_metrics,
    change_cost_bytes,
    fresh_cost_bytes,
    ideal_files,
    newest,
    read_amplification,
    share_of,
    side_metrics,
    sum_files,
)
from dbt_arctic.compaction.settings import DEFAULT_TRIM_GRACE_SECONDS
from dbt_arctic.keyed import compact, create
from dbt_arctic.keyed.log import (
    PROPERTY_MARKERS,
    PROPERTY_TXN,
    landed_again,
    merged_transactions,
    newest_merge_ms,
    rows_added,
)
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import MARKER_TXN, TXN, KeyedTable
from dbt_arctic.store.leftovers import txn_age_ms
from dbt_arctic.store.state import with_current_buckets


@dataclass(frozen=True)
class Pending:
    """Transactions of the change table: those that are not merged, and merged ones that are not trimmed yet.

    :param since_ms: the time of the oldest unmerged commit.
    :param waiting_rows: merged rows that are not trimmed. They are read correctly and cost as much as pending
        ones.
    :param trim_due: whether some of these were merged longer ago than the grace period.
    """

    commits: int = 0
    rows: int = 0
    since_ms: int | None = None
    waiting_rows: int = 0
    trim_due: bool = False


@dataclass(frozen=True)
class TableStatus:
    """The status of one table.

    ``change`` excludes the markers; for a plain table it is empty, and ``table`` is ``None``.

    :param table: with the current number of buckets of its base.
    :param ideal_files: the number of files if its rows were freshly written.
    :param written_ms: the time of the newest commit.
    :param measured_ms: the time of the measurement.
    :param change_buckets: the number of buckets of the change table if it differs, because a change is in
        progress.
    :param rebucketing_interrupted: whether that change was interrupted, and markers or statistics of new
        files are missing.
    :param markers_lost: whether the change table has lost its bucket markers.
    :param has_old_specs: whether there may be files with an older partitioning.
    """

    name: Name
    table: KeyedTable | None
    base: SideMetrics
    change: SideMetrics
    pending: Pending
    ideal_files: int
    written_ms: int | None
    measured_ms: int = 0
    change_buckets: int | None = None
    rebucketing_interrupted: bool = False
    markers_lost: bool = False
    has_old_specs: bool = False

    @property
    def files(self) -> int:
        """The number of data files of both side tables."""
        return self.base.files + self.change.files

    @property
    def size_bytes(self) -> int:
        """The size of both side tables."""
        return self.base.size_bytes + self.change.size_bytes

    @property
    def pending_ratio(self) -> float:
        """Pending rows as a share of the base rows; of an empty base, all of them."""
        return (
            self.pending.rows / self.base.live_rows if self.base.live_rows else float(self.pending.rows > 0)
        )

    @property
    def read_amplification(self) -> float:
        """The cost of reading the table relative to fresh files."""
        return read_amplification(self.base, self.change, self.ideal_files)

    @property
    def pending_side(self) -> SideMetrics:
        """The part of the change table that is not merged."""
        return share_of(self.change, self.pending.rows)

    @property
    def pending_amplification(self) -> float:
        """The cost of a read with fresh files and the pending changes, relative to one without the changes.

        Excludes the lookup of keys: the first change causes it, so it would be due again after each major
        compaction. Also excludes merged changes, which a trim removes, and the state of the base: a worse
        base would allow for more pending changes.
        """
        fresh = fresh_cost_bytes(self.base, self.ideal_files)
        return 1 + change_cost_bytes(SideMetrics(), self.pending_side) / fresh if fresh else 1.0


def measure_keyed(
    catalog: CatalogReader,
    table: KeyedTable,
    base: TableState,
    change: TableState,
    now_ms: int,
    grace_s: float = DEFAULT_TRIM_GRACE_SECONDS,
    target_bytes: int = TARGET_FILE_BYTES,
    markers_lost: bool | None = None,
) -> TableStatus:
    """Measure the files, rows and pending changes of a keyed table from metadata.

    :param base: the state of the base table in the catalog.
    :param change: the state of the change table. If a compaction commits between the two reads, the figures
        are slightly inconsistent, which has no other effect.
    :param grace_s: the grace period, after which merged changes are due to be trimmed.
    :param markers_lost: whether the bucket markers are assumed to be lost; ``None`` to check.
    """
    table, of_changes = with_current_buckets(table, base), with_current_buckets(table, change)
    of_base = side_metrics(base) or sum_files(_placed(catalog, table.name, base))
    markers_lost = are_lost(catalog, of_changes, change) if markers_lost is None else markers_lost
    markers, marker_bytes = (0, 0) if markers_lost else count_markers(of_changes, change)
    whole = side_metrics(change) or sum_files(_placed(catalog, table.name, change))
    of_change = SideMetrics(
        files=max(0, whole.files - markers),
        size_bytes=max(0, whole.size_bytes - marker_bytes),
        rows=max(0, whole.rows - markers),
        deleted=whole.deleted,
        delete_files=whole.delete_files,
    )
    pending = _pending(catalog, of_changes, base, change, of_change, now_ms, int(grace_s * 1000))
    return TableStatus(
        name=table.name,
        table=table,
        base=of_base,
        change=of_change,
        pending=pending,
        ideal_files=_ideal(of_base, _partitions(table, of_base), target_bytes),
        written_ms=max((at for at in (_written_ms(base), _written_ms(change)) if at), default=None),
        measured_ms=now_ms,
        change_buckets=of_changes.layout.buckets if of_changes != table else None,
        rebucketing_interrupted=not create.keeps_statistics(change.properties),
        markers_lost=markers_lost,
        has_old_specs=base.has_old_specs or change.has_old_specs,
    )


def measure_plain(
    catalog: CatalogReader, name: Name, state: TableState, now_ms: int, target_bytes: int = TARGET_FILE_BYTES
) -> TableStatus:
    """Measure a table without a key."""
    side = side_metrics(state) or sum_files(_placed(catalog, name, state))
    partitions = 1 if state.partitioning == () else side.files
    ideal = _ideal(side, partitions, target_bytes)
    return TableStatus(name, None, side, SideMetrics(), Pending(), ideal, _written_ms(state), now_ms)


def measure_buckets(
    catalog: CatalogReader,
    status: TableStatus,
    base: TableState,
    change: TableState | None,
    target_bytes: int,
) -> list[BucketMetrics]:
    """Measure a table by partition and bucket, from the manifests."""
    changes = [] if change is None else _placed(catalog, status.name, change, TXN)
    return bucket_metrics(
        _placed(catalog, status.name, base, _sorted_by(status.table)),
        changes,
        merged_transactions(base.history()),
        target_bytes,
        (base.spec_id, None if change is None else change.spec_id),
    )


def _sorted_by(table: KeyedTable | None) -> str:
    """The first sort column of the files if its bounds are whole numbers; otherwise empty."""
    first = table.layout.sort_by[0] if table is not None and table.layout.sort_by else ""
    return first if table is not None and table.types.get(first) in ("int", "bigint") else ""


def _placed(catalog: CatalogReader, name: Name, state: TableState, column: str = "") -> Sequence[PlacedFile]:
    if state.current_snapshot_id is None:
        return []
    return catalog.of(name).placed_files(state.schema, state.name, state.current_snapshot_id, column)


def _written_ms(state: TableState) -> int | None:
    snapshot = newest(state)
    return None if snapshot is None else snapshot.timestamp_ms


def _partitions(table: KeyedTable, base: SideMetrics) -> int:
    """The number of partitions and buckets with rows.

    The number of user partitions would require manifests. Each file is assumed to be in a partition of its
    own, so that the status of such a table is never worse than reality.
    """
    return base.files if table.layout.partition_by else max(1, table.layout.buckets)


def _ideal(side: SideMetrics, partitions: int, target_bytes: int) -> int:
    return min(side.files, max(partitions, ideal_files(side, target_bytes)))


def _pending(
    catalog: CatalogReader,
    table: KeyedTable,
    base: TableState,
    change: TableState,
    rows: SideMetrics,
    now_ms: int,
    grace_ms: int,
) -> Pending:
    if not rows.live_rows:
        return Pending()
    merges, commits = base.history(), change.history()
    merged = merged_transactions(merges) - landed_again(commits, merges)
    if _logs_are_complete(merges, commits, merged, max(1, table.layout.buckets)):
        counts = {
            int(commit.summary[PROPERTY_TXN]): rows_added(commit)
            for commit in commits
            if PROPERTY_TXN in commit.summary
        }
    else:
        counts = _counted(_placed(catalog, table.name, change, TXN))
    unmerged = {txn: count for txn, count in counts.items() if count and txn not in merged}
    pending_rows = min(sum(unmerged.values()), rows.live_rows)
    waiting = rows.live_rows - pending_rows
    return Pending(
        commits=len(unmerged),
        rows=pending_rows,
        since_ms=min((now_ms - txn_age_ms(txn, now_ms) for txn in unmerged), default=None),
        waiting_rows=waiting,
        trim_due=waiting > 0 and _trim_due(table, merges, change, now_ms, grace_ms),
    )


def _logs_are_complete(
    merges: Sequence[Snapshot], commits: Sequence[Snapshot], merged: frozenset[int], markers: int
) -> bool:
    """Whether both logs contain everything that may be pending, and nothing relevant has expired."""
    oldest_merge, oldest = merges[-1], commits[-1]
    if oldest.parent_id is not None:
        before = int(oldest.summary.get("total-records", "-1")) - rows_added(oldest)
        if not 0 <= before <= markers:
            return False  # rows existed before the log begins
    if oldest_merge.parent_id is None:
        return True
    return not any(
        commit.timestamp_ms <= oldest_merge.timestamp_ms and int(commit.summary[PROPERTY_TXN]) not in merged
        for commit in commits
        if PROPERTY_TXN in commit.summary
    )


def _counted(files: Iterable[PlacedFile]) -> dict[int, int]:
    """Rows by transaction. Rows of a file with several transactions count for the newest of them."""
    found: dict[int, int] = {}
    for file in files:
        if file.is_data and file.bounds is not None and file.bounds[1] > MARKER_TXN:
            found[file.bounds[1]] = found.get(file.bounds[1], 0) + file.rows
    return found


def _trim_due(
    table: KeyedTable, merges: Sequence[Snapshot], change: TableState, now_ms: int, grace_ms: int
) -> bool:
    """Whether something was merged longer ago than the grace period, and nothing was trimmed since its end.

    With a sequence, deletes stay in the change table, and a trim that has left them is complete.
    """
    merged_ms = newest_merge_ms(merges, now_ms - grace_ms)
    if merged_ms is None:
        return False
    nothing = compact.NothingToTrim.of(change.properties)
    if nothing is not None and nothing.holds(table, merged_ms, now_ms):
        return False
    commits = change.history()
    made = {one.parent_id for one in commits if PROPERTY_MARKERS in one.summary}
    return not any(
        # Exclude the commits that replaced bucket markers.
        one.operation == "delete" and one.snapshot_id not in made and one.timestamp_ms >= merged_ms + grace_ms
        for one in commits
    )
