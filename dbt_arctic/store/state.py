"""Loads keyed tables from the catalog, and says which table may be meant if a name is not one of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dbt_arctic.catalog.api import CatalogColumn, CatalogReader, TableState, ViewState
from dbt_arctic.errors import DamagedKeyedTable, UnknownRelation
from dbt_arctic.keyed.clone_origin import began_as
from dbt_arctic.keyed.columns_at import ColumnsAt, ColumnThen
from dbt_arctic.keyed.layout import count_buckets
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import PROPERTY_ID, Column, KeyedTable, from_properties, is_keyed
from dbt_arctic.keyed.type_categories import compare_exactly
from dbt_arctic.keyed.version import FILE_LIST, PROPERTY_SOURCE, Version

_ATTEMPTS = 20


def to_columns(columns: tuple[CatalogColumn, ...]) -> tuple[Column, ...]:
    """Convert the columns of the catalog to those of a keyed table."""
    return tuple(Column(column.name, column.type, column.comment) for column in columns)


def keyed_from_view(name: Name, view: ViewState) -> KeyedTable | None:
    """The keyed table behind a view, or ``None`` for an ordinary view."""
    if not is_keyed(view.properties):
        return None
    table = from_properties(name, view.properties, to_columns(view.columns))
    return replace(table, has_view=False) if view.is_record else table


def find_keyed(catalog: CatalogReader, name: Name) -> KeyedTable | None:
    """The current keyed table of that name; ``None`` if there is none."""
    view = catalog.of(name).load_view(name.schema, name.identifier)
    return None if view is None else keyed_from_view(name, view)


def load_keyed(catalog: CatalogReader, name: Name) -> KeyedTable:
    """Load a keyed table from its view and base table.

    :raises UnknownRelation: no keyed table has this name.
    """
    table = find_keyed(catalog, name)
    if table is None:
        raise _not_keyed(catalog, name)
    return table


def _not_keyed(catalog: CatalogReader, name: Name) -> UnknownRelation:
    """The error for a name that is not a keyed table. It suggests another schema or a similar name."""
    reader = catalog.of(name)
    at = name.schema, name.identifier
    build = (
        "build it as materialized='incremental' with a unique_key, and without the incremental_strategy "
        f"'append', 'merge' or 'delete+insert': dbt run --select {name.identifier}"
    )
    view = reader.load_view(*at)
    listed = "name a keyed table, as dbt-arctic status lists them"
    source = None if view is None else began_as(view.properties)
    if source is not None:
        return UnknownRelation(
            f"{name} is a clone that was not written yet",
            where=name.dotted,
            why=f"it shows {source}, and has neither rows nor versions of its own",
            fix=f"write it with its model: dbt run --select {name.identifier}",
        )
    if view is not None or reader.load_table(*at) is not None:
        return UnknownRelation(
            f"{name} is not a keyed table",
            where=name.dotted,
            why="it is a plain table, such as a snapshot, or a view without dbt-arctic's properties",
            fix=f"{listed}. To make a model one, {build}",
        )
    names = {schema: [entry.name for entry in reader.list_names(schema)] for schema in reader.list_schemas()}
    found = [schema for schema, there in names.items() if name.identifier in there]
    similar = difflib.get_close_matches(name.identifier, names.get(name.schema, []), n=1)
    meant = [f"{schema}.{name.identifier}" for schema in found] or similar
    return UnknownRelation(
        f"there is no table {name}",
        where=name.dotted,
        why=f"the schema {name.schema} does not contain it",
        fix=f"did you mean {' or '.join(meant)}?" if meant else f"{listed}; {build}",
    )


def load_side(catalog: CatalogReader, table: KeyedTable, side: Name, expected_id: str) -> TableState:
    """Load the metadata of a side table.

    :raises DamagedKeyedTable: the table does not exist, or another table has its name.
    """
    state = catalog.of(side).load_table(side.schema, side.identifier)
    if state is None or state.current_snapshot_id is None:
        problem = "does not exist" if state is None else "has lost its snapshots"
        raise DamagedKeyedTable(
            f"{side} {problem}",
            where=table.name.dotted,
            why="a keyed table needs its base and change table; one was dropped or emptied manually",
            fix=f"rebuild it: dbt run --full-refresh --select {table.name.identifier}",
        )
    if state.properties.get(PROPERTY_ID) != expected_id:
        raise DamagedKeyedTable(
            f"{side} is not the table with which {table.name} was built",
            where=table.name.dotted,
            why="it was dropped and created again manually",
            fix=f"rebuild it: dbt run --full-refresh --select {table.name.identifier}",
        )
    return state


def load_base(catalog: CatalogReader, table: KeyedTable) -> TableState:
    """Load the metadata of the base table."""
    return load_side(catalog, table, table.base, table.generation.base_id)


def load_change(catalog: CatalogReader, table: KeyedTable) -> TableState:
    """Load the metadata of the change table."""
    return load_side(catalog, table, table.change, table.generation.change_id)


def consistent_pair(catalog: CatalogReader, table: KeyedTable) -> tuple[TableState, TableState]:
    """The states of base and change table at one point in time.

    Reads base, change and base again, until the base did not move in between. The change table was then read
    while that base was current, so trimmed ⊆ merged ⊆ history holds.
    """
    base = load_base(catalog, table)
    for _ in range(_ATTEMPTS):
        change = load_change(catalog, table)
        again = load_base(catalog, table)
        if again.current_snapshot_id == base.current_snapshot_id:
            return base, change
        base = again
    raise DamagedKeyedTable(
        f"no consistent version of {table.name} could be read",
        where=table.name.dotted,
        why=f"its base table changed {_ATTEMPTS} times while it was read",
        fix="run again when fewer compactions are active",
    )


def pinned_pair(catalog: CatalogReader, table: KeyedTable) -> tuple[KeyedTable, TableState, TableState]:
    """``consistent_pair``, and the table as its view shows it afterwards, for reads of rows by column.

    A column is in the view before the first row with it is written. So the view is read after the pair: if it
    were read before, it might lack a column of rows in the pair, and results computed from them would lose
    it.
    """
    for _ in range(_ATTEMPTS):
        base, change = consistent_pair(catalog, table)
        shown = load_keyed(catalog, table.name)
        if reads_alike(shown, table):
            return shown, base, change
        table = shown
    raise DamagedKeyedTable(
        f"no consistent version of {table.name} could be read",
        where=table.name.dotted,
        why=f"its columns or its generation changed {_ATTEMPTS} times while it was read",
        fix="run again when fewer writers are active",
    )


def reads_alike(one: KeyedTable, other: KeyedTable) -> bool:
    """Whether two states of a table have the same tables and columns to read, apart from comments."""
    return (one.generation, one.types) == (other.generation, other.types)


def with_current_buckets(table: KeyedTable, side: TableState) -> KeyedTable:
    """The table with the number of buckets for new files of a side table.

    The view records the number with which the table was created. A full compaction may have changed it since.
    """
    buckets = count_buckets(side.partitioning, table.layout)
    return table if buckets == table.layout.buckets else replace(table, layout=table.layout.having(buckets))


def current_version(catalog: CatalogReader, table: KeyedTable) -> Version:
    """The current version of a keyed table."""
    return version_of(table, *consistent_pair(catalog, table))


def version_of(table: KeyedTable, base: TableState, change: TableState) -> Version:
    """The version that the given states of base and change table are."""
    return Version(table.generation.number, head(change), head(base))


def is_file_list(catalog: CatalogReader, dotted: str) -> bool:
    """Whether a consumed table is a file list of a source."""
    if not dotted.endswith(FILE_LIST):
        return False
    name = Name(*dotted.split(".", 2))
    state = catalog.of(name).load_table(name.schema, name.identifier)
    return state is not None and PROPERTY_SOURCE in state.properties


def plain_id(state: TableState) -> str:
    """Identifies a plain table that this program created.

    A different table with its name is detected by it.
    """
    return state.properties.get(PROPERTY_ID, state.location)


def head(state: TableState) -> int:
    """The current snapshot of main. ``load_side`` guarantees that there is one."""
    if state.current_snapshot_id is None:
        raise DamagedKeyedTable(f"{state.schema}.{state.name} has no snapshot", where=state.location)
    return state.current_snapshot_id


def count_rows(side: TableState) -> int | None:
    """The number of rows of the current snapshot, from its summary; ``None`` if the summary lacks it."""
    return _head_total(side, "records")


def count_live_rows(side: TableState) -> int | None:
    """Like ``count_rows``, without the rows that are deleted by position."""
    rows = count_rows(side)
    return None if rows is None else rows - (_head_total(side, "position-deletes") or 0)


def count_files(side: TableState) -> int | None:
    """The number of data files of the current snapshot; ``None`` if its summary lacks it."""
    return _head_total(side, "data-files")


def bytes_of_row(side: TableState) -> float | None:
    """The average size of a row in the files of the current snapshot; ``None`` if the summary lacks it."""
    rows, size = count_rows(side), _head_total(side, "files-size")
    return size / rows if rows and size is not None else None


def _head_total(side: TableState, what: str) -> int | None:
    """A total of the current snapshot, from its summary; 0 if there is no snapshot."""
    at = side.current_snapshot_id
    head_of_main = next((one for one in side.snapshots if one.snapshot_id == at), None)
    if head_of_main is None:
        return 0
    count = head_of_main.summary.get(f"total-{what}")
    return None if count is None else int(count)


def stored_rows(catalog: CatalogReader, table: KeyedTable) -> int | None:
    """The maximum number of rows that a read of a table scans, changes included.

    ``None`` if metadata lack it.
    """
    return total(count_rows(side) for side in consistent_pair(catalog, table))


def total(counts: Iterable[int | None]) -> int | None:
    """The sum of numbers; ``None`` if one is unknown.

    >>> total([2, 3]), total([2, None]), total([])
    (5, None, 0)
    """
    found = 0
    for one in counts:
        if one is None:
            return None
        found += one
    return found


def columns_at(catalog: CatalogReader, side: Name, snapshots: tuple[int, ...]) -> ColumnsAt:
    """The columns that a table had at some snapshots, with their types at that time and today."""
    found = {
        snapshot: catalog.of(side).columns_at(side.schema, side.identifier, snapshot)
        for snapshot in set(snapshots)
    }
    today: dict[str, CatalogColumn] = {}
    if any(then.nested for columns in found.values() for then in columns.values()):
        state = catalog.of(side).load_table(side.schema, side.identifier)
        today = {} if state is None else {column.name: column for column in state.columns}
    return {
        snapshot: {name: _then(column, today.get(name)) for name, column in columns.items()}
        for snapshot, columns in found.items()
    }


def _then(column: CatalogColumn, today: CatalogColumn | None) -> ColumnThen:
    if not column.name:
        return ColumnThen(column.type, initial=column.initial)
    if today is None:
        return ColumnThen(column.type, column.nested)
    return ColumnThen(column.type, column.nested, today.type, today.nested)


def columns_of(
    catalog: CatalogReader, table: KeyedTable, version: Version
) -> dict[int, Mapping[str, ColumnThen]]:
    """The columns that both side tables had at a version."""
    return {
        **columns_at(catalog, table.base, (version.base_snapshot,)),
        **columns_at(catalog, table.change, (version.change_snapshot,)),
    }


def other_key_type(table: KeyedTable, earlier: Mapping[str, str]) -> str | None:
    """A key column that Spark casts before it compares it with its values in an earlier table.

    :param earlier: the types of the columns of the earlier table, by name.
    """
    then = {column.lower(): type_ for column, type_ in earlier.items()}
    for name in table.key:
        if name.lower() in then and not compare_exactly(table.types[name], then[name.lower()]):
            return name
    return None
