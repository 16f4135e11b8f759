"""The rows of Iceberg's JDBC catalog in a database server such as PostgreSQL, read with SQLAlchemy.

Nothing is written: Spark creates the two tables of the catalog when it opens it for the first time. Until
then, the catalog is empty.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dbt_arctic.catalog.damage import no_answer
from dbt_arctic.catalog.jdbc_rows import Row

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_TABLES, _NAMESPACES = "iceberg_tables", "iceberg_namespace_properties"
_KIND = "iceberg_type"


class DatabaseRows:
    """The rows of the catalog ``name`` in a database. A ``JdbcRows``. It is opened by the first request.

    :param uri: SQLAlchemy's address of the database, with the login.
    :param wants_views: whether Spark adds views to the catalog when it opens it, because of
        ``jdbc.schema-version: V1``.
    """

    def __init__(self, name: str, uri: str, *, wants_views: bool) -> None:
        self._name = name
        self._uri = uri
        self._wants_views = wants_views
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._has_kinds = False

    def has_views(self) -> bool:
        if self._wants_views:
            return True
        with self._connection() as connection:
            return self._knows_kinds(connection)

    def schemas(self) -> list[str]:
        from sqlalchemy import text

        found: set[str] = set()
        with self._connection() as connection:
            for table, column in ((_NAMESPACES, "namespace"), (_TABLES, "table_namespace")):
                if not self._has_kinds and not _columns(connection, table):
                    continue
                query = text(f"SELECT DISTINCT {column} FROM {table} WHERE catalog_name = :catalog")
                found.update(row[0] for row in connection.execute(query, {"catalog": self._name}))
        return sorted(found)

    def relations(self, schema: str, name: str | None = None) -> list[Row]:
        from sqlalchemy import text

        with self._connection() as connection:
            knows_kinds = self._knows_kinds(connection)
            if not knows_kinds and not _columns(connection, _TABLES):
                return []
            query = (
                f"SELECT table_name, {_KIND if knows_kinds else 'NULL'}, metadata_location FROM {_TABLES}"
                " WHERE catalog_name = :catalog AND table_namespace = :schema"
            )
            query += "" if name is None else " AND table_name = :name"
            values = {"catalog": self._name, "schema": schema} | ({} if name is None else {"name": name})
            rows = list(connection.execute(text(query), values))
        found = [Row.of(schema, str(row[0]), row[1], row[2]) for row in rows]
        return sorted(found, key=lambda row: row.name)

    def _knows_kinds(self, connection: Connection) -> bool:
        """Whether the rows say which of them are views. Once they do, they always will."""
        self._has_kinds = self._has_kinds or _KIND in _columns(connection, _TABLES)
        return self._has_kinds

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """A connection in which each statement is a transaction of its own."""
        try:
            with self._opened().connect() as connection:
                yield connection
        except Exception as error:  # of SQLAlchemy or of the driver, which may be missing
            raise no_answer(self._name, self._uri, error) from error

    def _opened(self) -> Engine:
        from sqlalchemy import create_engine

        with self._lock:
            if self._engine is None:
                # A server may close connections that were idle for long: each is tried before it is used.
                self._engine = create_engine(self._uri, isolation_level="AUTOCOMMIT", pool_pre_ping=True)
            return self._engine


def _columns(connection: Connection, table: str) -> set[str]:
    """The names of a table's columns in lower case; none if the table does not exist."""
    from sqlalchemy import inspect, text
    from sqlalchemy.exc import DBAPIError

    try:
        # Found as Spark finds it, in any schema of PostgreSQL's search_path.
        found = connection.execute(text(f"SELECT * FROM {table} WHERE 1 = 0"))
        return set(map(str.lower, found.keys()))
    except DBAPIError:
        if inspect(connection).has_table(table):
            raise
        return set()


__all__ = ["DatabaseRows"]
