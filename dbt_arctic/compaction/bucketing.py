"""How many buckets a table should have. Pure.

Explained in docs/explanation/compaction.md; how a table gets them is in ``rebucket``.
"""

from __future__ import annotations

from dbt_arctic.compaction.metrics import MIB
from dbt_arctic.compaction.settings import CompactionSettings
from dbt_arctic.compaction.status import TableStatus
from dbt_arctic.keyed.layout import DEFAULT_BUCKETS, MAX_BUCKETS

LEAST_BUCKET_BYTES = 32 * MIB
"""For the sake of more tasks at once no bucket is made smaller: to begin a task would take longer."""
GROW_BY = 4
SHRINK_BY = 8
"""By at least so much, so that a table of about the same size keeps its buckets."""


def wanted_buckets(status: TableStatus, settings: CompactionSettings) -> int:
    """The current number of buckets if it is close enough, because a change rewrites the whole table."""
    assert status.table is not None, "a table without a key has no buckets of ours"
    layout = status.table.layout
    if not layout.buckets:
        return 0  # it was adopted without
    if settings.buckets is not None:
        return settings.buckets
    if layout.partition_by:
        return layout.buckets  # how much a partition has bounds a read there, and differs from day to day
    size = round(status.base.size_bytes * (1 - status.base.delete_ratio))
    by_size = _power_above(-(-size // settings.target_bucket_bytes))
    by_tasks = min(_power_above(settings.parallelism), _power_above(size // LEAST_BUCKET_BYTES + 1) // 2)
    wanted = min(MAX_BUCKETS, max(by_size, by_tasks))
    if wanted >= GROW_BY * layout.buckets:
        return wanted
    wanted = max(wanted, DEFAULT_BUCKETS)
    return wanted if wanted * SHRINK_BY <= layout.buckets else layout.buckets


def _power_above(number: int) -> int:
    """
    >>> [_power_above(number) for number in (0, 1, 2, 3, 8, 9)]
    [1, 1, 2, 4, 8, 16]
    """
    return 1 << max(0, number - 1).bit_length()
