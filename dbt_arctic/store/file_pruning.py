"""Whether a keyed table has rows in an interval of a column, from its manifests, without a Spark job."""

from __future__ import annotations

from dbt_arctic.catalog.api import CatalogReader, DataFile
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import MARKER_TXN, TXN, KeyedTable
from dbt_arctic.keyed.version import Version


def may_hold(
    catalog: CatalogReader, table: KeyedTable, version: Version, column: str, lowest: int, highest: int
) -> bool:
    """Whether a row at a version may have a value between two stored values in ``column``.

    The result is ``True`` if only Spark could answer. A file without bounds may hold any value.

    :param lowest: the least value, as Iceberg stores it: microseconds or days since 1970.
    :param highest: the greatest value, inclusive.
    """
    if catalog.of(table.base).needs_spark:
        return True

    def files(side: Name, snapshot: int, of: str) -> list[DataFile]:
        return catalog.of(side).data_files(side.schema, side.identifier, snapshot, of) if snapshot else []

    if any(_overlaps(file, lowest, highest) for file in files(table.base, version.base_snapshot, column)):
        return True
    changes = files(table.change, version.change_snapshot, column)
    # Bucket markers have no bounds in any other column.
    of_txn = files(table.change, version.change_snapshot, TXN)
    markers = {file.path for file in of_txn if file.upper == MARKER_TXN}
    return any(_overlaps(file, lowest, highest) for file in changes if file.path not in markers)


def _overlaps(file: DataFile, lowest: int, highest: int) -> bool:
    if file.lower is None or file.upper is None:
        return file.nulls != file.record_count
    return file.lower <= highest and file.upper >= lowest
