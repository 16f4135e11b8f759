"""``method: connect``: sessions on a Spark Connect server.

It is the project's own (``server.py``) or any other.

Conf, temporary views and SET of a session are stored on the server. A lost connection is opened again for the
next statement, and a query that does not depend on state of the lost session is repeated automatically.
"""

from __future__ import annotations

import atexit
import functools
import threading
import time
from collections.abc import Sequence
from typing import Any

from dbt_arctic.engine.api import ColumnInfo, FileRead, SourceRead
from dbt_arctic.engine.connect_cursor import ConnectCursor
from dbt_arctic.engine.connect_faults import connect_fault, is_lost
from dbt_arctic.engine.connect_settings import SERVER_ID_KEY, ConnectSettings
from dbt_arctic.engine.faults import Fault
from dbt_arctic.engine.file_view import create_file_view, file_columns
from dbt_arctic.engine.lexer import without_inner_ends
from dbt_arctic.engine.pyspark_output import silence_pyspark
from dbt_arctic.engine.server_connection import ServerConnection
from dbt_arctic.engine.settings import ICEBERG_EXTENSIONS
from dbt_arctic.engine.source_view import create_source_view, with_reader
from dbt_arctic.engine.statement import RunningStatement, Statement, cancelled_error
from dbt_arctic.engine.temp_view import create_temp_view
from dbt_arctic.engine.type_text import type_text
from dbt_arctic.errors import ServerUnreachable

IDLE_S = 300
"""Servers close idle sessions. After this many seconds, the session is checked before it is used."""

# Strong references: a session that the garbage collector closes may be closed in one of pyspark's own
# threads, which then waits for itself.
_open_sessions: set[Any] = set()

_FIRST_WAIT_S = 0.05
_WAIT_GROWS_BY = 4
_LONGEST_WAIT_S = 5.0


class ConnectEngine:
    """Connections to one Spark Connect server. Creating an engine or a connection opens nothing."""

    def __init__(self, settings: ConnectSettings) -> None:
        self.settings = settings
        self._new_conf: dict[str, str] = {}

    def connect(self) -> ConnectConnection:
        """Create a connection."""
        return ConnectConnection(self.settings, self._new_conf)

    def close(self) -> None:
        """Release the engine. Its connections must be closed separately."""


