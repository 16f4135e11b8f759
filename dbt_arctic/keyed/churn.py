"""Random changes to a copy of a table, as SQL text: what a check of automatic models feeds them.

A copy is three tables: the rows that are there, those that wait to come, and those that went and may come
back. Which rows a step takes is decided by a hash of the row, so that two statements take the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.keyed.compare import comparable
from dbt_arctic.keyed.names import Name, quote, quote_all

HELD_OF_100 = 10
"""Of a hundred rows, how many wait at first, to be new rows of later rounds."""

_WHOLE = ("tinyint", "smallint", "int", "bigint")


def waiting(table: Name) -> Name:
    return table.sibling(f"{table.identifier}__waiting")


def gone(table: Name) -> Name:
    return table.sibling(f"{table.identifier}__gone")


def copy_statements(source: str, table: Name, columns: Sequence[str], seed: int) -> list[str]:
    """Copy what ``source`` (a name or a subquery) has."""
    held = _some(columns, 100, seed, HELD_OF_100)
    return [
        f"CREATE TABLE {table.sql} USING iceberg TBLPROPERTIES ('format-version'='3') "
        f"AS SELECT * FROM {source} WHERE NOT {held}",
        f"CREATE TABLE {waiting(table).sql} USING iceberg AS SELECT * FROM {source} WHERE {held}",
        f"CREATE TABLE {gone(table).sql} USING iceberg AS SELECT * FROM {source} WHERE false",
    ]


def round_statements(
    table: Name, columns: Sequence[tuple[str, str]], identifying: Sequence[str], seed: int
) -> list[str]:
    """One round: rows that went before come back, some go, some come, some change.

    :param columns: name and type.
    :param identifying: columns that are not changed, so that what is unique stays unique.
    """
    names = [name for name, _ in columns]
    leave, come, change = (_some(names, 50, seed + place, 1) for place in range(3))
    statements = [
        f"INSERT INTO {table.sql} SELECT * FROM {gone(table).sql}",
        f"INSERT OVERWRITE {gone(table).sql} SELECT * FROM {table.sql} WHERE {leave}",
        f"DELETE FROM {table.sql} WHERE {leave}",
        f"INSERT INTO {table.sql} SELECT * FROM {waiting(table).sql} WHERE {come}",
        f"DELETE FROM {waiting(table).sql} WHERE {come}",
    ]
    updates = [
        f"{quote(name)} = {value}"
        for place, (name, type_) in enumerate(columns)
        if name not in identifying and (value := _another(table, name, type_, seed + place)) is not None
    ]
    if updates:
        statements.append(f"UPDATE {table.sql} SET {', '.join(updates)} WHERE {change}")
    return statements


def _some(columns: Sequence[str], of: int, seed: int, count: int) -> str:
    return f"(pmod(xxhash64({quote_all(columns)}, {seed}), {of}) < {count})"


def _another(table: Name, name: str, type_: str, seed: int) -> str | None:
    """Another value of a column for some of the rows that change; ``None`` for types that are left alone."""
    column = quote(name)
    if type_ in _WHOLE or type_.startswith("decimal"):
        value = f"{column} + 1"
    elif type_ == "string":
        value = f"(SELECT max({column}) FROM {table.sql})"
    elif type_ == "date":
        value = f"date_add({column}, 1)"
    elif type_ == "boolean":
        value = f"NOT {column}"
    else:
        return None
    return f"CASE WHEN pmod(xxhash64({column}, {seed}), 2) = 0 THEN {column} ELSE {value} END"


def differing_rows(one: str, other: str, columns: Sequence[tuple[str, str]]) -> str:
    """Rows that only one of two queries has, each as often as it is missing in the other.

    :param columns: name and type of the columns of both.
    """
    values = ", ".join(f"{comparable(quote(name), type_)} AS {quote(name)}" for name, type_ in columns)
    left, right = f"SELECT {values}\nFROM (\n{one}\n)", f"SELECT {values}\nFROM (\n{other}\n)"
    return f"({left}\nEXCEPT ALL\n{right})\nUNION ALL\n({right}\nEXCEPT ALL\n{left})"
