"""Checks that each row is found through the indexes of its table, with one statement for each index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.read import latest_changes, merge_on_read
from dbt_arctic.keyed.secondary_index import index_name, indexed_columns, rows_without_entry
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.finding import Finding
from dbt_arctic.store.secondary_indexes import usable_index
from dbt_arctic.store.state import columns_at


def check_indexes(
    catalog: CatalogReader,
    table: KeyedTable,
    change: TableState,
    version: Version,
    known: ColumnsAt,
    query: Callable[[str], Sequence[Sequence[Any]]],
) -> Iterator[Finding]:
    """Findings of the indexes that reads use. Others cannot lead to wrong results.

    :param known: the columns of the version's snapshots.
    """
    table = table.visible
    for column in indexed_columns(change.properties):
        usable = usable_index(catalog, table, column, change, version) if column in table.types else None
        if usable is None:
            continue
        changes = None
        if usable.since.transactions:
            earlier = columns_at(catalog, table.change, usable.since.readable_at)
            changes = latest_changes(table, usable.since, version, {**known, **earlier})
        rows = merge_on_read(table, version, known)
        ((count,),) = query(rows_without_entry(table, column, rows, usable.snapshot, changes))
        if count:
            name = index_name(table, column)
            yield Finding(
                "index-misses-rows",
                table.name.dotted,
                f"lookups by {quote(column)} miss {counted(count, 'row')}",
                name.dotted,
                "another program has changed the index",
                f"drop it in Spark: DROP TABLE {name.sql}. The next write of the model creates it again",
            )


__all__ = ["check_indexes"]
