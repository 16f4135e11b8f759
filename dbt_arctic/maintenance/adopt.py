"""``adopt``: converts an Iceberg table to the base of a keyed table of the same name, without copying files.

The command creates a change table, records in the table's properties that it is a base, renames it to the
base's name, and creates the view under the old name. If it is interrupted before the rename, the table is
still a plain table. If it is interrupted after the rename, nothing has the old name, and the model's next run
or the same command creates the view.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.data_type import Atomic, atoms, parse_type
from dbt_arctic.errors import (
    ArcticError,
    CommitStateUnknown,
    ConcurrentRun,
    ConfigError,
    DuplicateKey,
    KeyColumnMissing,
    NullKey,
    StatementError,
    UnknownRelation,
)
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed import adoption, create
from dbt_arctic.keyed.idempotency_keys import appended_keys, carried_keys
from dbt_arctic.keyed.layout import adopt_layout
from dbt_arctic.keyed.log import PROPERTY_RUN, consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import (
    PROPERTY_OF,
    RESERVED_COLUMNS,
    Column,
    Generation,
    KeyedTable,
    side_generation,
    side_name,
)
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, encode_consumed
from dbt_arctic.keyed.write import mark_buckets
from dbt_arctic.store.branches import ATTEMPTS
from dbt_arctic.store.context import Context
from dbt_arctic.store.format_version import require_format_version
from dbt_arctic.store.generations import generation_numbers, load_generation
from dbt_arctic.store.side_table import refuse_side_table
from dbt_arctic.store.state import find_keyed, keyed_from_view, load_base, to_columns
from dbt_arctic.store.view_support import require_views

_SPARK_KNOWS_NOT = ("time", "geometry", "geography")


@dataclass(frozen=True)
class Adoption:
    """The plan of an adoption.

    :param state: the plain table; its rows were checked at its current snapshot.
    :param upgrades: whether its format version is upgraded to 3.
    """

    table: KeyedTable
    state: TableState
    upgrades: bool

    @property
    def joins_in_place(self) -> bool:
        """Whether it has the buckets with which keyed tables join without a shuffle."""
        return self.table.layout.buckets > 0


def plan_adoption(context: Context, name: Name, key: Sequence[str], owner: str = "") -> Adoption:
    """Check the table and, in one statement, the keys of its rows.

    :raises UnknownRelation: the table does not exist.
    :raises ConfigError: the table cannot be adopted.
    :raises KeyColumnMissing: the table lacks a key column.
    :raises DuplicateKey: a key occurs more than once.
    :raises NullKey: a key contains NULL.
    """
    require_views(context, name, name.dotted)
    state = _plain_table(context.catalog, name)
    columns = to_columns(state.columns)
    by_name = {column.name.lower(): column.name for column in columns}
    missing = [column for column in key if column.lower() not in by_name]
    if missing or not key:
        raise KeyColumnMissing(
            f"{name} has no column {', '.join(missing)}" if missing else "no key columns are given",
            where=name.dotted,
            why=f"its columns are: {', '.join(by_name.values())}",
            fix="name each key column: --key COLUMN",
        )
    matched = tuple(by_name[column.lower()] for column in key)
    _refuse_columns(name, columns)
    types = {column.name: column.type for column in columns}
    _refuse_key(name, {column: types[column] for column in matched})
    _check_keys(context, name, state, matched)
    numbers = generation_numbers(context.catalog, name)
    table = KeyedTable(
        name=name,
        generation=Generation(1 + max(numbers, default=0), uuid.uuid4().hex, uuid.uuid4().hex),
        key=matched,
        layout=adopt_layout(state.partitioning or (), matched, _plain_columns(state.sort_order)),
        columns=columns,
        owner=owner,
        required=tuple(column.name for column in state.columns if not column.nullable),
        has_view=context.catalog.of(name).has_views(),
    )
    return Adoption(table, state, state.properties.get("format-version") != "3")


def adopt_table(context: Context, plan: Adoption) -> KeyedTable:
    """Adopt the table. Its data files stay unchanged.

    :raises ConfigError: the catalog stores tables in an older format version. It is still a plain table.
    :raises ConcurrentRun: other programs kept writing to it. It is still a plain table.
    """
    table, name = plan.table, plan.table.name
    created = context.now_ms()
    _drop_unfinished(context, name)
    context.run("create_change", create.create_change(table, created), table)
    try:
        require_format_version(context, table.change, name.dotted)
    except ConfigError:
        _drop_unfinished(context, name)
        raise
    properties = {PROPERTY_RUN: context.run_id}
    consumed = consumed_versions(plan.state.history())
    if consumed:
        properties[PROPERTY_CONSUMED] = encode_consumed(consumed)
    keys = appended_keys(plan.state.history(), plan.state.properties)
    if keys:
        properties |= carried_keys(keys)
    context.run("first_commit", mark_buckets(table, properties), table)
    context.run("keep_statistics", create.keep_statistics(table), table)
    context.run("describe", adoption.describe(table, name, created, plan.state.properties), table)
    if not plan.state.sort_order:
        context.run("order_base", create.order_base(table, name), table)
    checked = plan.state.current_snapshot_id
    for _ in range(ATTEMPTS):
        context.run(
            "mark_adopted",
            adoption.mark_adopted(name, table.column_names, {PROPERTY_RUN: context.run_id}),
            table,
        )
        state = _plain_table(context.catalog, name)
        newest = state.history()[0]
        if newest.parent_id == checked:
            break
        _check_keys(context, name, state, table.key)  # another program has written since the check
        checked = newest.snapshot_id
    else:
        raise ConcurrentRun(
            f"other programs keep writing to {name}",
            where=name.dotted,
            why="its keys must be checked while nothing writes to it",
            fix="adopt it when no run is active; it is still a plain table",
        )
    context.run("rename", create.rename_table(name, table.base), table)
    _check_renamed(context, table, newest.snapshot_id)
    return _show(context, table)


def finish_adoption(context: Context, name: Name) -> KeyedTable | None:
    """Create the view of an adoption that was interrupted after the rename; ``None`` if there is none.

    A model's run does this first if nothing has the model's name.
    """
    table = find_unfinished(context.catalog, name)
    return None if table is None else _show(context, table)


def find_unfinished(catalog: CatalogReader, name: Name) -> KeyedTable | None:
    """The adoption that was interrupted after the rename, if nothing has the table's old name."""
    if _kind(catalog, name) is not None:
        return None
    for number in generation_numbers(catalog, name):
        base = side_name(name, "base", number)
        state = catalog.of(base).load_table(base.schema, base.identifier)
        if state is not None and adoption.PROPERTY_MOVING in state.properties:
            return load_generation(catalog, name, name.identifier, number)
    return None


