"""SQL of the rows that a model reads of a table of a database. Pure.

A row does not fit if a value cannot be read as its type, or if a required column is NULL. By default, such a
row is an error. With another ``on_bad_row``, it is left out here, and ``bad_database_rows`` stores or counts
it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt_arctic.databases.api import Table
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.checks import EXACT_JSON, raise_error_sql
from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.sources.common_settings import OnBadRow
from dbt_arctic.sources.database_columns import NATIVE, ReadColumn, converted, value_of
from dbt_arctic.sources.database_plan import ReadPlan, Writes
from dbt_arctic.sources.database_settings import DatabaseSource

KeyColumns = tuple[str, ...]
"""Columns whose values identify a row of a table."""


@dataclass(frozen=True)
class TableRows:
    """What a model reads of a table in one run.

    The SQL is for a view with the columns of ``RowQuery``.

    :param required: columns in which a row that fits is not NULL.
    :param reads_again: whether a row can be read by several runs.
    :param keys: the sets of columns by which a row is recognized when it is read again.
    :param compared: the key columns whose values of all rows are read, to find deleted ones; empty for none.
    """

    source: DatabaseSource
    columns: tuple[ReadColumn, ...]
    required: tuple[str, ...] = ()
    reads_again: bool = True
    keys: tuple[KeyColumns, ...] = ()
    compared: KeyColumns = ()

    @property
    def name(self) -> str:
        """``<source>.<table>``."""
        return self.source.name

    @property
    def on_bad_row(self) -> OnBadRow:
        """What to do about a row that does not fit."""
        return self.source.on_bad_row

    @property
    def key_columns(self) -> KeyColumns:
        """The columns of all keys."""
        return tuple(dict.fromkeys(name for key in self.keys for name in key))

    @property
    def is_read(self) -> str:
        """SQL condition on a row of the view: it belongs to the pull. Others have only their key."""
        return "`is_new` = 1" if self.compared else "true"

    def read(self, name: str) -> str:
        """SQL of what the JDBC reader has returned for a column."""
        return quote(f"c{[one.column.name for one in self.columns].index(name)}")

    def text(self, name: str) -> str:
        """SQL of the text of a column, from which ``bad_database_rows`` can read it again."""
        column = next(one for one in self.columns if one.column.name == name)
        if column.selected.as_text or column.column.family not in NATIVE:
            return self.read(name)
        return (
            f"hex({self.read(name)})"
            if column.column.family == "binary"
            else f"CAST({self.read(name)} AS STRING)"
        )


def table_rows(source: DatabaseSource, table: Table, plan: ReadPlan, writes: Writes, model: str) -> TableRows:
    """What a plan reads, with how its rows are recognized.

    :raises ConfigError: a required column does not exist; or rows that do not fit would be stored or counted
        again in each run, because nothing identifies them.
    """
    by_name = {one.column.name.lower(): one.column.name for one in plan.columns}
    unknown = [name for name in source.required if name.lower() not in by_name]
    if unknown:
        raise ConfigError(
            f"the source {source.name} requires {unknown[0]}, which is none of its columns",
            where=model,
            fix=f"use some of {', '.join(by_name.values())}",
        )
    found = TableRows(
        source,
        tuple(plan.columns),
        tuple(by_name[name.lower()] for name in source.required),
        bool(writes.key) and not writes.appends,
        _keys(table, by_name, writes),
        tuple(one.column.name for one in plan.key),
    )
    if source.on_bad_row != "fail":
        require_keys(found, model)
    return found


def require_keys(table: TableRows, model: str) -> None:
    """Refuse to store or count rows that could not be recognized when they are read again.

    :raises ConfigError: nothing identifies the rows.
    """
    if table.keys or not table.reads_again:
        return
    raise ConfigError(
        f"the rows of the source {table.name} cannot be recognized when they are read again",
        where=model,
        why=f"on_bad_row: {table.on_bad_row} needs a key: the table {table.source.table} has no primary key "
        f"among the columns that are read, and not all columns of the unique_key of {model} have the names "
        "that they have in the database",
        fix="add the primary key to columns of the source's meta.arctic; or use the names of the database in "
        "unique_key; or remove on_bad_row",
    )


def _keys(table: Table, by_name: Mapping[str, str], writes: Writes) -> tuple[KeyColumns, ...]:
    """The primary key, and the model's key, as far as their columns are read."""
    if writes.appends:
        return ()
    found = []
    for key in (table.key, writes.key):
        if key and all(name.lower() in by_name for name in key):
            found.append(tuple(sorted(by_name[name.lower()] for name in key)))
    return tuple(dict.fromkeys(found))


def is_bad(table: TableRows) -> str:
    """SQL condition on a row: it does not fit. Never NULL."""
    parts = [f"({condition})" for condition in _misfits(table).values()]
    parts += [f"{table.read(name)} IS NULL" for name in table.required]
    return " OR ".join(parts) or "false"


