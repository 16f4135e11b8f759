"""``method: connect``: sessions on a Spark Connect server, which may be our own (``server.py``) or anybody's.

A session's conf, temporary views and SET live on the server. A connection that was lost is opened again
for the next statement, and a query that depends on nothing of the lost session runs again by itself.
"""

from __future__ import annotations

import atexit
import functools
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dbt_arctic.engine.api import ColumnInfo, Traffic
from dbt_arctic.engine.connect_cursor import ConnectCursor
from dbt_arctic.engine.connect_faults import connect_fault, is_lost
from dbt_arctic.engine.connect_settings import SERVER_ID_KEY, ConnectSettings
from dbt_arctic.engine.faults import Fault
from dbt_arctic.engine.lexer import without_inner_ends
from dbt_arctic.engine.pyspark_output import silence_pyspark
from dbt_arctic.engine.settings import ICEBERG_EXTENSIONS
from dbt_arctic.engine.statement import RunningStatement, Statement, cancelled_error
from dbt_arctic.engine.temp_view import create_temp_view
from dbt_arctic.engine.type_text import type_text
from dbt_arctic.errors import ServerUnreachable

IDLE_S = 300
"""Servers close sessions that are idle for long; after this many seconds one is asked before it is used."""

# Strong references: a session that the garbage collector ends may be ended in one of pyspark's own threads,
# which then waits for itself.
_open_sessions: set[Any] = set()

_FIRST_WAIT_S = 0.05
_WAIT_GROWS_BY = 4
_LONGEST_WAIT_S = 5.0


class ConnectEngine:
    """Connections to one Spark Connect server. Making an engine or a connection opens nothing."""

    def __init__(self, settings: ConnectSettings) -> None:
        self.settings = settings

    def connect(self) -> ConnectConnection:
        return ConnectConnection(self.settings)

    def close(self) -> None:
        """Let go of the engine; its connections are closed by those who opened them."""


class ConnectConnection:
    """One Spark session on the server. One statement at a time; ``cancel`` from any thread."""

    def __init__(self, settings: ConnectSettings) -> None:
        self.settings = settings
        self.running = RunningStatement()
        self._session: Any = None
        self._has_state = False
        self._used_at = 0.0
        self._opening = threading.Lock()

    @property
    def session(self) -> Any:
        """The pyspark session; the first use opens it, and one use after it was lost opens another.

        Raises ``StatementCancelled`` where the connection was cancelled, also while a server was waited for.
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

    @property
    def is_open(self) -> bool:
        """Whether a session exists already that statements may be sent to."""
        return self._session is not None and not self.running.is_cancelled

    def cursor(self) -> ConnectCursor:
        return ConnectCursor(self)

    def remember_state(self) -> None:
        """From now on the session holds something (a setting, a temporary view) that a new one would lack."""
        self._has_state = True

    def fault(self, error: Exception, statement: Statement) -> Fault | None:
        """What went wrong; a session that is lost is let go."""
        fault = connect_fault(error, statement, self.settings.endpoint, repeatable=not self._has_state)
        if is_lost(error) and self._session is not None:
            _let_go(self._session)
            self._session = None
        return fault

    def query_schema(self, sql: str) -> list[ColumnInfo]:
        """The columns a query would return: analysed by the server, never run."""
        # In a subquery a command is a syntax error; on its own it would be run.
        with self._translated(sql):
            schema = self.session.sql(f"SELECT * FROM (\n{without_inner_ends(sql)}\n)").schema
        return [ColumnInfo(field.name, type_text(field.dataType)) for field in schema.fields]

    def create_temp_view(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A temporary view over literal rows, every column a string (or NULL)."""
        with self._translated(f"temporary view {name}"):
            create_temp_view(self.session, name, columns, rows)
        self.remember_state()

    @contextmanager
    def _translated(self, sql: str) -> Iterator[None]:
        """Raise what Spark raises inside the block as an ``ArcticError``, the cause kept."""
        try:
            yield
        except Exception as error:
            fault = self.fault(error, Statement(sql, lambda statement: None))
            if fault is None or fault.error is error:
                raise
            raise fault.error from error

    def noting(self) -> AbstractContextManager[list[str]]:
        return self.running.noting()

    def traffic(self, statements: Sequence[str]) -> Traffic | None:
        return None

    def cancel(self) -> None:
        """Stop the statement that runs now, and send none any more: ``StatementCancelled``."""
        self.running.cancel()

    def close(self) -> None:
        """Release the session on the server. Nothing is raised where the server is gone already."""
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


def _opened(settings: ConnectSettings, running: RunningStatement) -> Any:
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    from dbt_arctic.engine.connect_channel import channel_builder

    class UntilCancelled(DefaultPolicy):
        """Whoever has cancelled does not wait for a server that may come back."""

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
        # The first answer also tells the client which server it talks to: from here on Spark refuses to
        # repeat a statement on a server that was restarted in between.
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
            fix="Start the server with that extension and with Iceberg's Spark runtime jar.",
        )
    return session


def _release(session: Any) -> None:
    """End a session on the server and close its channel. One short try: the server may be gone."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    session.client.set_retry_policies([DefaultPolicy(max_retries=1)])
    session.stop()
    _forget(session)


def _let_go(session: Any) -> None:
    """Close the channel of a session that is lost."""
    session.client.close()
    _forget(session)


def _forget(session: Any) -> None:
    # It would be closed once more when it is collected, in whatever thread that happens.
    session.client.close = _nothing
    _open_sessions.discard(session)


def _nothing() -> None:
    return None


@functools.cache
def _close_at_exit() -> None:
    # A channel that is still open when the interpreter has ended its threads blocks the exit for good.
    atexit.register(_release_all)


def _release_all() -> None:
    for session in list(_open_sessions):
        _release(session)


def _retries(timeout_s: float) -> int:
    """How often a server is asked again so that all waits together take about a time; at least once."""
    wait, waited, retries = _FIRST_WAIT_S, 0.0, 0
    while waited < timeout_s:
        waited += wait
        wait = min(_LONGEST_WAIT_S, wait * _WAIT_GROWS_BY)
        retries += 1
    return max(1, retries)
