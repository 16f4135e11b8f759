"""Drafts sources for tables of a database: their names, keys, cursors and columns. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dbt_arctic.databases.api import Column, ListedTable, Table
from dbt_arctic.sources.choose_by_globs import choose_by_globs
from dbt_arctic.sources.database_settings import ADDED
from dbt_arctic.sources.infer_tables import is_time_of_change, table_name

_TIMES = ("timestamp", "timestamptz")


@dataclass(frozen=True)
class DatabaseTableDraft:
    """A table of a database, as its own metadata suggests it.

    :param name: of the source's table and of the model.
    :param table: the setting ``table``, with the schema.
    :param columns: those that can be read, in the order of the table.
    :param left_out: the other columns.
    :param key: the columns of the primary key; empty if there is none that can be read.
    :param cursor: the column with the time of a row's last change; empty if no name suggests one.
    :param has_null_cursor: whether rows without a cursor are possible.
    :param rows: about how many rows the table has; ``None`` if that is not known.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    cursor: str = ""
    has_null_cursor: bool = False
    rows: int | None = None


def choose_tables(
    tables: Iterable[ListedTable], patterns: Sequence[str], excluded: Sequence[str], where: str
) -> list[ListedTable]:
    """The tables that the user means, by schema and name.

    :param patterns: globs for ``name`` or ``schema.name``; empty for all tables.
    :param where: the address of the database, for errors.
    :raises UnknownRelation: there is no table, or none for one of the patterns.
    """

    def names_of(table: ListedTable) -> list[str]:
        return [table.name, f"{table.schema}.{table.name}"]

    return choose_by_globs(sorted(tables), names_of, patterns, excluded, "table", where)


def draft_names(tables: Sequence[ListedTable]) -> dict[ListedTable, str]:
    """A name in dbt for each table: with the schema if two schemas have one of that name.

    >>> tables = [ListedTable("a", "Items"), ListedTable("b", "items"), ListedTable("b", "x y")]
    >>> list(draft_names(tables).values())
    ['a_items', 'b_items', 'x_y']
    """
    names: dict[ListedTable, str] = {}
    simple = Counter(table_name(one.name) for one in tables)
    for table in tables:
        name = table_name(table.name)
        if simple[name] > 1 or not name:
            name = table_name(f"{table.schema}_{table.name}")
        unique, number = name, 1
        while unique in names.values():
            number += 1
            unique = f"{name}_{number}"
        names[table] = unique
    return names


def table_setting(table: ListedTable) -> str:
    """The setting ``table`` of a table.

    >>> table_setting(ListedTable("public", 'odd."name')), table_setting(ListedTable("shop", "Order Lines"))
    ('public."odd.""name"', 'shop.Order Lines')
    """
    return ".".join(
        '"' + part.replace('"', '""') + '"' if re.search('[."`]', part) else part
        for part in (table.schema, table.name)
    )


def draft_database_table(
    name: str, listed: ListedTable, table: Table, *, is_followed: bool = False
) -> DatabaseTableDraft:
    """What a table's own metadata suggests for its source and model.

    :param name: of the model.
    :param is_followed: whether it is captured from the log, which lacks generated columns.
    """
    chosen, left_out = _columns(table.columns, is_followed)
    key = table.key if set(table.key) <= {column.name for column in chosen} else ()
    cursor = next(
        (column for column in chosen if column.family in _TIMES and is_time_of_change(column.name)), None
    )
    return DatabaseTableDraft(
        name,
        table_setting(listed),
        tuple(column.name for column in chosen),
        left_out,
        key,
        "" if cursor is None else cursor.name,
        cursor is not None and cursor.is_nullable,
        listed.rows,
    )


def _columns(columns: Sequence[Column], is_followed: bool) -> tuple[list[Column], tuple[str, ...]]:
    """The columns that a source can have, and the names of the others."""
    chosen: dict[str, Column] = {}
    left_out = []
    for column in columns:
        name = column.name.lower()  # Spark does not distinguish names by case
        is_logged = not (is_followed and column.is_generated)
        if column.family == "unreadable" or not is_logged or name in ADDED or name in chosen:
            left_out.append(column.name)
        else:
            chosen[name] = column
    return list(chosen.values()), tuple(left_out)


__all__ = [
    "DatabaseTableDraft",
    "choose_tables",
    "draft_database_table",
    "draft_names",
    "table_setting",
]
