"""Determines how many buckets a table should have. Pure functions.

Explained in docs/explanation/compaction.md. ``rebucket`` changes the number of buckets of a table.
"""

from __future__ import annotations

from dbt_arctic.compaction.metrics import MIB
from dbt_arctic.compaction.settings import CompactionSettings
from dbt_arctic.compaction.status import TableStatus
from dbt_arctic.keyed.layout import DEFAULT_BUCKETS, MAX_BUCKETS

MIN_BUCKET_BYTES = 32 * MIB
"""Buckets are not made smaller to gain parallelism: starting a task would take longer than reading."""
GROW_BY = 4
SHRINK_BY = 8
"""Minimum factor by which the number of buckets is reduced, so that it is stable for a table of similar
size.
"""
SMALL_BYTES = 16 * MIB
"""A table below this size has one bucket, because each bucket costs a read a task, and a write a file. It has
several again at a far greater size.
"""


def wanted_buckets(status: TableStatus, settings: CompactionSettings) -> int:
    """The number of buckets that a table should have.

    It is the current one if that is close, since a change rewrites the table.
    """
    assert status.table is not None, "a table without a key has no buckets of ours"
    layout = status.table.layout
    if not layout.buckets:
        return 0  # the table was adopted without buckets
    if settings.buckets is not None:
        return settings.buckets
    if layout.partition_by:
        return layout.buckets  # the size of a partition limits a read there, and it varies from day to day
    size = round(status.base.size_bytes * (1 - status.base.delete_ratio))
    by_size = _power_above(-(-size // settings.target_bucket_bytes))
    by_tasks = min(_power_above(settings.parallelism), _power_above(size // MIN_BUCKET_BYTES + 1) // 2)
    wanted = min(MAX_BUCKETS, max(by_size, by_tasks))
    if wanted >= GROW_BY * layout.buckets:
        return wanted
    wanted = 1 if size < SMALL_BYTES else max(wanted, DEFAULT_BUCKETS)
    return wanted if wanted * SHRINK_BY <= layout.buckets else layout.buckets


def _power_above(number: int) -> int:
    """The smallest power of two that is not below a number.

    >>> [_power_above(number) for number in (0, 1, 2, 3, 8, 9)]
    [1, 1, 2, 4, 8, 16]
    """
    return 1 << max(0, number - 1).bit_length()
