"""The rows of Iceberg's JDBC catalog in a database server such as PostgreSQL, read with SQLAlchemy."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbt_arctic.catalog.damage import no_answer
from dbt_arctic.catalog.jdbc_rows import KIND, TABLES, JdbcRows

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class SqlAlchemyRows(JdbcRows):
    """The rows of a catalog in a database server, which is opened by the first request.

    :param uri: SQLAlchemy's address of the database, with the login.
    :param wants_views: whether Spark adds views to the catalog when it opens it, because of
        ``jdbc.schema-version: V1``.
    """

    def __init__(self, name: str, uri: str, *, wants_views: bool) -> None:
        super().__init__(name)
        self._uri = uri
        self._wants_views = wants_views
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._known: dict[str, Collection[str]] = {}
        """The columns of tables that will not change any more."""

    def has_views(self) -> bool:
        if self._wants_views:
            return True
        with self._database() as database:
            return KIND in database.columns(TABLES)

    @contextmanager
    def _database(self) -> Iterator[_Open]:
        try:
            with self._opened().connect() as connection:
                yield _Open(connection, self._known)
        except Exception as error:  # of SQLAlchemy or of the driver, which may be missing
            cause = getattr(error, "orig", None) or error  # without SQLAlchemy's own hints
            raise no_answer(self._name, self._uri, cause) from error

    def _opened(self) -> Engine:
        from sqlalchemy import create_engine

        with self._lock:
            if self._engine is None:
                # A server may close connections that were idle for long: each is tried before it is used.
                self._engine = create_engine(self._uri, isolation_level="AUTOCOMMIT", pool_pre_ping=True)
            return self._engine


class _Open:
    """An open connection, in which each statement is a transaction of its own."""

    def __init__(self, connection: Connection, known: dict[str, Collection[str]]) -> None:
        self._connection = connection
        self._known = known

    def columns(self, table: str) -> Collection[str]:
        from sqlalchemy import inspect, text
        from sqlalchemy.exc import DBAPIError

        if table in self._known:
            return self._known[table]
        try:
            # Found as Spark finds it, in any schema of PostgreSQL's search_path.
            result = self._connection.execute(text(f"SELECT * FROM {table} WHERE 1 = 0"))
        except DBAPIError:
            if inspect(self._connection).has_table(table):
                raise
            return ()
        found = frozenset(map(str.lower, result.keys()))
        if KIND in found:
            self._known[table] = found
        return found

    def rows(self, sql: str, values: dict[str, str]) -> list[tuple[Any, ...]]:
        from sqlalchemy import text

        return [tuple(row) for row in self._connection.execute(text(sql), values)]


__all__ = ["SqlAlchemyRows"]
