"""Determines how many buckets a table should have. Pure functions.

Explained in docs/explanation/compaction.md. ``rebucket`` changes the number of buckets of a table.
"""

from __future__ import annotations

from dbt_arctic.compaction.settings import CompactionSettings
from dbt_arctic.compaction.status import TableStatus
from dbt_arctic.keyed.layout import buckets_for_size

GROW_BY = 4
SHRINK_BY = 8
"""Minimum factor by which the number of buckets is reduced, so that it is stable for a table of similar
size.
"""


def wanted_buckets(status: TableStatus, settings: CompactionSettings) -> int:
    """The number of buckets that a table should have: the current one if it is close, since a change
    rewrites the table.
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
    if not size:
        return layout.buckets  # a rewrite of nothing would gain nothing, and rows may come back
    wanted = buckets_for_size(size, settings.target_bucket_bytes, settings.parallelism)
    is_close = wanted < GROW_BY * layout.buckets and wanted * SHRINK_BY > layout.buckets
    return layout.buckets if is_close else wanted
