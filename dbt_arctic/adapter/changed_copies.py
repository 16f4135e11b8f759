"""The tables that a check changes: copies of sources, and the seeds that it has loaded."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from dbt_arctic.adapter.declared_tests import Declared
from dbt_arctic.adapter.random_changes import (
    Column,
    aside,
    change_statement,
    chosen,
    coming_statements,
    copy_statements,
    cut,
    deleted_rows_table,
    free_rows,
    held_of,
    held_rows_table,
    leaving_statements,
    taken_of,
)
from dbt_arctic.adapter.target_session import TargetSession
from dbt_arctic.catalog.api import CatalogColumn
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.store.state import find_keyed

_MOST_COLUMNS = 8
"""Maximum number of columns for which combinations are tested as keys."""


@dataclass(frozen=True)
class ChangedCopy:
    """A table that changes in each round.

    :param identifying: columns that keep their values, so that they still identify rows.
    """

    name: Name
    columns: tuple[Column, ...]
    identifying: frozenset[str]


@dataclass(frozen=True)
class ReferencedValues:
    """A query of values by which other tables refer to a table. Rows with such a value must not be removed.

    :param column: the referenced column of the table.
    """

    column: str
    query: str


def copied(
    session: TargetSession,
    source: Name,
    copy: Name,
    seed: int,
    declared_tests: Declared,
    referring: Sequence[ReferencedValues] | None = (),
) -> ChangedCopy:
    """Copy a source, except for some rows that are inserted later.

    :param declared_tests: what the project's tests declare about it.
    :param referring: the references to it; ``None`` if they are not known yet, so that no row may be held
        back.
    """
    columns, rows = columns_and_rows(session, source, declared_tests)
    if referring is None:
        held = chosen(columns, seed, None)
    else:
        held = _some_of(session, source.sql, columns, seed, held_of(rows), _free(columns, referring))
    _create_aside(session, copy)
    for statement in copy_statements(source.sql, copy, held):
        session.context.run("copy", statement)
    return ChangedCopy(
        copy, columns, identifying_columns(session, source, columns, rows, declared_tests.keys)
    )


def loaded(session: TargetSession, seed_table: Name, declared_tests: Declared) -> ChangedCopy:
    """Prepare a seed, which is complete at first and is changed like a source from the next round on."""
    _create_aside(session, seed_table)
    for side_table in (held_rows_table(seed_table), deleted_rows_table(seed_table)):
        session.context.run(
            "copy",
            f"CREATE TABLE {side_table.sql} USING iceberg AS SELECT * FROM {seed_table.sql} WHERE false",
        )
    columns, rows = columns_and_rows(session, seed_table, declared_tests)
    return ChangedCopy(
        seed_table, columns, identifying_columns(session, seed_table, columns, rows, declared_tests.keys)
    )


def change(
    session: TargetSession,
    one: ChangedCopy,
    seed: int,
    only_new: bool = False,
    referring: Sequence[ReferencedValues] = (),
) -> None:
    """Change a table for one round.

    :param only_new: only insert rows.
    :param referring: the references to the table.
    """
    table, columns = one.name, one.columns
    comes = held_rows_table(table)
    # One query for both tables: planning a query takes longer than counting the rows of a small table.
    rows, waits = (
        int(count)
        for count in session.query(
            f"SELECT (SELECT count(1) FROM {table.sql}), (SELECT count(1) FROM {comes.sql})"
        )[0]
    )
    if not only_new:
        free = _free(columns, referring)
        leave = _some_of(session, table.sql, columns, seed, taken_of(rows), free)
        for statement in leaving_statements(table, leave):
            session.context.run("change", statement)
    if waits:
        come = _some_of(session, comes.sql, columns, seed + 1, taken_of(waits))
        for statement in coming_statements(table, come):
            session.context.run("change", statement)
    if only_new:
        return
    changed = _some_of(session, table.sql, columns, seed + 2, taken_of(rows))
    update = change_statement(table, columns, one.identifying, seed, changed)
    if update is not None:
        session.context.run("change", update)


def referring_to(
    session: TargetSession,
    parent: str,
    declared: Mapping[str, Declared],
    tables: Mapping[str, Sequence[Name]],
) -> list[ReferencedValues] | None:
    """The references to a source or seed that tests declare.

    ``None`` if a referring table does not exist yet.

    :param tables: by id, the tables that have all rows of a source or seed.
    """
    found = []
    for child, declared_tests in declared.items():
        for reference in declared_tests.references:
            if reference.parent != parent:
                continue
            if child not in tables:
                return None
            names = {column.name.lower() for column in columns_of(session, tables[child][0])}
            if reference.column in names:
                parts = (f"SELECT {quote(reference.column)} FROM {name.sql}" for name in tables[child])
                found.append(ReferencedValues(reference.parent_column, " UNION ALL ".join(parts)))
    return found


def pulled(nodes: Iterable[Any], macros: Mapping[str, Any]) -> set[str]:
    """The ids of the relations that models pull, even through macros of the project.

    Their rows may not have a key.

    :param nodes: dbt's nodes by id; ``macros`` likewise.
    """

    def pulls(node: Any, seen: frozenset[str] = frozenset()) -> bool:
        called = set(getattr(getattr(node, "depends_on", None), "macros", ())) - seen
        return any(
            name.endswith(".incremental_pull") or (name in macros and pulls(macros[name], seen | called))
            for name in called
        )

    return {of for node in nodes if pulls(node) for of in node.depends_on.nodes}


def columns_of(session: TargetSession, name: Name) -> Sequence[CatalogColumn]:
    """The columns of a table."""
    table = session.catalog.of(name).load_table(name.schema, name.identifier)
    if table is not None:
        return table.columns
    view = session.catalog.of(name).load_view(name.schema, name.identifier)
    if view is None:
        raise ConfigError(
            f"{name} does not exist",
            where="the sources of the project",
            why="a check copies every source of the catalog",
            fix="load it first, or remove it from the project's sources",
        )
    return view.columns


def _create_aside(session: TargetSession, table: Name) -> None:
    schema = aside(table)
    sql = f"{quote(schema.catalog)}.{quote(schema.schema)}"
    session.context.run("create_schema", f"CREATE SCHEMA IF NOT EXISTS {sql}")


def _some_of(
    session: TargetSession, table: str, columns: Sequence[Column], seed: int, count: int, free: str = "true"
) -> str:
    """A condition for a number of rows, among those that may be removed."""
    found = session.query(cut(f"(SELECT * FROM {table} WHERE {free})", columns, seed, count))[0][0]
    return chosen(columns, seed, None if found is None else int(found), free)


def _free(columns: Sequence[Column], referring: Sequence[ReferencedValues]) -> str:
    names = {column.name.lower() for column in columns}
    known = [free_rows(one.column, one.query) for one in referring if one.column in names]
    return " AND ".join(known) or "true"


def columns_and_rows(
    session: TargetSession, name: Name, declared_tests: Declared
) -> tuple[tuple[Column, ...], int]:
    """The columns of a table, and its number of rows."""
    found = columns_of(session, name)
    counted = ", ".join(["count(1)", *(f"count({quote(column.name)})" for column in found)])
    rows, *present = session.query(f"SELECT {counted} FROM {name.sql}")[0]
    columns = (
        Column(
            one.name,
            one.type,
            nulls=count < rows and one.name.lower() not in declared_tests.required,
            closed=one.name.lower() in declared_tests.closed,
        )
        for one, count in zip(found, present, strict=True)
    )
    return tuple(columns), int(rows)


def identifying_columns(
    session: TargetSession,
    name: Name,
    columns: Sequence[Column],
    rows: int,
    declared_keys: Collection[Sequence[str]],
) -> frozenset[str]:
    """The columns that probably identify a row, and those that the table or the project declares as keys.

    Prices and times may be unique by chance. So a column is assumed to be a key, alone or with others, if its
    type is suitable for identifiers. Any other column is used only if there is no such key.
    """
    keyed = find_keyed(session.catalog, name)
    by_name = {column.name.lower(): column for column in columns}
    named = [
        tuple(by_name[part.lower()] for part in key if part.lower() in by_name)
        for key in (*declared_keys, *([] if keyed is None else [keyed.key]))
    ]
    known = {column for key in named for column in key}
    # A column with a test in a model may not be unique in the source.
    holds = list(_unique(session, name, [key for key in named if key], rows))
    unique = list(_unique(session, name, [(column,) for column in columns], rows))
    likely = [column for (column,) in unique if column.may_name or column.type == "date"]
    found = {column.name for column in (*known, *likely)}
    if holds or any(column.may_name for column in likely):
        return frozenset(found)
    for size in (2, 3):
        for with_times in (False, True):
            several = [
                column
                for column in columns
                if not column.nulls and (column.may_name or (with_times and column.is_time))
            ][:_MOST_COLUMNS]
            keys = list(_unique(session, name, list(combinations(several, size)), rows))
            if keys:
                # It is unknown which of them is the key, so all of them are kept unique.
                return frozenset(found | {column.name for key in keys for column in key})
    # Without a key, rows are only inserted and deleted as a whole.
    return frozenset(column.name for (column,) in unique) or frozenset(column.name for column in columns)


def _unique(
    session: TargetSession, name: Name, keys: Sequence[tuple[Column, ...]], rows: int
) -> Iterator[tuple[Column, ...]]:
    """The columns, or groups of columns, that are unique."""
    if not keys:
        return
    counted = (f"count(DISTINCT {', '.join(column.value for column in key)})" for key in keys)
    counts = session.query(f"SELECT {', '.join(counted)} FROM {name.sql}")[0]
    yield from (key for key, count in zip(keys, counts, strict=True) if count == rows)