class ConnectConnection(ServerConnection):
    """One Spark session on the server."""

    def __init__(self, settings: ConnectSettings, new_conf: dict[str, str]) -> None:
        super().__init__(new_conf)
        self.settings = settings
        self._used_at = 0.0

    @property
    def session(self) -> Any:
        """The pyspark session. The first access opens it, and one after it was lost opens a new one.

        Raises ``StatementCancelled`` if the connection was cancelled, even while waiting for a server.
        """
        opening = f"open a session on {self.settings.endpoint}"
        with self._opening:
            self.running.refuse_if_cancelled(opening)
            if (
                self._session is not None
                and not self._has_state
                and time.monotonic() - self._used_at > IDLE_S
            ):
                self._drop_if_lost()
            if self._session is None:
                self._session = self._opened(opening)
                self._has_state = False
            self._used_at = time.monotonic()
            return self._session

    def cursor(self) -> ConnectCursor:
        """Create a cursor."""
        return ConnectCursor(self)

    def fault(self, error: Exception, statement: Statement) -> Fault | None:
        fault = connect_fault(error, statement, self.settings.endpoint, repeatable=not self._has_state)
        if is_lost(error) and self._session is not None:
            _let_go(self._session)
            self._session = None
        return fault

    def query_schema(self, sql: str) -> list[ColumnInfo]:
        """The columns that a query would return, analysed by the server without running it."""
        # In a subquery, a command is a syntax error; by itself, it would be executed.
        text = f"SELECT * FROM (\n{without_inner_ends(sql)}\n)"
        with self._translated(text):  # Spark counts the lines of this text.
            schema = self.session.sql(text).schema
        return [ColumnInfo(field.name, type_text(field.dataType)) for field in schema.fields]

    def create_temp_view(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Create a temporary view over literal rows with string columns (or NULL)."""
        with self._translated(f"temporary view {name}"):
            create_temp_view(self.session, name, columns, rows)
        self.remember_state()

    def create_file_view(self, name: str, files: FileRead) -> None:
        with with_reader(files), self._translated(f"files of {files.base}"):
            create_file_view(self.session, name, files)
        self.remember_state()

    def create_source_view(self, name: str, source: SourceRead) -> None:
        with with_reader(source), self._translated(f"the source {source.format}"):
            create_source_view(self.session, name, source)
        self.remember_state()

    def file_columns(self, files: FileRead) -> list[ColumnInfo]:
        with with_reader(files), self._translated(f"files of {files.base}"):
            return file_columns(self.session, files)

    def _read_conf(self) -> dict[str, str]:
        with self._translated("SET"):
            return dict(self.session.conf.getAll)

    def close(self) -> None:
        """Release the session on the server. No error is raised if the server is gone."""
        session, self._session = self._session, None
        if session is not None:
            _release(session)

    def _opened(self, opening: str) -> Any:
        try:
            session = _opened(self.settings, self.running)
        except ServerUnreachable as error:
            if self.running.is_cancelled:
                raise cancelled_error(opening) from error
            raise
        if self.running.is_cancelled:
            _release(session)
            raise cancelled_error(opening)
        return session

    def _drop_if_lost(self) -> None:
        try:
            self._session.conf.get("spark.sql.session.timeZone")
        except Exception as error:
            if not is_lost(error):
                raise
            _let_go(self._session)
            self._session = None


_importing = threading.Lock()
"""Two threads that import parts of pyspark at the same time fail."""


def _opened(settings: ConnectSettings, running: RunningStatement) -> Any:
    with _importing:
        from pyspark.sql.connect.client.retries import DefaultPolicy
        from pyspark.sql.connect.session import SparkSession

        from dbt_arctic.engine.connect_channel import channel_builder

    class UntilCancelled(DefaultPolicy):
        """Stops waiting for a server when the connection is cancelled."""

        def can_retry(self, exception: BaseException) -> bool:
            return not running.is_cancelled and super().can_retry(exception)

    silence_pyspark()
    _close_at_exit()
    session = SparkSession.builder.channelBuilder(channel_builder(settings)).create()
    policy = UntilCancelled(
        max_retries=_retries(settings.timeout_s),
        initial_backoff=int(_FIRST_WAIT_S * 1000),
        backoff_multiplier=_WAIT_GROWS_BY,
        max_backoff=int(_LONGEST_WAIT_S * 1000),
    )
    session.client.set_retry_policies([policy])
    _open_sessions.add(session)
    statement = Statement(f"open a session on {settings.endpoint}", lambda statement: None)
    try:
        # The first response also identifies the server to the client. From here on, Spark
        # refuses to repeat a statement on a server that was restarted in between.
        extensions = session.conf.get("spark.sql.extensions", "") or ""
        server_id = session.conf.get(SERVER_ID_KEY, "") if settings.server_id else ""
        if settings.conf:
            session.conf._set_all(dict(settings.conf), silent=False)
    except Exception as error:
        _let_go(session)
        fault = connect_fault(error, statement, settings.endpoint, repeatable=False, is_opening=True)
        if fault is None:
            raise
        raise fault.error from error
    if server_id != settings.server_id:
        _release(session)
        raise ServerUnreachable(
            "A different server answers at the address of the project's server.",
            where=settings.endpoint,
            why="It does not have the id of this project's server.",
            fix="dbt-arctic server stop, then dbt-arctic server start",
        )
    if ICEBERG_EXTENSIONS not in extensions:
        _release(session)
        raise ServerUnreachable(
            "The Spark Connect server does not support Iceberg tables.",
            where=settings.endpoint,
            why=f"Its spark.sql.extensions do not contain {ICEBERG_EXTENSIONS}.",
            fix="start the server with that extension and with Iceberg's Spark runtime jar",
        )
    return session


def _release(session: Any) -> None:
    """End a session on the server and close its channel.

    Makes one short attempt, because the server may be gone.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=1)])
    session.stop()
    _forget(session)


def _let_go(session: Any) -> None:
    """Close the channel of a lost session."""
    session.client.close()
    _forget(session)


def _forget(session: Any) -> None:
    # Otherwise it would be closed again when it is garbage-collected, in any thread.
    session.client.close = _nothing
    _open_sessions.discard(session)


def _nothing() -> None:
    return None


@functools.cache
def _close_at_exit() -> None:
    # A channel that is open after the interpreter has ended its threads blocks the exit forever.
    atexit.register(_release_all)


def _release_all() -> None:
    for session in list(_open_sessions):
        _release(session)


def _retries(timeout_s: float) -> int:
    """The number of retries whose total wait is about the given time; at least one."""
    wait, waited, retries = _FIRST_WAIT_S, 0.0, 0
    while waited < timeout_s:
        waited += wait
        wait = min(_LONGEST_WAIT_S, wait * _WAIT_GROWS_BY)
        retries += 1
    return max(1, retries)