def _show(context: Context, table: KeyedTable) -> KeyedTable:
    """Create the view, without replacing an existing one.

    Replacing could bring back an older generation if another run was faster or the statement arrives late.

    :raises ConcurrentRun: another relation has the name by now and keeps it.
    """
    # A record has another name than the table had, and so another folder.
    folder = adoption.view_properties(load_base(context.catalog, table).location) if table.has_view else {}
    try:
        context.run("publish_view", create.publish_view(table, properties=folder, replaces=False), table)
    except (StatementError, CommitStateUnknown) as error:
        kind = _kind(context.catalog, table.name)
        if kind is None:
            raise
        shown = find_keyed(context.catalog, table.name)
        if shown is None or shown.generation != table.generation:
            raise _taken(table, kind) from error
    if not table.has_view and _kind(context.catalog, table.name) == "table":
        # A record does not have the table's name, so it could be created although the name is taken.
        context.run("drop_view", create.drop_description(table), table)
        raise _taken(table, "table")
    context.run("settle", adoption.unmark_as_moving(table.base), table)
    return table


def _taken(table: KeyedTable, kind: str) -> ConcurrentRun:
    return ConcurrentRun(
        f"{table.name} is now a different {kind}",
        where=table.name.dotted,
        why="another program created it while the table of that name was adopted; "
        f"the rows of the table are in {table.base}",
        fix=f"check it: dbt-arctic verify {table.name.schema}.{table.name.identifier}",
    )


def _plain_table(catalog: CatalogReader, name: Name) -> TableState:
    state = catalog.of(name).load_table(name.schema, name.identifier)
    if state is not None:
        refuse_side_table(name, state.properties)
        return state
    kind = _kind(catalog, name)
    if kind is None:
        raise UnknownRelation(
            f"there is no table {name}",
            where=name.dotted,
            fix="give the name as schema.table",
        )
    raise ConfigError(
        f"{name} is a {kind}",
        where=name.dotted,
        why="it already has a key" if kind == "keyed table" else "only an Iceberg table can be adopted",
        fix=f"check it: dbt-arctic verify {name.identifier}"
        if kind == "keyed table"
        else "give the table that the view reads",
    )


