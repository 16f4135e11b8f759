"""Reads the merged rows of a keyed table, or the rows of a plain one, as Arrow without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.errors import ConcurrentRun, ConfigError, VersionUnavailable, only_by_spark
from dbt_arctic.keyed.merge_rows import COMMIT, kept_rows, latest_changes, merge_rows, with_keys
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import ACTION, OFFSET, PROPERTY_ID, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.maintenance.generations import generation_of
from dbt_arctic.maintenance.index_lookup import keys_by_value
from dbt_arctic.maintenance.lookup_keys import KeyTexts, typed_key, wanted_keys
from dbt_arctic.maintenance.row_filter import RowFilter, ValueText, chosen_columns, row_filter, typed_filter
from dbt_arctic.maintenance.shown_fields import with_shown_fields
from dbt_arctic.maintenance.versions import as_time, last_until, resolve
from dbt_arctic.refresh.clone import origin
from dbt_arctic.store.branches import ATTEMPTS
from dbt_arctic.store.state import find_keyed, load_keyed, pinned_pair, version_of

Where = Mapping[str, Any] | Sequence[ValueText] | None
"""A value or several for each column; or values as they are typed."""


def read_table(
    catalog: CatalogReader,
    name: Name,
    columns: Sequence[str] | None = None,
    keys: Any = None,
    at: str | None = None,
    limit: int | None = None,
    where: Where = None,
) -> pyarrow.Table:
    """The rows of a table, a keyed table or a clone of one, in no particular order.

    The parameters are those of ``dbt_arctic.read``.

    :param keys: also as ``KeyTexts``.
    :param where: also as ``ValueText``.
    :param at: as for ``versions.resolve``; for a plain table the id of a snapshot or a time.
    """
    if limit is not None and limit < 0:
        raise ConfigError(
            f"{limit} is not a number of rows",
            where="limit",
            fix="give a number from 0, or None for all rows",
        )
    reader = catalog.of(name)
    if reader.needs_spark:
        reader.arrow_table(name.schema, name.identifier)  # raises the error with the reason
    name = origin(catalog, name)
    table = find_keyed(catalog, name)
    if table is None:
        return _plain(catalog, name, columns, keys, at, limit, where)
    for _ in range(ATTEMPTS):
        table, base, change = pinned_pair(catalog, table)
        version = version_of(table, base, change) if at is None else resolve(catalog, table, at, name.dotted)
        stored = generation_of(catalog, table, version.generation)
        shown = chosen_columns(columns, table.visible.column_names, name.dotted)
        found = _keyed(catalog, stored, version, shown, keys, limit, where, change)
        if stored is table and table.projected:
            try:
                found = with_shown_fields(found, table.types)
            except ValueError:
                continue  # the run that changes the columns has published a new view since
        missing = [column for column in shown if column not in found.column_names]
        if not missing:
            return found.select(shown)
        if stored is not table:
            # The older generation lacks columns.
            types = catalog.of(name).arrow_table(table.base.schema, table.base.identifier).types
            for column in missing:
                nulls = pyarrow.nulls(found.num_rows, types.field(column).type)
                found = found.append_column(column, nulls)
            return found.select(shown)
        # After an interrupted change of columns, the view has one without a type, which is not stored.
        untyped = [column for column in missing if table.types[column] == "void"]
        if untyped == missing:
            for column in untyped:
                found = found.append_column(column, pyarrow.nulls(found.num_rows))
            return found.select(shown)
        # A column was dropped or renamed after the view was read.
    raise ConcurrentRun(
        f"the columns of {name} changed {ATTEMPTS} times while they were read",
        where=name.dotted,
        why="the columns of its view are not those of its base table and its change table",
        fix=f"read it again. If that fails, too, check the table: dbt-arctic verify {name.identifier}",
    )


def _keyed(
    catalog: CatalogReader,
    table: KeyedTable,
    version: Version,
    columns: Sequence[str],
    keys: Any,
    limit: int | None,
    where: Where,
    change_state: TableState,
) -> pyarrow.Table:
    """The rows of a generation, with those of the columns that it has, and with its key.

    :param change_state: of the change table of the current generation.
    """
    sequence = [table.sequence_by] if table.sequence_by else []
    reader = catalog.of(table.name)
    base, change = (reader.arrow_table(side.schema, side.identifier) for side in (table.base, table.change))
    compared = [*table.key, *sequence]
    nested = [column for column in compared if pyarrow.types.is_nested(base.types.field(column).type)]
    if nested:
        raise only_by_spark(
            table.name.dotted, f"{nested[0]}, which its rows are compared by, has fields or elements"
        )
    there = set(base.types.names) & set(change.types.names)
    chosen = _filter(where, base.types, table.visible.types, table.name)
    read = [one for one in dict.fromkeys([*columns, *compared, *chosen.columns]) if one in there]
    of_change = [*read, ACTION, OFFSET]
    wanted: pyarrow.Table | None = None
    if isinstance(keys, KeyTexts):
        wanted = typed_key(keys, table, base.types)
    elif keys is not None:
        wanted = wanted_keys(keys, table.key, base.types, table.name.dotted)
    elif chosen.columns and change_state.properties.get(PROPERTY_ID) == table.generation.change_id:
        wanted = keys_by_value(catalog, table, change_state, change, version, chosen)
    if wanted is not None:
        only = {column: wanted.column(column).combine_chunks() for column in table.key}
        rows = base.rows(read, version.base_snapshot, only)
        changes = change.rows(of_change, version.change_snapshot, only, COMMIT)
        latest = latest_changes(changes, table.key, table.sequence_by)
        merged = merge_rows(rows, latest, table.key, table.sequence_by)
        return chosen.of(with_keys(merged, wanted)).slice(0, limit)
    changes = change.rows(of_change, version.change_snapshot, commit=COMMIT)
    latest = latest_changes(changes, table.key, table.sequence_by)
    if limit is None or chosen.columns:
        # Files without the values are left out of the base table only: a change may hide a row that matches.
        only = {column: values for column, values in chosen.without_null.items() if column in there}
        rows = base.rows(read, version.base_snapshot, only)
        return chosen.of(merge_rows(rows, latest, table.key, table.sequence_by)).slice(0, limit)
    parts, kept, count = [], [], 0
    for part in base.parts(read, version.base_snapshot):
        parts.append(part)
        kept.append(kept_rows(part, latest, table.key, table.sequence_by))
        count += kept[-1].num_rows
        if count >= limit:
            return pyarrow.concat_tables(kept).slice(0, limit)
    rows = merge_rows(pyarrow.concat_tables(parts), latest, table.key, table.sequence_by)
    return rows.slice(0, limit)


def _plain(
    catalog: CatalogReader,
    name: Name,
    columns: Sequence[str] | None,
    keys: Any,
    at: str | None,
    limit: int | None,
    where: Where,
) -> pyarrow.Table:
    reader = catalog.of(name)
    state = reader.load_table(name.schema, name.identifier)
    if state is None:
        if reader.load_view(name.schema, name.identifier) is None:
            load_keyed(catalog, name)  # the error for a name that does not exist
        raise only_by_spark(name.dotted, "it is a view, which is a query of Spark")
    if keys is not None:
        raise ConfigError(
            f"{name} is a plain table, which has no key",
            where="keys",
            fix="give the values of columns: where={'column': value}",
        )
    table = reader.arrow_table(name.schema, name.identifier)
    shown = chosen_columns(columns, table.types.names, name.dotted)
    chosen = _filter(where, table.types, {one.name: one.type for one in state.columns}, name)
    # Without columns, Arrow does not count rows.
    read = list(dict.fromkeys([*shown, *chosen.columns])) or table.types.names[:1]
    snapshot_id = state.current_snapshot_id if at is None else _snapshot_at(state, name, at)
    if snapshot_id is None:
        return table.types.empty_table().select(shown)
    if limit is None or chosen.columns:
        return chosen.of(table.rows(read, snapshot_id, chosen.without_null)).slice(0, limit).select(shown)
    parts: list[pyarrow.Table] = []
    count = 0
    for part in table.parts(read, snapshot_id):
        parts.append(part)
        count += part.num_rows
        if count >= limit:
            break
    return pyarrow.concat_tables(parts).slice(0, limit).select(shown)


def _filter(where: Where, types: pyarrow.Schema, spark_types: Mapping[str, str], name: Name) -> RowFilter:
    if isinstance(where, Mapping):
        return row_filter(where, types, list(spark_types), name.dotted)
    return typed_filter(where or (), types, spark_types, name.dotted)


def _snapshot_at(state: TableState, name: Name, text: str) -> int:
    history = state.history()
    at_ms = None if text.strip().isdigit() else as_time(text.strip())
    if at_ms is not None:
        found = last_until(history, at_ms)
    else:
        ids = {str(snapshot.snapshot_id): snapshot.snapshot_id for snapshot in state.snapshots}
        found = ids.get(text.strip())
    if found is None:
        raise VersionUnavailable(
            f"{name} has no version {text!r}",
            where=name.dotted,
            why="a version of a plain table is the id of one of its snapshots, or a time in UTC since the "
            "oldest of them",
            fix=f"choose a snapshot that `dbt-arctic history {name.identifier}` lists",
        )
    return found
