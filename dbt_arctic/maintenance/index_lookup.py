"""Looks up the keys of the rows with some values through a secondary index, without Spark."""

from __future__ import annotations

import pyarrow
import pyarrow.compute

from dbt_arctic.catalog.api import ArrowTable, CatalogReader, TableState
from dbt_arctic.keyed.merge_rows import with_keys
from dbt_arctic.keyed.secondary_index import entry_columns, indexed_columns
from dbt_arctic.keyed.table import ACTION, TXN, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.row_filter import RowFilter
from dbt_arctic.store.secondary_indexes import UsableIndex, usable_index

MANY_KEYS = 100_000
"""With more keys, reading the whole table takes less time than looking them up."""


def keys_by_value(
    catalog: CatalogReader,
    table: KeyedTable,
    change: TableState,
    changes: ArrowTable,
    at: Version,
    wanted: RowFilter,
) -> pyarrow.Table | None:
    """The keys of all rows of a version that match, and possibly others.

    :param change: the state of the change table of ``table``, and ``changes`` its rows.
    :returns: the columns of the key; ``None`` if no index helps.
    """
    for column, values in wanted.without_null.items():
        if column not in indexed_columns(change.properties):
            continue
        if column not in changes.types.names:  # while columns are being changed
            continue
        usable = usable_index(catalog, table, column, change, at)
        if usable is None:
            continue
        entries = catalog.of(table.name).arrow_table(usable.name.schema, usable.name.identifier)
        found = [_entries(table, entries, usable, column, values)]
        found += _since(table, changes, usable, column, values)
        keys = (
            pyarrow.concat_tables(found, promote_options="permissive").group_by(list(table.key)).aggregate([])
        )
        return keys if keys.num_rows <= MANY_KEYS else None
    return None


def _entries(
    table: KeyedTable, entries: ArrowTable, usable: UsableIndex, column: str, values: pyarrow.Array
) -> pyarrow.Table:
    rows = entries.rows(entry_columns(table, column), usable.snapshot, {column: values})
    return with_keys(rows, pyarrow.table({column: values})).select(table.key)


def _since(
    table: KeyedTable, changes: ArrowTable, usable: UsableIndex, column: str, values: pyarrow.Array
) -> list[pyarrow.Table]:
    """The keys of the changes that the index does not cover. Only an upsert makes a row visible."""
    if not usable.since.transactions:
        return []
    transactions = pyarrow.array(usable.since.transactions, pyarrow.int64())
    only = {column: values, TXN: transactions}
    found = []
    for snapshot in usable.since.readable_at:
        rows = changes.rows((*entry_columns(table, column), ACTION, TXN), snapshot, only)
        upserts = rows.filter(pyarrow.compute.equal(rows.column(ACTION), "U"))
        found.append(with_keys(upserts, pyarrow.table({column: values})).select(table.key))
    return found


__all__ = ["MANY_KEYS", "keys_by_value"]
