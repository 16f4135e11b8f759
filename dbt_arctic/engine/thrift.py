"""``method: thrift``: sessions on a Spark Thrift server, which takes SQL only.

Conf, temporary views and SET of a session are stored on the server. A lost connection is opened again for the
next statement, and a query that does not depend on state of the lost session is repeated automatically.
What needs a pyspark session is refused: Python models, and sources of files, topics and databases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from dbt_arctic.engine.api import ColumnInfo, FileRead, SourceRead
from dbt_arctic.engine.faults import Fault
from dbt_arctic.engine.lexer import without_inner_ends
from dbt_arctic.engine.literals import bind
from dbt_arctic.engine.server_connection import ServerConnection
from dbt_arctic.engine.statement import Statement
from dbt_arctic.engine.thrift_client import OperationFailed, ThriftClient
from dbt_arctic.engine.thrift_cursor import ThriftCursor, described
from dbt_arctic.engine.thrift_faults import is_lost, thrift_fault, unreachable
from dbt_arctic.engine.thrift_settings import ThriftSettings
from dbt_arctic.errors import ArcticError, ConfigError

IDLE_S = 30
"""A server that was restarted, or that closes idle sessions, has lost a session without a word.

After this many seconds without a statement, the session is checked before it is used.
"""


class ThriftEngine:
    """Connections to one Spark Thrift server. Creating an engine or a connection opens nothing."""

    def __init__(self, settings: ThriftSettings) -> None:
        self.settings = settings
        self._new_conf: dict[str, str] = {}

    def connect(self) -> ThriftConnection:
        """Create a connection."""
        return ThriftConnection(self.settings, self._new_conf)

    def close(self) -> None:
        """Release the engine. Its connections must be closed separately."""


class ThriftConnection(ServerConnection):
    """One session on the server."""

    _session: ThriftClient | None

    def __init__(self, settings: ThriftSettings, new_conf: dict[str, str]) -> None:
        super().__init__(new_conf)
        self.settings = settings

    @property
    def client(self) -> ThriftClient:
        """The session on the server. The first access opens it, and one after it was lost opens a new one."""
        with self._opening:
            self.running.refuse_if_cancelled(f"open a session on {self.settings.endpoint}")
            if self._session is not None and not self._has_state and self._session.idle_s() > IDLE_S:
                self._drop_if_lost(self._session)
            if self._session is None:
                self._session = self._opened()
                self._has_state = False
            return self._session

    def _drop_if_lost(self, client: ThriftClient) -> None:
        """Discard a session that the server no longer knows. No statement has been sent."""
        if not client.is_known():
            client.close()
            self._session = None

    @property
    def session(self) -> SqlSession:
        """The settings of the session. It has nothing else of a pyspark session."""
        return SqlSession(self)

    def cursor(self) -> ThriftCursor:
        """Create a cursor."""
        return ThriftCursor(self)

    def fault(self, error: Exception, statement: Statement) -> Fault | None:
        fault = thrift_fault(error, statement, self.settings.endpoint, repeatable=not self._has_state)
        if self._session is not None and (self._session.is_broken or is_lost(error)):
            self._session.close()
            self._session = None
        return fault

    def query_schema(self, sql: str) -> list[ColumnInfo]:
        """The columns that a query would return, analysed by the server without running it."""
        # In a subquery, a command is a syntax error; by itself, it would be executed.
        text = f"SELECT * FROM (\n{without_inner_ends(sql)}\n)"
        with self._translated(text) as statement:
            return described(self.client, statement)

    def create_temp_view(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Create a temporary view over literal rows with string columns (or NULL)."""
        listed = ", ".join(_quoted(column) for column in columns)
        marks = f"({', '.join(['CAST(%s AS STRING)'] * len(columns))})"
        values = ",\n".join([marks] * max(1, len(rows)))
        texts = [None if value is None else str(value) for row in rows for value in row]
        nothing = "" if rows else "\nWHERE false"
        select = bind(
            f"SELECT * FROM VALUES\n{values} AS v({listed}){nothing}", texts or [None] * len(columns)
        )
        self.cursor().execute(f"CREATE OR REPLACE TEMPORARY VIEW {_quoted(name)} AS\n{select}")

    def create_file_view(self, name: str, files: FileRead) -> None:
        refuse("a file source", files.base)

    def create_source_view(self, name: str, source: SourceRead) -> None:
        refuse(f"a source of {source.format}", name)

    def file_columns(self, files: FileRead) -> list[ColumnInfo]:
        refuse("a file source", files.base)

    def close(self) -> None:
        """Release the session on the server. No error is raised if the server is gone."""
        client, self._session = self._session, None
        if client is not None:
            client.close()

    def _read_conf(self) -> dict[str, str]:
        # A cursor would take it for a statement that changes the session.
        with self._translated("SET") as statement:
            return {str(row[0]): str(row[1]) for row in self.client.run(statement.text).rows}

    def _opened(self) -> ThriftClient:
        try:
            client = ThriftClient(self.settings)
            for name, value in self.settings.conf.items():
                client.run(_setting(name, value))
        except ArcticError:
            raise
        except Exception as error:
            if not is_lost(error) and not isinstance(error, OperationFailed):
                raise
            raise unreachable(error, self.settings.endpoint) from error
        return client


class SqlSession:
    """What a session on a Thrift server has of a pyspark session: its settings."""

    def __init__(self, connection: ThriftConnection) -> None:
        self.conf = _Conf(connection)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse("a DataFrame", f"session.{name}")


class _Conf:
    """Reads and changes settings by SQL."""

    def __init__(self, connection: ThriftConnection) -> None:
        self._connection = connection

    def get(self, key: str, default: str | None = None) -> str | None:
        """The value of a setting; ``default`` if it is not set."""
        cursor = self._connection.cursor()
        cursor.execute(f"SET {_quoted(key)}")
        ((_, value),) = cursor.fetchall()
        return default if value == "<undefined>" else str(value)

    def set(self, key: str, value: str) -> None:
        """Change a setting."""
        self._connection.cursor().execute(_setting(key, value))


def refuse(what: str, where: str) -> NoReturn:
    """Refuse what a Thrift server cannot do.

    :raises ConfigError: in any case.
    """
    raise ConfigError(
        f"{what} cannot be used with method: thrift",
        where=where,
        why="a Spark Thrift server takes SQL only, and these need a pyspark session",
        fix="use method: session or method: connect for this model",
    )


def _setting(key: str, value: str) -> str:
    """The statement that changes a setting. Without quotes, Spark refuses some keys and values."""
    return f"SET {_quoted(key)}={_quoted(value) if value else ''}"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
