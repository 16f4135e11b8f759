"""Plans which compactions are worthwhile, and in which order. Pure functions.

An operation is a value that is printed, recorded and executed. Its cost and gain are estimated from bytes and
files, as explained in docs/explanation/compaction.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dbt_arctic.compaction.bucketing import wanted_buckets
from dbt_arctic.compaction.metrics import (
    OPEN_COST_BYTES,
    TARGET_FILE_BYTES,
    BucketMetrics,
    SideMetrics,
    change_cost_bytes,
    fresh_cost_bytes,
    read_amplification,
    read_cost_bytes,
)
from dbt_arctic.compaction.settings import CompactionSettings, Trigger
from dbt_arctic.compaction.status import TableStatus
from dbt_arctic.errors import ConfigError
from dbt_arctic.human_readable import counted, shown_bytes, shown_seconds
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable

Kind = Literal["trim", "minor", "major", "full", "merge"]

READ_BYTES_PER_S = 100 * 1024 * 1024
WRITE_BYTES_PER_S = 25 * 1024 * 1024
STATEMENT_S = 0.5
_STATEMENTS: dict[Kind, int] = {"trim": 1, "minor": 2, "major": 4, "full": 2, "merge": 2}
_HIDDEN_OF_CHANGES = 0.5
_WORTH_IT = 0.25
"""An operation is worthwhile if four reads save its cost."""
_LEFT_TO_PILE_UP = 4
"""Tolerated small files per bucket. Each major adds one, so fewer would cause a full rewrite after each."""
FULL_AT_ONCE = 64
"""Maximum number of buckets per statement, so that a commit does not take hours."""


@dataclass(frozen=True)
class Operation:
    """One operation on one table.

    :param buckets: the buckets to rewrite; empty for all that need it.
    :param due: whether a trigger holds. Otherwise the user requested it.
    :param to_buckets: the new number of buckets of the table; ``None`` to keep it.
    :param why: the trigger, in a few words.
    :param cost_s: estimated duration in seconds; ``gain_s``: seconds that each later read of all rows saves.
    """

    kind: Kind
    name: Name
    why: str
    cost_s: float
    gain_s: float
    buckets: tuple[int, ...] = ()
    target_file_bytes: int = TARGET_FILE_BYTES
    due: bool = True
    to_buckets: int | None = None

    @property
    def value(self) -> float:
        """Seconds that each read saves per second spent."""
        return self.gain_s / self.cost_s

    @property
    def scope(self) -> str:
        """The part of the table that the operation covers, for messages."""
        if self.to_buckets is not None:
            return f"all, into {counted(self.to_buckets, 'bucket')}"
        if not self.buckets:
            return "all"
        listed = ", ".join(map(str, self.buckets[:8])) + (", ..." if len(self.buckets) > 8 else "")
        return f"{'bucket' if len(self.buckets) == 1 else 'buckets'} {listed}"


def most_valuable_first(operations: Sequence[Operation]) -> list[Operation]:
    """The order of execution. For one table, a trim comes first, and a merge before a rewrite of the base."""
    places: dict[Kind, int] = {"trim": 0, "minor": 1, "major": 1, "merge": 1, "full": 2}
    best: dict[tuple[Name, int], float] = {}
    for operation in operations:
        for place in range(places[operation.kind] + 1):
            at = (operation.name, place)
            best[at] = max(best.get(at, 0.0), operation.value)
    return sorted(
        operations,
        key=lambda one: (
            places[one.kind] > 0,
            -best[one.name, places[one.kind]],
            one.name,
            places[one.kind],
        ),
    )


def plan_table(
    status: TableStatus, buckets: Sequence[BucketMetrics] | None, settings: CompactionSettings
) -> list[Operation]:
    """The operations that are due for a table.

    :param buckets: the measures by bucket; ``None`` if ``needs_buckets`` is false.
    """
    trigger = settings.trigger
    if trigger is None or settings.shed:
        return []
    if status.table is None:
        return _plan_plain(status, buckets, trigger, settings)
    operations = []
    if status.pending.trim_due:
        gain = _of_changes(status, status.change) - _of_changes(status, status.pending_side)
        operations.append(_made("trim", status, "merged rows are still read", 0, gain, settings))
    now = _plan_changes(status, buckets, trigger, settings)
    if now is not None:
        operations.append(now)
    rebucketing = _plan_rebucket(status, buckets, settings)
    if rebucketing is not None:
        operations.append(rebucketing)
    elif buckets:
        operations += _plan_full(status, status.table, buckets, trigger, settings)
    return operations


def requested_operation(kind: Kind, status: TableStatus, settings: CompactionSettings) -> Operation:
    """An operation that the user requests explicitly, due or not.

    :raises ConfigError: the table does not support this kind.
    """
    if (kind == "merge") == (status.table is not None):
        raise ConfigError(
            f"{status.name} has {'a' if status.table else 'no'} key, so {kind} does not apply",
            where=status.name.dotted,
            fix="minor, major, full and trim are for keyed tables, merge is for others",
        )
    rebucketing = _plan_rebucket(status, None, settings) if kind == "full" else None
    if rebucketing is not None:
        return rebucketing
    changes = status.change.size_bytes
    seconds = {
        "trim": 0.0,
        "minor": changes / WRITE_BYTES_PER_S,
        "major": status.size_bytes / READ_BYTES_PER_S + changes / WRITE_BYTES_PER_S,
    }.get(kind, status.base.size_bytes / READ_BYTES_PER_S + status.base.size_bytes / WRITE_BYTES_PER_S)
    saved = _of_changes(status, status.change) if kind in ("trim", "minor", "major") else 0.0
    return replace(_made(kind, status, "requested", seconds, saved, settings), due=False)


def needs_buckets(status: TableStatus, trigger: Trigger | None) -> bool:
    """Whether measures by bucket are needed, because the totals do not rule out that a bucket is due."""
    if trigger is None:
        return False
    if status.table is not None and status.has_old_specs:
        return True
    if status.table is None:
        # The totals do not show over how many partitions the files are distributed.
        return status.base.files == status.ideal_files >= trigger.files
    base, buckets = status.base, max(1, status.table.layout.buckets)
    some = base.deleted >= trigger.deleted * base.rows / buckets and base.deleted > 0
    extra = read_cost_bytes(base, SideMetrics()) - fresh_cost_bytes(base, status.ideal_files)
    # A full rewrite costs at least its statements.
    slow = extra / READ_BYTES_PER_S >= _WORTH_IT * STATEMENT_S * _STATEMENTS["full"]
    enough = min(trigger.files, _LEFT_TO_PILE_UP) if slow else trigger.files
    many = base.files - status.ideal_files >= enough
    return some or many or bool(status.table.layout.partition_by)


def _plan_changes(
    status: TableStatus,
    buckets: Sequence[BucketMetrics] | None,
    trigger: Trigger,
    settings: CompactionSettings,
) -> Operation | None:
    """Plan a major compaction if it is due, otherwise a minor one."""
    table, pending = status.table, status.pending
    assert table is not None, "a table without a key has no changes"
    if not status.change.files:
        return None
    read_bytes = status.base.size_bytes
    if buckets is not None:
        read_bytes = sum(bucket.base.size_bytes for bucket in buckets if bucket.pending_rows)
    changes = status.pending_side.size_bytes
    seconds = (read_bytes + changes) / READ_BYTES_PER_S + changes / WRITE_BYTES_PER_S
    # A trim removes what is already merged.
    saved = _of_changes(status, status.pending_side)
    major = _made("major", status, "", seconds, saved, settings)
    why = _why_major(status, trigger)
    is_slow = pending.rows and status.pending_amplification >= trigger.read_amplification
    # In a small table, opening files dominates the cost, which is negligible.
    if not why and is_slow and major.value >= _WORTH_IT:
        why = f"pending changes make a read {status.pending_amplification:.1f} times as expensive"
    if why:
        return replace(major, why=why)
    places = _places(table, buckets or ())
    why = _why_minor(status, trigger, places)
    if any(bucket.is_old and bucket.change.files for bucket in buckets or ()) and not status.change_buckets:
        why = "changes have a different number of buckets, and joins shuffle"
    if why:
        kept = places if status.change.live_rows else 0
        size = round(status.change.size_bytes * (1 - status.change.delete_ratio))
        left = SideMetrics(files=kept, size_bytes=size, rows=status.change.live_rows)
        saved = _of_changes(status, status.change) - _of_changes(status, left)
        seconds = status.change.size_bytes / WRITE_BYTES_PER_S
        return _made("minor", status, why, seconds, saved, settings)
    return None


def _of_changes(status: TableStatus, change: SideMetrics) -> float:
    return change_cost_bytes(status.base, change)


def _places(table: KeyedTable, buckets: Sequence[BucketMetrics]) -> int:
    """The number of buckets with changes over all partitions: at least so many files remain."""
    return max(1, table.layout.buckets, sum(bucket.change.files > 0 for bucket in buckets))


def _why_minor(status: TableStatus, trigger: Trigger, places: int) -> str:
    if status.change.files >= trigger.files * places:
        return f"{counted(status.change.files, 'change file')} in {counted(places, 'bucket')}"
    # Transactions trimmed from files with several commits are hidden, not removed.
    if status.change.delete_files and status.change.delete_ratio >= _HIDDEN_OF_CHANGES:
        return f"{status.change.delete_ratio:.0%} of the stored changes are deleted"
    return ""


def _why_major(status: TableStatus, trigger: Trigger) -> str:
    pending = status.pending
    if not pending.rows:
        return ""
    if status.pending_ratio >= trigger.pending:
        return f"{status.pending_ratio:.0%} of the rows are pending"
    age_s = _age_s(status)
    if age_s >= trigger.age_s:
        return f"changes have been pending for {shown_seconds(age_s)}"
    return ""


def _age_s(status: TableStatus) -> float:
    since, written = status.pending.since_ms, status.measured_ms
    return 0.0 if since is None else (written - since) / 1000


def _plan_full(
    status: TableStatus,
    table: KeyedTable,
    buckets: Sequence[BucketMetrics],
    trigger: Trigger,
    settings: CompactionSettings,
) -> list[Operation]:
    """Plan a rewrite of the buckets that need it, and of those that are slow to read if worthwhile."""
    needing = [bucket for bucket in buckets if _why_full(bucket, trigger)]
    slow = [bucket for bucket in buckets if _why_full(bucket, trigger) or _is_slow(bucket, trigger)]
    if len(slow) > len(needing):
        why = f"its files make a read {max(map(_amplification, slow)):.1f} times as expensive"
        planned = _full_of(status, table, slow, why, settings)
        if planned.value >= _WORTH_IT:
            return [planned]
    return [_full_of(status, table, needing, _why_full(needing[0], trigger), settings)] if needing else []


def _full_of(
    status: TableStatus,
    table: KeyedTable,
    chosen: Sequence[BucketMetrics],
    why: str,
    settings: CompactionSettings,
) -> Operation:
    read = sum(bucket.base.size_bytes for bucket in chosen)
    gain = sum(
        read_cost_bytes(bucket.base, SideMetrics()) - fresh_cost_bytes(bucket.base, bucket.ideal_files)
        for bucket in chosen
    )
    found = {_number(bucket, table) for bucket in chosen}
    numbers = tuple(sorted(number for number in found if number is not None))[:FULL_AT_ONCE]
    seconds = read / READ_BYTES_PER_S + read / WRITE_BYTES_PER_S
    everywhere = len(numbers) >= max(1, table.layout.buckets) or None in found
    made = _made("full", status, why, seconds, gain, settings)
    return made if everywhere else replace(made, buckets=numbers)


def _is_slow(bucket: BucketMetrics, trigger: Trigger) -> bool:
    return bucket.small_files >= _LEFT_TO_PILE_UP and _amplification(bucket) >= trigger.read_amplification


def _amplification(bucket: BucketMetrics) -> float:
    """The read amplification of the base files of a bucket."""
    return read_amplification(bucket.base, SideMetrics(), bucket.ideal_files)


def _plan_rebucket(
    status: TableStatus, buckets: Sequence[BucketMetrics] | None, settings: CompactionSettings
) -> Operation | None:
    """Rewrite the table into more or fewer buckets, or complete an interrupted rewrite."""
    assert status.table is not None, "a table without a key has no buckets of ours"
    now, wanted = status.table.layout.buckets, wanted_buckets(status, settings)
    if not now:
        return None  # the table was adopted without buckets
    size = status.base.size_bytes
    seconds = size / READ_BYTES_PER_S + size / WRITE_BYTES_PER_S + 4 * STATEMENT_S
    why = ""
    if wanted != now:
        verb = "grow" if wanted > now else "shrink"
        each = (
            f"{shown_bytes(size / now)} per bucket, the target is {shown_bytes(settings.target_bucket_bytes)}"
        )
        reason = each if settings.buckets is None else "set by the model"
        why = f"{verb} from {now} to {counted(wanted, 'bucket')}: {reason}; "
        why += "joins shuffle while changes are moved"
    elif status.change_buckets:
        of_changes = counted(status.change_buckets, "bucket")
        why = f"its changes have {of_changes}, its base {now}, and joins shuffle"
    elif status.rebucketing_interrupted:
        why = f"the change of its number of buckets to {now} was interrupted, and joins shuffle"
    elif any(bucket.is_old and bucket.base.files for bucket in buckets or ()):
        why = f"some files are not in {counted(now, 'bucket')} yet, and reads and joins shuffle"
    elif status.markers_lost:
        why, seconds = (
            "its bucket markers are missing, and joins shuffle until they are restored",
            STATEMENT_S,
        )
    if not why:
        return None
    return replace(_made("full", status, why, seconds, 0.0, settings), to_buckets=wanted)


def _why_full(bucket: BucketMetrics, trigger: Trigger) -> str:
    base = bucket.base
    if base.rows and base.delete_ratio >= trigger.deleted:
        return f"{base.delete_ratio:.0%} of the stored rows are deleted"
    if bucket.small_files >= trigger.files:
        return f"{counted(bucket.small_files, 'small file')} in a bucket"
    return ""


def _number(bucket: BucketMetrics, table: KeyedTable) -> int | None:
    """The bucket's number: the last field of the partition; ``None`` if files are older than the buckets."""
    last = bucket.partition[-1] if table.layout.buckets and bucket.partition and not bucket.is_old else ""
    return int(last) if last.isdigit() else None


