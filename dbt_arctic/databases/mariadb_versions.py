"""What the information schema of MariaDB says about tables that are followed by the log."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dbt_arctic.databases.api import TableName
from dbt_arctic.databases.client import Run
from dbt_arctic.databases.table_versions import ColumnVersion, TableVersion

_TABLE = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""
_CASCADES = """
SELECT CONSTRAINT_NAME, DELETE_RULE, UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME = %s
  AND (DELETE_RULE IN ('CASCADE', 'SET NULL') OR UPDATE_RULE IN ('CASCADE', 'SET NULL'))
"""
_COLUMNS = """
SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA IN ({schemas}) AND TABLE_NAME IN ({names})
ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION
"""
_DISTINGUISHED = ("uuid", "inet6", "inet4")
_UTF8, _OTHERS = ("utf8mb4", "utf8mb3", "utf8"), ("ascii", "latin1")
_WIDE = ("ucs2", "utf16", "utf32")
"""Character sets whose ASCII characters have other bytes."""
_UNKNOWN_FORMS: Mapping[str, str] = {
    "compressed": "COMPRESSED",
    "mariadb-5.3": "the format of MariaDB 5.3 (mysql56_temporal_format)",
}
"""What ``COLUMN_TYPE`` has in a comment if the client of the log misreads the values, and its name."""
_LAST_NUMBER = 2**32


class NotFollowed(NamedTuple):
    """Why the log does not have all changes of a table, in the parts of an error."""

    what: str
    why: str
    fix: str


class FollowedColumn(NamedTuple):
    """A column of a table.

    :param type: as the database shows it.
    :param charset: the character set of its texts, if the client of the log cannot read it.
    """

    name: str
    type: str
    charset: str


def why_not_followed(run: Run, table: TableName) -> NotFollowed | None:
    """Why the log does not have all changes of a table; ``None`` if it has them."""
    found = run(_TABLE, table)
    if not found:
        return NotFollowed(
            f"there is no table {table.dotted}",
            "it does not exist, or this user may not see it",
            "correct table in the source's meta.arctic, as database.name",
        )
    schema, name, kind, engine = map(str, found[0])
    if TableName(schema, name) != table:  # the log has the names in this form
        return NotFollowed(
            f"the table {table.dotted} is called {schema}.{name}",
            "the server stores names in another case",
            f"write table: {schema}.{name} in the source's meta.arctic",
        )
    if kind != "BASE TABLE":
        return NotFollowed(
            f"{table.dotted} cannot be followed: it is a {kind.lower()}",
            "the log has changes of rows of usual tables",
            "use from: jdbc",
        )
    if engine.lower() != "innodb":
        return NotFollowed(
            f"the table {table.dotted} cannot be followed: its engine is {engine}",
            "only changes of InnoDB are in the log exactly when their transaction commits",
            f"run this in the database: ALTER TABLE {table.dotted} ENGINE = InnoDB; or use from: jdbc",
        )
    for column in read_columns_of(run, [table]).get(table, ()):
        _, _, comment = column.type.lower().partition("/*")
        form = next((one for said, one in _UNKNOWN_FORMS.items() if said in comment), None)
        if form is not None:
            return NotFollowed(
                f"the table {table.dotted} cannot be followed: its column {column.name} has {form}",
                "the client of the log cannot read its values, nor those of the columns after it",
                f"change the type of the column: ALTER TABLE {table.dotted} MODIFY {column.name} ..; "
                "or use from: jdbc",
            )
    cascades = run(_CASCADES, table)
    if cascades:
        name, deleted, updated = cascades[0]
        rule = f"ON DELETE {deleted}" if deleted in ("CASCADE", "SET NULL") else f"ON UPDATE {updated}"
        return NotFollowed(
            f"the table {table.dotted} cannot be followed: its foreign key {name} has {rule}",
            "MariaDB does not log the rows that a foreign key deletes or changes",
            "let the application delete the rows, and define the foreign key without it; or use from: jdbc "
            "with deletes: compare",
        )
    return None


def read_columns_of(run: Run, tables: Sequence[TableName]) -> dict[TableName, list[FollowedColumn]]:
    """The columns of tables, in the order of the log."""
    found: dict[TableName, list[FollowedColumn]] = defaultdict(list)
    if tables:
        schemas, names = ({one[at] for one in tables} for at in (0, 1))
        statement = _COLUMNS.format(schemas=_places(schemas), names=_places(names))
        for schema, name, column, kind, charset in run(statement, (*schemas, *names)):
            base = str(kind).partition("(")[0].lower()
            # The client takes the bytes of labels for UTF-8.
            is_plain = (
                str(kind).isascii() and not str(charset).startswith(_WIDE)
                if base in ("enum", "set")
                else str(charset) in _OTHERS
            )
            odd = "" if charset is None or str(charset) in _UTF8 or is_plain else str(charset)
            found[TableName(schema, name)].append(FollowedColumn(column, kind, odd))
    return {table: found[table] for table in tables if table in found}


def read_versions(run: Run, tables: Sequence[TableName]) -> dict[TableName, TableVersion]:
    """The versions of tables.

    The log has the statements that change a table, so a version says no more than the names of its columns.
    The number of a column follows from its name.
    """
    return {table: version_of(columns) for table, columns in read_columns_of(run, tables).items()}


def version_of(columns: Sequence[FollowedColumn]) -> TableVersion:
    """The version of a table with these columns, see ``read_versions``."""
    numbers = {one.name: ColumnVersion(zlib.crc32(one.name.encode()), "") for one in columns}
    logged = tuple(one.name for one in columns)
    return TableVersion("", _LAST_NUMBER, numbers, logged)


def distinguished_types(run: Run, tables: Sequence[TableName]) -> dict[TableName, dict[str, str]]:
    """By table and column, the type where the log has the same bytes for several."""
    return {
        table: {one.name: one.type.lower() for one in columns if one.type.lower() in _DISTINGUISHED}
        for table, columns in read_columns_of(run, tables).items()
    }


def _places(values: set[Any]) -> str:
    return ", ".join(["%s"] * len(values))


__all__ = [
    "FollowedColumn",
    "NotFollowed",
    "distinguished_types",
    "read_columns_of",
    "read_versions",
    "version_of",
    "why_not_followed",
]
