"""MariaDB and MySQL as databases, through the package PyMySQL."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_arctic.databases import sql
from dbt_arctic.databases.address import Address
from dbt_arctic.databases.api import (
    Column,
    JdbcRead,
    ListedTable,
    RowQuery,
    SchemaReader,
    Table,
    TableName,
    UnseenTransactions,
)
from dbt_arctic.databases.client import (
    ClientTransaction,
    Connection,
    Failures,
    Run,
    package_missing,
    parts_of,
)
from dbt_arctic.databases.mariadb_transactions import log_position
from dbt_arctic.databases.mariadb_types import MariaDialect, holds_flags, mariadb_type
from dbt_arctic.databases.mariadb_versions import read_columns_of, version_of
from dbt_arctic.errors import ConfigError, UnknownRelation

DRIVER = "org.mariadb.jdbc.Driver"
_TIMEOUT_S = 10
_FETCHED = "10000"
_SESSION = "SET time_zone = '+00:00', sql_mode = ''"
_BEGIN = (
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)
_CLOCK = "SELECT CAST(UTC_TIMESTAMP() AS CHAR)"
"""In whole seconds, as the times of changes in the log."""
_FIND = "SELECT TABLE_ROWS FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_LIST = """
SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS FROM information_schema.TABLES
WHERE TABLE_SCHEMA = %s AND TABLE_TYPE = 'BASE TABLE' ORDER BY TABLE_NAME
"""
_COLUMNS = """
SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, EXTRA LIKE '%%GENERATED%%' FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION
"""
_KEY = """
SELECT COLUMN_NAME FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX
"""
_SSL_MODES = ("disable", "trust", "verify-ca", "verify-full")


def connect(address: Address, where: str) -> Connection:
    """Connect to a database.

    :param where: what declares it, for errors.
    :raises ServerUnreachable: the database does not answer, or refuses.
    :raises PackageMissing: PyMySQL is not installed.
    """
    try:
        import pymysql
    except ImportError as error:
        raise package_missing("PyMySQL", "mariadb", "MariaDB and MySQL", where) from error
    failures = Failures("MariaDB", address.shown, where, pymysql.Error)
    settings = login(address, where)
    with failures.explained("reached"):
        connection: Any = pymysql.connect(
            database=address.database, init_command=_SESSION, autocommit=True, **settings
        )

    def run(text: str, values: Sequence[Any] | None = None, /) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(text, values)
            return list(cursor.fetchall())

    return Connection(failures, run, connection.close)


def login(address: Address, where: str) -> dict[str, Any]:
    """The settings of the Python client that say how to connect."""
    return {
        "host": address.host,
        "port": address.port,
        "user": address.user or None,
        "password": address.password,
        "connect_timeout": _TIMEOUT_S,
        "charset": "utf8mb4",
        **tls_settings(address, where),
    }


def tls_settings(address: Address, where: str) -> dict[str, Any]:
    """The settings of the Python client for the driver's ``sslMode``.

    :raises ConfigError: the driver has no such mode.
    """
    mode = address.options.get("sslMode", "disable").lower()
    if mode not in _SSL_MODES:
        raise ConfigError(f"sslMode in url is {mode}", where=where, fix=f"use one of {', '.join(_SSL_MODES)}")
    if mode == "disable":
        return {"ssl_disabled": True}
    # The client's own settings accept a connection without TLS, or any host, if no certificate is given.
    context = ssl.create_default_context(cafile=address.options.get("serverSslCert"))
    context.check_hostname = mode == "verify-full"
    context.verify_mode = ssl.CERT_NONE if mode == "trust" else ssl.CERT_REQUIRED
    return {"ssl": context}


@dataclass(frozen=True)
class MariaSchemaReader:
    """The tables of a MariaDB or MySQL database, read in a transaction.

    :param where: what declares the database, for errors.
    """

    run: Run
    address: Address
    where: str

    def tables(self) -> list[ListedTable]:
        """The tables of the address's database that this user may read, by name, without views."""
        return [ListedTable(*one) for one in self.run(_LIST, (self.address.database,))]

    def describe(self, name: TableName) -> Table:
        """The columns and the key of a table, which may be a view."""
        found = self.run(_FIND, name)
        if not found:
            raise UnknownRelation(
                f"there is no table {'.'.join(name)} on {self.address.shown}",
                where=self.where,
                why="it does not exist, or this user may not see it",
                fix="correct table in the source's meta.arctic, as database.name",
            )
        columns = tuple(
            Column(
                column, kind, *mariadb_type(kind), is_nullable == "YES", holds_flags(kind), bool(is_generated)
            )
            for column, kind, is_nullable, is_generated in self.run(_COLUMNS, name)
        )
        key = tuple(column for (column,) in self.run(_KEY, name))
        return Table(f"mariadb/{'/'.join(name)}", columns, key, int(found[0][0] or 0))