def _plan_plain(
    status: TableStatus,
    buckets: Sequence[BucketMetrics] | None,
    trigger: Trigger,
    settings: CompactionSettings,
) -> list[Operation]:
    """Compact the small files of a plain table."""
    extra = status.base.files - status.ideal_files
    if buckets is not None:
        extra = sum(bucket.base.files - bucket.ideal_files for bucket in buckets)
    if extra < trigger.files and status.base.delete_ratio < trigger.deleted:
        return []
    why = (
        f"{counted(extra, 'file')} more than its rows need"
        if extra >= trigger.files
        else f"{status.base.delete_ratio:.0%} of the stored rows are deleted"
    )
    seconds = status.base.size_bytes / READ_BYTES_PER_S + status.base.size_bytes / WRITE_BYTES_PER_S
    gain = extra * OPEN_COST_BYTES + status.base.size_bytes * status.base.delete_ratio
    return [_made("merge", status, why, seconds, gain, settings)]


def _made(
    kind: Kind, status: TableStatus, why: str, seconds: float, gain_bytes: float, settings: CompactionSettings
) -> Operation:
    return Operation(
        kind=kind,
        name=status.name,
        why=why,
        cost_s=STATEMENT_S * _STATEMENTS[kind] + seconds,
        gain_s=max(0.0, gain_bytes) / READ_BYTES_PER_S,
        target_file_bytes=settings.target_file_bytes,
    )