def _kind(catalog: CatalogReader, name: Name) -> str | None:
    if catalog.of(name).load_table(name.schema, name.identifier) is not None:
        return "table"
    view = catalog.of(name).load_view(name.schema, name.identifier)
    if view is None:
        return None
    return "keyed table" if keyed_from_view(name, view) is not None else "view"


def _refuse_columns(name: Name, columns: Sequence[Column]) -> None:
    reserved = [column.name for column in columns if column.name.lower() in RESERVED_COLUMNS]
    if reserved:
        raise ConfigError(
            f"{name} has a column {', '.join(reserved)}, which is a reserved name of keyed tables",
            where=name.dotted,
            fix=f"rename it: ALTER TABLE {name.sql} RENAME COLUMN {reserved[0]} TO ...",
        )
    unsuitable = [
        f"{column.name} {column.type}"
        for column in columns
        if any(one.kind in _SPARK_KNOWS_NOT for one in atoms(parse_type(column.type)))
    ]
    if unsuitable:
        raise ConfigError(
            f"{name} has columns of a type that Spark cannot write: {', '.join(unsuitable)}",
            where=name.dotted,
            fix="cast them to another type in a new table, and adopt that",
        )


def _refuse_key(name: Name, key: Mapping[str, str]) -> None:
    """Refuse a key with a column whose values Spark cannot compare, or by which Iceberg cannot sort files.

    :param key: the types of the columns of the key.
    """
    unsuitable = [
        f"{column} {type_}"
        for column, type_ in key.items()
        if not isinstance(parse_type(type_), Atomic) or type_ in ("variant", "void")
    ]
    if unsuitable:
        raise ConfigError(
            f"{name} cannot have the key {', '.join(key)}",
            where=name.dotted,
            why=f"files cannot be sorted, or rows compared, by {', '.join(unsuitable)}",
            fix="name other columns; or compute a column of a simple type in a new table, and adopt that",
        )


def _plain_columns(sort_order: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(column for column in sort_order or () if "(" not in column)


def _check_keys(context: Context, name: Name, state: TableState, key: Sequence[str]) -> None:
    if state.current_snapshot_id is None:
        return
    at = name.sibling(state.name)
    counts = {
        str(kind): (count, example)
        for kind, count, example in context.query(adoption.check_keys(at, state.current_snapshot_id, key))
    }
    duplicates, nulls = counts["duplicate"], counts["null"]
    if duplicates[0]:
        raise DuplicateKey(
            f"{name} has {counted(duplicates[0], 'duplicate key')}, for instance {duplicates[1]}",
            where=name.dotted,
            why=f"the key {', '.join(key)} must identify a row",
            fix="give every key column, or delete the duplicate rows",
        )
    if nulls[0]:
        raise NullKey(
            f"{name} has {counted(nulls[0], 'row')} with NULL in the key, for instance {nulls[1]}",
            where=name.dotted,
            why="a key must identify the row that an update or delete is meant for",
            fix="delete these rows, or give them a key",
        )


def _check_renamed(context: Context, table: KeyedTable, expected: int) -> None:
    """Check for a write under the table's old name that was committed just before the rename."""
    state = load_base(context.catalog, table)
    if state.current_snapshot_id == expected:
        return
    try:
        _check_keys(context, table.name, state, table.key)
    except ArcticError:
        context.run("rename_back", create.rename_table(table.base, table.name), table)
        raise


def _drop_unfinished(context: Context, name: Name) -> None:
    """Change tables of interrupted adoptions. They cannot belong to a build, which creates its base first."""
    found = side_tables_of(context.catalog, name)
    for side, number in found.items():
        if side_name(name, "base", number) not in found:
            context.run("drop_side_table", create.drop_table(side), None)


def side_tables_of(catalog: CatalogReader, storage_name: Name) -> dict[Name, int]:
    """All side tables created for a name, with their generations."""
    found: dict[Name, int] = {}
    for entry in catalog.of(storage_name).list_names(storage_name.schema):
        number = side_generation(storage_name, entry.name) if entry.kind == "table" else None
        state = (
            None if number is None else catalog.of(storage_name).load_table(storage_name.schema, entry.name)
        )
        if (
            number is not None
            and state is not None
            and state.properties.get(PROPERTY_OF) == storage_name.dotted
        ):
            found[storage_name.sibling(entry.name)] = number
    return found