@contextlib.contextmanager
def read_schema(address: Address, where: str) -> Iterator[SchemaReader]:
    """Read the tables of a database in a transaction.

    :param where: what declares the database, for errors.
    :raises ServerUnreachable: the database does not answer, or refuses.
    :raises PackageMissing: PyMySQL is not installed.
    """
    connection = connect(address, where)
    with contextlib.closing(connection), connection.reading(_BEGIN) as run:
        yield MariaSchemaReader(run, address, where)


def _followed(run: Run, place: TableName, table: Table) -> Table:
    """The table with what the log has of it."""
    found = read_columns_of(run, [place]).get(place, [])
    columns = {one.name: one for one in found}

    def logged(column: Column) -> Column:
        charset = columns[column.name].charset
        if not charset:
            return column
        type_ = f"{column.type} CHARACTER SET {charset}"
        return column._replace(type=type_, family="unreadable", spark_type="")

    return table._replace(
        columns=tuple(map(logged, table.columns)),
        identity=tuple(columns),
        version=version_of(found),
    )


@dataclass(frozen=True)
class MariaTable:
    """A table of MariaDB or MySQL.

    :param name: of the table, with or without its database.
    :param where: what declares it, for errors.
    :param is_followed: whether its changes are read from the log.
    """

    address: Address
    name: str
    where: str
    is_followed: bool = False

    def begin(self) -> ClientTransaction:
        """Begin a transaction that reads the table. Other connections cannot share its state."""
        connection = connect(self.address, self.where)
        with connection.reading(_BEGIN) as run:
            table = MariaSchemaReader(run, self.address, self.where).describe(self.place)
            if self.is_followed:
                table = _followed(run, self.place, table)

        def others() -> UnseenTransactions:
            # The position that belongs to the state that the transaction sees.
            found = dict(run("SHOW STATUS LIKE 'binlog_snapshot%%'", ()))
            file, offset = found.get("Binlog_snapshot_file"), found.get("Binlog_snapshot_position")
            return UnseenTransactions(after=log_position(file, int(offset)) if file and offset else 0)

        name, export = self._quoted, lambda: ""
        return ClientTransaction(MariaDialect(), connection, table, name, export, others, _CLOCK)

    def read(self, query: RowQuery) -> JdbcRead:
        """How Spark reads rows of the table."""
        options = {
            # Spark chooses how it quotes names by the beginning of the URL.
            "url": self.address.jdbc_url("mysql", permitMysqlScheme="true"),
            "driver": DRIVER,
            "dbtable": sql.rows(MariaDialect(), query, self._quoted),
            "fetchsize": _FETCHED,
            "pushDownPredicate": "false",
            "sessionInitStatement": _SESSION,
            "user": self.address.user,
            "password": self.address.password,
        }
        return JdbcRead({key: value for key, value in options.items() if value}, sql.predicates(query.ranges))

    @property
    def place(self) -> TableName:
        """The table with its database."""
        *schema, name = parts_of(self.name, self.where)
        return TableName(schema[0] if schema else self.address.database, name)

    @property
    def _quoted(self) -> str:
        return ".".join(map(MariaDialect().quote, self.place))


__all__ = ["DRIVER", "MariaSchemaReader", "MariaTable", "connect", "login", "read_schema", "tls_settings"]
