"""The secondary indexes of a keyed table: what they cover, and the statements that keep them up to date.

Writes of the keyed table do not know its indexes. An index is extended by the changes since the version that
it covers, like a model that pulls them, and readers add the changes that it lacks. So an index that was not
extended costs time, and never a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed import create, secondary_index
from dbt_arctic.keyed.compact import rewrite_index
from dbt_arctic.keyed.log import LogRange, log_range
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.read import latest_changes, merge_on_read
from dbt_arctic.keyed.secondary_index import Coverage
from dbt_arctic.keyed.table import PROPERTY_ID, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import (
    columns_at,
    columns_of,
    count_files,
    count_live_rows,
    count_rows,
    head,
    load_change,
    pinned_pair,
    total,
    version_of,
)

_STALE = 2
"""An index with more entries than so many for each row is built again."""
_FEW_ENTRIES = 100_000
"""A smaller index is not built again for its stale entries."""
_MANY_FILES = 16
"""A lookup opens each file that may have the value, so an index with as many files is rewritten."""


class UsableIndex(NamedTuple):
    """An index that, together with some changes, has the keys of all rows with a value.

    :param snapshot: the snapshot to read.
    :param since: the changes since the version that it covers.
    """

    name: Name
    snapshot: int
    since: LogRange


def usable_index(
    catalog: CatalogReader, table: KeyedTable, column: str, change: TableState, at: Version
) -> UsableIndex | None:
    """The index of a column for a read; ``None`` if there is none, or if it does not cover enough.

    :param change: the state of the change table.
    :param at: the version to read, of the generation of ``table``.
    """
    state = _load(catalog, table, column)
    return None if state is None else _usable(table, column, state, change, at)


def _usable(
    table: KeyedTable, column: str, state: TableState, change: TableState, at: Version
) -> UsableIndex | None:
    covered = secondary_index.coverage(state.history())
    if (
        covered is None
        or covered.change_id != table.generation.change_id
        or _has_other_types(table, column, state)
    ):
        return None
    since = log_range(change.history(at.change_snapshot), covered.version.change_snapshot)
    known = {snapshot.snapshot_id for snapshot in change.snapshots}
    if since is None or not known.issuperset(since.readable_at):
        return None  # a later version is covered, or commits have expired
    return UsableIndex(secondary_index.index_name(table, column), head(state), since)


def _load(catalog: CatalogReader, table: KeyedTable, column: str) -> TableState | None:
    """An index of ours; ``None`` if there is none."""
    name = secondary_index.index_name(table, column)
    state = catalog.of(name).load_table(name.schema, name.identifier)
    return state if state is not None and secondary_index.is_index(table, column, state.properties) else None


def _has_other_types(table: KeyedTable, column: str, state: TableState) -> bool:
    types = table.types
    wanted = [(name, types.get(name)) for name in secondary_index.entry_columns(table, column)]
    return [(one.name, one.type) for one in state.columns] != wanted


def refresh_index(context: Context, table: KeyedTable, column: str) -> str:
    """Bring an index up to date, in one commit. Create it if it does not exist.

    It is built again if it covers another generation, if its log has expired, or if most entries are stale.

    :returns: what was done, in a few words; empty for nothing.
    :raises ConfigError: another table has the name of the index.
    """
    state = _load(context.catalog, table, column)
    table, base, change = pinned_pair(context.catalog, table)
    table = table.visible
    now = version_of(table, base, change)
    usable = None if state is None else _usable(table, column, state, change, now)
    if state is not None and usable is not None and not _is_stale(state, base, change):
        if not usable.since.transactions:
            return ""
        known = {
            **columns_at(context.catalog, table.change, usable.since.readable_at),
            **columns_of(context.catalog, table, now),
        }
        changes = latest_changes(table, usable.since, now, known)
        covered = Coverage(table.generation.change_id, now, usable.snapshot)
        context.run("extend_index", secondary_index.extend_index(table, column, changes, covered), table)
        if (count_files(state) or 0) >= _MANY_FILES:
            context.run("rewrite_index", rewrite_index(usable.name, column), table)
        return "extended"
    if state is None or _has_other_types(table, column, state):
        _refuse_other_table(context.catalog, table, column)
        context.run("create_index", secondary_index.create_index(table, column), table)
        context.run("order_index", secondary_index.order_index(table, column), table)
    rows = merge_on_read(table, now, columns_of(context.catalog, table, now))
    covered = Coverage(table.generation.change_id, now, None)
    context.run("fill_index", secondary_index.fill_index(table, column, rows, covered), table)
    return "built"


def _is_stale(state: TableState, base: TableState, change: TableState) -> bool:
    entries, rows = count_rows(state), total(map(count_live_rows, (base, change)))
    return entries is not None and rows is not None and entries > max(_FEW_ENTRIES, _STALE * rows)


def _refuse_other_table(catalog: CatalogReader, table: KeyedTable, column: str) -> None:
    name = secondary_index.index_name(table, column)
    reader = catalog.of(name)
    state = reader.load_table(name.schema, name.identifier)
    is_ours = state is not None and secondary_index.PROPERTY_INDEX_OF in state.properties
    if (state is not None and not is_ours) or reader.load_view(name.schema, name.identifier) is not None:
        raise ConfigError(
            f"{name} is not an index of dbt-arctic",
            where=table.name.dotted,
            why=f"the index of {column} needs this name",
            fix="rename it, or remove the column from indexes",
        )


def apply_indexes(context: Context, table: KeyedTable, wanted: Sequence[str]) -> None:
    """Create the indexes that a model is configured to have, and drop its others.

    Existing ones are not extended: compaction does that.

    :param wanted: the columns, spelled as in the table.
    """
    present = secondary_index.indexed_columns(load_change(context.catalog, table).properties)
    for column in wanted:
        if column not in present or _load(context.catalog, table, column) is None:
            refresh_index(context, table, column)
    if set(present) != set(wanted):
        # Before the drop: compaction does not create it again.
        context.run("set_indexes", secondary_index.set_indexed_columns(table, wanted), table)
    for column in present:
        if column not in wanted:
            _drop(context, table, column)


def refresh_indexes(context: Context, table: KeyedTable, change: TableState) -> list[str]:
    """Bring all indexes of a table up to date, and return what was done with each."""
    columns = [one for one in secondary_index.indexed_columns(change.properties) if one in table.column_names]
    done = [(column, refresh_index(context, table, column)) for column in columns]
    return [f"index of {column} {what}" for column, what in done if what]


def drop_indexes(context: Context, table: KeyedTable) -> None:
    """Drop the indexes of a table that is about to be dropped. Those of another table of its name stay."""
    change = context.catalog.of(table.change).load_table(table.change.schema, table.change.identifier)
    if change is None or change.properties.get(PROPERTY_ID) != table.generation.change_id:
        return
    for column in secondary_index.indexed_columns(change.properties):
        state = _load(context.catalog, table, column)
        covered = None if state is None else secondary_index.coverage(state.history())
        if covered is None or covered.change_id == table.generation.change_id:
            _drop(context, table, column)


def _drop(context: Context, table: KeyedTable, column: str) -> None:
    if _load(context.catalog, table, column) is not None:
        context.run("drop_index", create.drop_table(secondary_index.index_name(table, column)), table)


__all__ = [
    "UsableIndex",
    "apply_indexes",
    "drop_indexes",
    "refresh_index",
    "refresh_indexes",
    "usable_index",
]
