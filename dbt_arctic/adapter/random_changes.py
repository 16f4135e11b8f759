"""SQL for random changes to a copy of a table, with which ``dbt-arctic check`` tests automatic models.

A copy consists of three tables: the current rows, rows to be inserted later, and deleted rows that may be
inserted again. The last two are in a separate schema, so that they do not appear in listings of the copy's
schema. A hash of the row selects the rows of a step, so that two statements select the same rows: those with
the smallest hashes, a fiftieth of all rows, or a few rows of a small table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dbt_arctic.data_type import decimal_digits, without_parameters
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.null_safe_equality import comparable

_FEW = 5
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")
_TIMES = ("timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class Column:
    """A column of a source whose rows are changed at random.

    :param nulls: whether any row has NULL. Otherwise a change does not use NULL, because the project may rely
        on its absence.
    :param closed: whether a change may only use values of other rows.
    """

    name: str
    type: str
    nulls: bool = False
    closed: bool = False

    @property
    def value(self) -> str:
        """SQL of the column in a form that can be hashed, counted and compared."""
        return comparable(quote(self.name), self.type)

    @property
    def may_name(self) -> bool:
        """Whether its type is suitable for identifiers: integers and strings."""
        if without_parameters(self.type) in (*_WHOLE, "string", "char", "varchar"):
            return True
        digits = decimal_digits(self.type)
        return digits is not None and digits.scale == 0

    @property
    def is_time(self) -> bool:
        """Whether it is a date or a timestamp."""
        return self.type in ("date", *_TIMES)


def aside(table: Name) -> Name:
    """The schema of the rows that are currently not in a copy."""
    return Name(table.catalog, f"{table.schema}__aside", "")


def held_rows_table(table: Name) -> Name:
    """The table of rows to be inserted later."""
    return aside(table).sibling(f"{table.identifier}__waiting")


def deleted_rows_table(table: Name) -> Name:
    """The table of deleted rows."""
    return aside(table).sibling(f"{table.identifier}__gone")


def free_rows(column: str, references: str) -> str:
    """A condition for rows that no other table refers to.

    :param references: a query of the values of that column that are referred to.
    """
    values = f"SELECT value FROM ({references}) AS referring(value) WHERE value IS NOT NULL"
    return f"({quote(column)} IS NOT NULL AND {quote(column)} NOT IN ({values}))"


def held_of(rows: int) -> int:
    """The number of rows of a table that are held back for later rounds."""
    return min(max(rows // 10, _FEW), rows // 2)


def taken_of(rows: int) -> int:
    """The number of rows that one step of a round selects."""
    return min(max(rows // 50, _FEW), (rows + 1) // 2)


def cut(source: str, columns: Sequence[Column], seed: int, count: int) -> str:
    """A query of the largest hash among a number of rows; NULL if there is none.

    :param source: a table, or a subquery.
    """
    hashes = f"SELECT {_hash(columns, seed)} AS hash FROM {source} ORDER BY hash LIMIT {count}"
    return f"SELECT max(hash) FROM ({hashes})"


def chosen(columns: Sequence[Column], seed: int, up_to: int | None, free: str = "true") -> str:
    """A condition for the rows with hashes up to a limit.

    :param free: an additional condition.
    """
    return "false" if up_to is None else f"({_hash(columns, seed)} <= {up_to} AND {free})"


def copy_statements(source: str, table: Name, held: str) -> list[str]:
    """The statements that create a copy of ``source`` (a name or a subquery).

    :param held: a condition for the rows that are held back at first.
    """
    return [
        f"CREATE TABLE {table.sql} USING iceberg TBLPROPERTIES ('format-version'='3') "
        f"AS SELECT * FROM {source} WHERE NOT {held}",
        f"CREATE TABLE {held_rows_table(table).sql} USING iceberg AS SELECT * FROM {source} WHERE {held}",
        f"CREATE TABLE {deleted_rows_table(table).sql} USING iceberg AS SELECT * FROM {source} WHERE false",
    ]


def coming_statements(table: Name, come: str) -> list[str]:
    """The statements that insert rows that were held back."""
    return [
        f"INSERT INTO {table.sql} SELECT * FROM {held_rows_table(table).sql} WHERE {come}",
        f"DELETE FROM {held_rows_table(table).sql} WHERE {come}",
    ]


def leaving_statements(table: Name, leave: str) -> list[str]:
    """The statements that insert deleted rows again and delete others."""
    return [
        f"INSERT INTO {table.sql} SELECT * FROM {deleted_rows_table(table).sql}",
        f"INSERT OVERWRITE {deleted_rows_table(table).sql} SELECT * FROM {table.sql} WHERE {leave}",
        f"DELETE FROM {table.sql} WHERE {leave}",
    ]


def change_statement(
    table: Name, columns: Sequence[Column], identifying: Collection[str], seed: int, change: str
) -> str | None:
    """The statement that changes some rows; ``None`` if all columns are identifying.

    :param identifying: columns that are not changed, so that unique columns remain unique.
    """
    updates = [
        f"{quote(column.name)} = {_another(table, columns, column, seed + place)}"
        for place, column in enumerate(columns)
        if column.name not in identifying
    ]
    return f"UPDATE {table.sql} SET {', '.join(updates)} WHERE {change}" if updates else None


def _hash(columns: Sequence[Column], seed: int) -> str:
    return f"xxhash64({', '.join(column.value for column in columns)}, {seed})"


def _another(table: Name, columns: Sequence[Column], column: Column, seed: int) -> str:
    """SQL of a new value.

    A quarter of the rows keep theirs, others get that of another row, a new one or NULL.
    """
    name = quote(column.name)
    # Values of the same column, so that joins on it find partners, but different ones. Without a WHERE, Spark
    # reads the table once for all of them.
    hashes = (f"xxhash64({column.value}, {seed + number})" for number in (1, 2))
    others = [
        f"(SELECT min_by({name}, CASE WHEN {name} IS NOT NULL THEN {one} END) FROM {table.sql})"
        for one in hashes
    ]
    last = "NULL" if column.nulls else others[1]
    another = (None if column.closed else _next(column)) or others[1]
    return (
        f"CASE pmod({_hash(columns, seed)}, 4) WHEN 0 THEN {name} WHEN 1 THEN {others[0]} "
        f"WHEN 2 THEN {another} ELSE {last} END"
    )


def _next(column: Column) -> str | None:
    """SQL of a value close to that of a row; ``None`` for types without one."""
    name, type_ = quote(column.name), column.type
    if type_ in _WHOLE or without_parameters(type_) == "decimal":
        # The maximum of the type is kept.
        return f"coalesce(try_cast(try_add({name}, 1) AS {type_}), {name})"
    if type_ in _FLOATS:
        return f"CAST({name} + 0.5D AS {type_})"
    if type_ == "date":
        return f"date_sub({name}, 1)"
    if type_ in _TIMES:
        return f"{name} - INTERVAL '25' HOUR"
    if type_ == "boolean":
        return f"NOT {name}"
    return None