def error_text(table: TableRows) -> str:
    """SQL of what is wrong with a row that does not fit."""
    types = {one.column.name: one.type for one in table.columns}
    cases = [
        f"CASE WHEN {condition} THEN {literal(f'the value of {name} cannot be read as {types[name]}')} END"
        for name, condition in _misfits(table).items()
    ]
    cases += [
        f"CASE WHEN {table.read(name)} IS NULL THEN {literal(f'the required column {name} is NULL')} END"
        for name in table.required
    ]
    return f"concat_ws('; ', {', '.join(cases)})" if cases else "CAST(NULL AS STRING)"


def _misfits(table: TableRows) -> dict[str, str]:
    """The columns with values that may not fit, each with the SQL condition that its value does not."""
    found = {}
    for one in table.columns:
        name, read = one.column.name, table.read(one.column.name)
        bad = converted(one, read).bad
        if bad:
            found[name] = f"{read} IS NOT NULL AND ({bad})"
    return found


def rows_of(table: TableRows, view: str) -> str:
    """SQL of a pull: the columns of the table, and ``_action``."""
    listed = ",\n  ".join([*values(table), "'U' AS `_action`"])
    return f"SELECT\n  {listed}\nFROM {quote(view)}{_where(_fits(table))}"


def rows_and_deletes(table: TableRows, view: str, stored_key: Mapping[str, str], stored: str) -> str:
    """SQL of a pull with the keys that are stored, and that the table no longer has, as deletes.

    A row that does not fit is in the table, so it is not deleted. The model keeps its earlier state.

    :param view: with the columns of a ``RowQuery`` with ``all_keys``. It is read once, so that a row is not
        both present and deleted.
    :param stored_key: the stored columns by those of the table, in the order of the key.
    :param stored: SQL of the stored rows.
    """
    selected = []
    for one in table.columns:
        name = quote(one.column.name)
        if one.column.name in stored_key:
            kept = f"CAST(`stored`.{quote(stored_key[one.column.name])} AS {one.type})"
            selected.append(f"coalesce(`source`.{name}, {kept}) AS {name}")
        else:
            selected.append(f"`source`.{name} AS {name}")
    selected.append("CASE WHEN `source`.`is_new` IS NULL THEN 'D' ELSE 'U' END AS `_action`")
    is_new, checked = "`is_new`", _fits(table)
    if table.on_bad_row != "fail":
        is_new, checked = f"IF({table.is_read} AND ({is_bad(table)}), 0, `is_new`) AS `is_new`", "true"
    inner = ",\n  ".join([*values(table), is_new])
    joined = " AND ".join(
        f"`source`.{quote(name)} = `stored`.{quote(kept)}" for name, kept in stored_key.items()
    )
    listed = ",\n  ".join(selected)
    return (
        f"SELECT\n  {listed}\nFROM (\nSELECT\n  {inner}\nFROM {quote(view)}{_where(checked)}\n) AS `source`\n"
        f"FULL OUTER JOIN (\n{stored}\n) AS `stored` ON {joined}\n"
        "WHERE `source`.`is_new` IS NULL OR `source`.`is_new` = 1"
    )


def values(table: TableRows) -> list[str]:
    """SQL of the columns of a pull. With the policy ``fail``, an error for a value that does not fit."""
    found = []
    for one in table.columns:
        name, read = one.column.name, table.read(one.column.name)
        made = converted(one, read)
        value = made.value if table.on_bad_row != "fail" else value_of(table.source, one, read)
        if made.bad and table.on_bad_row != "fail" and name in table.compared:
            value = f"CASE WHEN NOT ({made.bad}) THEN {value} END"  # it is no key that is stored
        found.append(f"{value} AS {quote(name)}")
    return found


def _where(condition: str) -> str:
    return "" if condition == "true" else f"\nWHERE {condition}"


def _fits(table: TableRows) -> str:
    """SQL condition on the rows of a pull. With the policy ``fail``, an error if a required value is NULL."""
    if table.on_bad_row != "fail":
        return f"NOT ({is_bad(table)})"
    if not table.required:
        return "true"
    branches = " ".join(
        f"WHEN {table.is_read} AND {table.read(name)} IS NULL THEN {_missing(table, name)}"
        for name in table.required
    )
    return f"CASE {branches} ELSE true END"


def _missing(table: TableRows, name: str) -> str:
    shown, source = [*table.key_columns] or [one.column.name for one in table.columns], table.source
    return raise_error_sql(
        "AR-311",
        f"a row of the table {source.table} has NULL in the column {name}, which the source "
        f"{source.name} requires: ".replace("|", "/"),
        f"replace(left({as_json(table, shown)}, 300), '|', '/')",
        source.name,
        "the source requires a value; nothing was written",
        "correct the row in the database, or take the other rows only, with on_bad_row: quarantine in the "
        "source's meta.arctic",
    )


def as_json(table: TableRows, columns: Sequence[str]) -> str:
    """SQL of columns as JSON: the text of each value, also if it is NULL."""
    listed = ", ".join(f"{table.text(name)} AS {quote(name)}" for name in columns)
    return f"to_json(struct({listed}), {EXACT_JSON})"


__all__ = [
    "KeyColumns",
    "TableRows",
    "as_json",
    "error_text",
    "is_bad",
    "require_keys",
    "rows_and_deletes",
    "rows_of",
    "table_rows",
    "values",
]
