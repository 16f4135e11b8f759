"""``adopt``: an Iceberg table becomes the base of a keyed one, under the same name and in the same files.

A change table is made beside it, the table says what it is the base of and gets the base's name, and the
view takes the name that is free then. Cut off before the table is renamed, it is the plain table that it
was; cut off after, nothing has its name: then the model's next run, or the command itself, writes the view.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogReader, TableState
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
from dbt_arctic.keyed import adopt as sql
from dbt_arctic.keyed import create
from dbt_arctic.keyed.data_type import atoms, parse_type
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
from dbt_arctic.maintenance.generations import generation_numbers, load_generation
from dbt_arctic.store.branches import ATTEMPTS
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import find_keyed, load_base, to_columns

_SPARK_KNOWS_NOT = ("time", "geometry", "geography")


@dataclass(frozen=True)
class Adoption:
    """What is adopted as what.

    :param state: the plain table, whose rows were checked at its current snapshot.
    :param upgrades: whether its format version is raised to 3.
    """

    table: KeyedTable
    state: TableState
    upgrades: bool

    @property
    def joins_in_place(self) -> bool:
        """Whether it has the buckets by which keyed tables join without a shuffle."""
        return self.table.layout.buckets > 0


def plan_adoption(context: Context, name: Name, key: Sequence[str], owner: str = "") -> Adoption:
    """Look at the table, and at the keys of its rows in one statement.

    :raises UnknownRelation: there is no table. :raises ConfigError: it is none that can be adopted.
    :raises KeyColumnMissing: / :raises DuplicateKey: / :raises NullKey: the key does not identify its rows.
    """
    state = _plain_table(context.catalog, name)
    columns = to_columns(state.columns)
    by_name = {column.name.lower(): column.name for column in columns}
    missing = [column for column in key if column.lower() not in by_name]
    if missing or not key:
        raise KeyColumnMissing(
            f"{name} has no column {', '.join(missing)}" if missing else "no key is given",
            where=name.dotted,
            why=f"its columns are: {', '.join(by_name.values())}",
            fix="give each column of the key: --key COLUMN",
        )
    matched = tuple(by_name[column.lower()] for column in key)
    _refuse_columns(name, columns)
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
    )
    return Adoption(table, state, state.properties.get("format-version") != "3")


def adopt(context: Context, plan: Adoption) -> KeyedTable:
    """Make the table what was planned. Its rows stay in the files in which they are.

    :raises ConcurrentRun: others kept writing to it. It is the plain table that it was.
    """
    table, name = plan.table, plan.table.name
    created = context.now_ms()
    _drop_unfinished(context, name)
    context.run("create_change", create.create_change(table, created), table)
    properties = {PROPERTY_RUN: context.run_id}
    consumed = consumed_versions(plan.state.history())
    if consumed:
        properties[PROPERTY_CONSUMED] = encode_consumed(consumed)
    context.run("first_commit", mark_buckets(table, properties), table)
    context.run("keep_statistics", create.keep_statistics(table), table)
    context.run("describe", sql.describe(table, name, created, plan.state.properties), table)
    if not plan.state.sort_order:
        context.run("order_base", create.order_base(table, name), table)
    checked = plan.state.current_snapshot_id
    for _ in range(ATTEMPTS):
        context.run(
            "mark_adopted",
            sql.mark_adopted(name, table.column_names, {PROPERTY_RUN: context.run_id}),
            table,
        )
        state = _plain_table(context.catalog, name)
        newest = state.history()[0]
        if newest.parent_id == checked:
            break
        _check_keys(context, name, state, table.key)  # somebody has written since
        checked = newest.snapshot_id
    else:
        raise ConcurrentRun(
            f"others keep writing to {name}",
            where=name.dotted,
            why="its keys have to be checked while it stands still",
            fix="adopt it when no run is at work; it is a plain table as before",
        )
    context.run("rename", create.rename_table(name, table.base), table)
    _check_renamed(context, table, newest.snapshot_id)
    return _show(context, table)


def finish_adoption(context: Context, name: Name) -> KeyedTable | None:
    """Write the view of a table that was cut off between its two names; ``None`` where there is none.

    It is the first step of a model's run, where nothing has the model's name.
    """
    table = find_unfinished(context.catalog, name)
    return None if table is None else _show(context, table)


def find_unfinished(catalog: CatalogReader, name: Name) -> KeyedTable | None:
    """What is between its two names, as nothing has the second one."""
    if _kind(catalog, name) is not None:
        return None
    for number in generation_numbers(catalog, name):
        base = side_name(name, "base", number)
        state = catalog.load_table(base.schema, base.identifier)
        if state is not None and sql.PROPERTY_MOVING in state.properties:
            return load_generation(catalog, name, name.identifier, number)
    return None


def _show(context: Context, table: KeyedTable) -> KeyedTable:
    """As nothing has the name, the view is created. To replace one could show an older generation again,
    where others were faster, or where the statement arrives late.

    :raises ConcurrentRun: something else has the name by now: it still has.
    """
    folder = sql.view_properties(load_base(context.catalog, table).location)
    try:
        context.run("publish_view", create.publish_view(table, properties=folder, replaces=False), table)
    except (StatementError, CommitStateUnknown) as error:
        kind = _kind(context.catalog, table.name)
        if kind is None:
            raise
        shown = find_keyed(context.catalog, table.name)
        if shown is None or shown.generation != table.generation:
            raise ConcurrentRun(
                f"{table.name} is another {kind} by now",
                where=table.name.dotted,
                why="somebody made it while the table of that name was adopted; "
                f"the rows of the table are in {table.base}",
                fix=f"look at it: dbt-arctic verify {table.name.schema}.{table.name.identifier}",
            ) from error
    context.run("settle", sql.settle(table.base), table)
    return table


def _plain_table(catalog: CatalogReader, name: Name) -> TableState:
    state = catalog.load_table(name.schema, name.identifier)
    if state is not None:
        return state
    kind = _kind(catalog, name)
    if kind is None:
        raise UnknownRelation(
            f"there is no table {name}",
            where=name.dotted,
            fix="name a table as in schema.table",
        )
    raise ConfigError(
        f"{name} is a {kind}",
        where=name.dotted,
        why="it has a key already" if kind == "keyed table" else "only an Iceberg table can be adopted",
        fix=f"look at it with dbt-arctic verify {name.identifier}"
        if kind == "keyed table"
        else "name the table that the view reads",
    )


def _kind(catalog: CatalogReader, name: Name) -> str | None:
    if catalog.load_table(name.schema, name.identifier) is not None:
        return "table"
    if catalog.load_view(name.schema, name.identifier) is None:
        return None
    return "keyed table" if find_keyed(catalog, name) is not None else "view"


def _refuse_columns(name: Name, columns: Sequence[Column]) -> None:
    reserved = [column.name for column in columns if column.name.lower() in RESERVED_COLUMNS]
    if reserved:
        raise ConfigError(
            f"{name} has a column {', '.join(reserved)}, a name that keyed tables use themselves",
            where=name.dotted,
            fix=f"rename it: ALTER TABLE {name.sql} RENAME COLUMN {reserved[0]} TO ...",
        )
    strange = [
        f"{column.name} {column.type}"
        for column in columns
        if any(one.kind in _SPARK_KNOWS_NOT for one in atoms(parse_type(column.type)))
    ]
    if strange:
        raise ConfigError(
            f"{name} has columns of a type that Spark cannot write: {', '.join(strange)}",
            where=name.dotted,
            fix="cast them to another type in a table of its own, and adopt that",
        )


def _plain_columns(sort_order: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(column for column in sort_order or () if "(" not in column)


def _check_keys(context: Context, name: Name, state: TableState, key: Sequence[str]) -> None:
    if state.current_snapshot_id is None:
        return
    at = name.sibling(state.name)
    told = {
        str(kind): (count, example)
        for kind, count, example in context.query(sql.check_keys(at, state.current_snapshot_id, key))
    }
    duplicates, nulls = told["duplicate"], told["null"]
    if duplicates[0]:
        raise DuplicateKey(
            f"{duplicates[0]} keys of {name} are there more than once, for instance {duplicates[1]}",
            where=name.dotted,
            why=f"{', '.join(key)} was given as the key, which identifies a row",
            fix="give every column of the key, or delete what is there twice",
        )
    if nulls[0]:
        raise NullKey(
            f"{nulls[0]} rows of {name} have NULL in their key, for instance {nulls[1]}",
            where=name.dotted,
            why="a key must identify the row that an update or delete is meant for",
            fix="delete these rows, or give them a key",
        )


def _check_renamed(context: Context, table: KeyedTable, expected: int) -> None:
    """A write that found the table by its old name may have landed just before it was renamed."""
    state = load_base(context.catalog, table)
    if state.current_snapshot_id == expected:
        return
    try:
        _check_keys(context, table.name, state, table.key)
    except ArcticError:
        context.run("rename_back", create.rename_table(table.base, table.name), table)
        raise


def _drop_unfinished(context: Context, name: Name) -> None:
    """Change tables that an adoption made which was cut off. A build makes its base first, so it is none."""
    found = side_tables_of(context.catalog, name)
    for side, number in found.items():
        if side_name(name, "base", number) not in found:
            context.run("drop_side_table", create.drop_table(side), None)


def side_tables_of(catalog: CatalogReader, made_as: Name) -> dict[Name, int]:
    """Every side table that was made for a name, with its generation."""
    found: dict[Name, int] = {}
    for entry in catalog.list_names(made_as.schema):
        number = side_generation(made_as, entry.name) if entry.kind == "table" else None
        state = None if number is None else catalog.load_table(made_as.schema, entry.name)
        if number is not None and state is not None and state.properties.get(PROPERTY_OF) == made_as.dotted:
            found[made_as.sibling(entry.name)] = number
    return found
