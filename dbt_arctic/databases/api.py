"""The interface of a relational database for the rest of dbt-arctic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from dbt_arctic.databases.table_versions import (
    ColumnVersion,
    TableVersion,
    columns_shape,
    identity_in,
    shape_of,
)

Family = Literal[
    "boolean",
    "integer",
    "float",
    "decimal",
    "date",
    "timestamp",
    "timestamptz",
    "binary",
    "text",
    "array",
    "unreadable",
]
"""How values of a type are read. ``timestamp`` has no time zone, ``timestamptz`` is a point in time."""

CURSORS = ("integer", "decimal", "date", "timestamp", "timestamptz")
"""The families whose values have an order that a cursor can have."""


class Column(NamedTuple):
    """A column of a table.

    :param type: of the database, as the database shows it.
    :param spark_type: what it becomes, unless another type is declared.
    :param holds_flags: whether it is an integer type that the database uses for truth values.
    :param is_generated: whether the database computes its values from other columns. The log of PostgreSQL
        does not have them.
    """

    name: str
    type: str
    family: Family
    spark_type: str
    is_nullable: bool = True
    holds_flags: bool = False
    is_generated: bool = False


class TableName(NamedTuple):
    """The name of a table, and its schema; in MariaDB and MySQL, its database."""

    schema: str
    name: str

    @property
    def dotted(self) -> str:
        """The name for messages, not for SQL."""
        return f"{self.schema}.{self.name}"


class ListedTable(NamedTuple):
    """A table in the list of a database.

    :param schema: of PostgreSQL, or the database of MariaDB.
    :param rows: about how many it has; ``None`` if the database has not counted them yet.
    """

    schema: str
    name: str
    rows: int | None = None


class Table(NamedTuple):
    """A table, or what can be read like one.

    :param table_id: differs for another table of the same name, where the database distinguishes them.
    :param key: the columns of the primary key.
    :param rows: about how many it has.
    :param identity: the columns whose old values the log of the database has. Of a partitioned table, those
        that it has in each partition.
    :param version: of a table that is followed by its log.
    :param is_alone: whether tables that inherit from it are left out.
    :param partitions: by name, the columns whose old values the log has of each partition.
    """

    table_id: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    rows: int = 0
    identity: tuple[str, ...] = ()
    version: TableVersion | None = None
    is_alone: bool = False
    partitions: Mapping[TableName, tuple[str, ...]] = MappingProxyType({})

    def column(self, name: str) -> Column | None:
        """The column of a name, in any case if there is only one."""
        found = [one for one in self.columns if one.name == name]
        found = found or [one for one in self.columns if one.name.lower() == name.lower()]
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class Window:
    """The rows between two values of a cursor.

    :param low: in the form of ``TableTransaction.newest``; ``None`` for no limit.
    :param includes_low: whether rows with this value are among them.
    :param high: rows with this value are among them; ``None`` for no rows with a cursor.
    :param with_null: whether rows without a cursor are among them.
    """

    cursor: Column
    low: str | None
    includes_low: bool
    high: str | None
    with_null: bool = False


class KeyRange(NamedTuple):
    """Rows with ``low <= column < high``; without a low end, those with NULL as well."""

    low: int | None
    high: int | None


class SelectedColumn(NamedTuple):
    """A column to read.

    :param as_text: whether its values are read as text, because the type of Spark is not the usual one.
    """

    column: Column
    as_text: bool = False


@dataclass(frozen=True)
class RowQuery:
    """Rows to read in Spark. They have the columns ``c0``, ``c1``, ... in the order of ``columns``.

    :param window: ``None`` for all rows.
    :param all_keys: the columns of which the values of all rows are read, also of rows outside of the window.
        There is then a column ``is_new`` with 1 for rows of the window, and 0 for others.
    :param ranges: one for each concurrent statement; empty for one statement.
    :param ranges_of: the column of the ranges.
    :param snapshot: of ``TableTransaction.share``; empty for the state of the table when it is read.
    :param is_alone: of the table.
    """

    columns: Sequence[SelectedColumn]
    window: Window | None = None
    all_keys: Sequence[str] = ()
    ranges: Sequence[KeyRange] = ()
    ranges_of: Column | None = None
    snapshot: str = ""
    is_alone: bool = False


class JdbcRead(NamedTuple):
    """How Spark's JDBC reader reads rows.

    :param options: of the reader. They contain the password.
    :param predicates: one for each concurrent statement; empty for one statement.
    """

    options: Mapping[str, str]
    predicates: Sequence[str]


class UnseenTransactions(NamedTuple):
    """Transactions whose changes another one does not see. Ids have 32 bits.

    :param ids: of those that had begun before others that have ended.
    :param beginning: the id from which on none is seen; ``None`` if it is not known.
    :param after: the position in the log after which none is seen, in a database that knows it.
    """

    ids: Sequence[int] = ()
    beginning: int | None = None
    after: int | None = None


class TableTransaction(Protocol):
    """A transaction that sees one state of a table, until it is closed."""

    @property
    def table(self) -> Table:
        """The table."""
        ...

    def newest(self, cursor: Column) -> str | None:
        """The largest value of a cursor as text; ``None`` if it has none. Time is in UTC."""
        ...

    def has_null(self, column: Column) -> bool:
        """Whether a row has no value in a column."""
        ...

    def fingerprint(self, columns: Sequence[Column], window: Window | None) -> str:
        """A text that differs if the rows of a window do, as far as these columns are concerned.

        It has the number of rows, and the sum of their hash values.
        """
        ...

    def extremes(self, column: Column) -> tuple[int, int] | None:
        """The smallest and the largest value of a column of integers; ``None`` if it has none."""
        ...

    def count(self, window: Window) -> int:
        """The number of rows of a window."""
        ...

    def unseen(self) -> UnseenTransactions:
        """The transactions whose changes this one does not see.

        They may have written their commit to the log already.
        """
        ...

    def time(self) -> str:
        """The time of the database as text in UTC, as exact as the times of changes in its log."""
        ...

    def share(self) -> str:
        """A name with which other connections see the same state, while this one is open.

        Empty if the database has no such names.
        """
        ...

    def close(self) -> None:
        """End the transaction."""
        ...


class SchemaReader(Protocol):
    """A transaction that reads which tables a database has, and their columns."""

    def tables(self) -> list[ListedTable]:
        """The tables that this user may read, by name, without views and partitions."""
        ...

    def describe(self, name: TableName) -> Table:
        """The columns and the key of a table.

        :raises UnknownRelation: it does not exist, or this user may not see it.
        """
        ...


class Database(Protocol):
    """A table of a database."""

    def begin(self) -> TableTransaction:
        """Begin a transaction that reads the table.

        :raises UnknownRelation: it does not exist, or this user may not see it.
        :raises ServerUnreachable: the database does not answer, or refuses.
        :raises PackageMissing: the client of the database is not installed.
        """
        ...

    def read(self, query: RowQuery) -> JdbcRead:
        """How Spark reads rows of the table."""
        ...


__all__ = [
    "CURSORS",
    "Column",
    "ColumnVersion",
    "Database",
    "Family",
    "JdbcRead",
    "KeyRange",
    "ListedTable",
    "RowQuery",
    "SchemaReader",
    "SelectedColumn",
    "Table",
    "TableName",
    "TableTransaction",
    "TableVersion",
    "UnseenTransactions",
    "Window",
    "columns_shape",
    "identity_in",
    "shape_of",
]
