"""``method: session``: a Spark inside this process, one session of its own for each connection."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dbt_arctic.engine import jvm
from dbt_arctic.engine.api import ColumnInfo, Traffic
from dbt_arctic.engine.lexer import without_inner_ends
from dbt_arctic.engine.session_cursor import SessionCursor
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.engine.statement import RunningStatement
from dbt_arctic.engine.temp_view import create_temp_view
from dbt_arctic.engine.translate import translated
from dbt_arctic.engine.type_text import type_text

_OPENING = "open a session"


class SessionEngine:
    """Connections to the Spark of this process. Making an engine or a connection starts nothing."""

    def __init__(self, settings: SparkSettings) -> None:
        self.settings = settings

    def connect(self) -> SessionConnection:
        return SessionConnection(self.settings)

    def close(self) -> None:
        """Let go of the engine. Spark itself stays for other engines and ends with the process.

        ``dbt_arctic.engine.jvm.stop()`` ends it earlier.
        """


class SessionConnection:
    """One Spark session. One statement at a time; ``cancel`` may be called from any thread."""

    def __init__(self, settings: SparkSettings) -> None:
        self.settings = settings
        self._process: jvm.SparkProcess | None = None
        self._session: Any = None
        self.running = _Running(self)
        self._opening = threading.Lock()

    @property
    def session(self) -> Any:
        """The pyspark session; the first use starts Spark, and one use after Spark died starts another.

        Raises ``StatementCancelled`` where the connection was cancelled, also while Spark started.
        """
        with self._opening:
            self.running.refuse_if_cancelled(_OPENING)
            if self._session is None:
                self._process = jvm.running(self.settings)
                self.running.refuse_if_cancelled(_OPENING)
                with translated("", self._process):
                    self._session = self._process.new_session(self.settings)
            return self._session

    @property
    def process(self) -> jvm.SparkProcess:
        """The Spark that the session runs in."""
        assert self.session is not None
        assert self._process is not None
        return self._process

    @property
    def is_open(self) -> bool:
        """Whether a session exists already that statements may be sent to."""
        return self._session is not None and not self.running.is_cancelled

    def remember_state(self) -> None:
        """Nothing to remember: the session lives as long as its Spark, and no statement is run on another."""

    def cursor(self) -> SessionCursor:
        return SessionCursor(self)

    def query_schema(self, sql: str) -> list[ColumnInfo]:
        """The columns a query would return: parsed and analysed, never run, not even a command."""
        from pyspark.sql.types import StructType

        session = self.session
        process = self.process
        text = without_inner_ends(sql)
        with translated(sql, process), _active(session, process):
            state = session._jsparkSession.sessionState()
            execution = state.executePlan(state.sqlParser().parsePlan(text), process.skip_commands)
            execution.assertAnalyzed()
            schema = StructType.fromJson(json.loads(execution.analyzed().schema().json()))
        return [ColumnInfo(field.name, type_text(field.dataType)) for field in schema.fields]

    def create_temp_view(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """A temporary view over literal rows, every column a string (or NULL)."""
        session = self.session
        with translated(f"temporary view {name}", self.process):
            create_temp_view(session, name, columns, rows)

    def noting(self) -> AbstractContextManager[list[str]]:
        return self.running.noting()

    def traffic(self, statements: Sequence[str]) -> Traffic | None:
        return self._process.traffic(statements) if self._process is not None else None

    def cancel(self) -> None:
        """Stop the statement that runs now, and send none any more: ``StatementCancelled``."""
        self.running.cancel()

    def release(self) -> None:
        """Let a session go whose Spark died: the next use starts anew."""
        if self._process is not None and not self._process.is_alive():
            self._session = self._process = None

    def close(self) -> None:
        """Let go of the session and of the connections that its catalog has opened."""
        session, process = self._session, self._process
        self._session = self._process = None
        if session is None or process is None or not process.is_alive():
            return
        with translated("", process):
            process.close_catalog(session, self.settings.catalog)


@contextmanager
def _active(session: Any, process: jvm.SparkProcess) -> Iterator[None]:
    """Make a session the one of this thread: a parser takes its settings from there, and else Spark's own."""
    sessions = process.session_class
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


class _Running(RunningStatement):
    """After each statement, a session of a Spark that died is let go."""

    def __init__(self, connection: SessionConnection) -> None:
        super().__init__()
        self._connection = connection

    def end(self) -> None:
        super().end()
        self._connection.release()
