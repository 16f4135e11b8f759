"""Counts the before-images in commits from manifests, without a Spark job."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.log import PROPERTY_IMAGES, PROPERTY_TXN, SnapshotLike
from dbt_arctic.keyed.table import OFFSET, TXN, KeyedTable


def count_images(
    catalog: CatalogReader, table: KeyedTable, commits: Iterable[SnapshotLike], snapshot_id: int
) -> int | None:
    """The number of before-images that the given commits added, for files that still exist at a snapshot.

    A before-image has NULL in the column of its position in the commit, and files record the number of NULLs.
    The result is ``None`` if a file lacks this count, if it also holds rows of other commits, or if only
    Spark could answer.
    """
    wanted = {int(commit.summary[PROPERTY_TXN]) for commit in commits if commit.summary.get(PROPERTY_IMAGES)}
    if not wanted:
        return 0
    if catalog.of(table.change).needs_spark:
        return None
    side = table.change
    dated = catalog.of(side).data_files(side.schema, side.identifier, snapshot_id, TXN)
    for file in dated:
        if file.lower is None or file.upper is None:
            return None
        if file.lower < file.upper and any(file.lower <= txn <= file.upper for txn in wanted):
            return None
    paths = {file.path for file in dated if file.lower == file.upper and file.lower in wanted}
    places = catalog.of(side).data_files(side.schema, side.identifier, snapshot_id, OFFSET)
    counts = [file.nulls for file in places if file.path in paths]
    return None if None in counts else sum(count for count in counts if count is not None)
