"""``method: session``: a Spark inside this process, with a separate session for each connection."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dbt_arctic.engine import jvm
from dbt_arctic.engine.active_session import active_session
from dbt_arctic.engine.api import ColumnInfo, FileRead, SourceRead, Traffic
from dbt_arctic.engine.file_view import create_file_view, file_columns
from dbt_arctic.engine.launch import spark_defaults
from dbt_arctic.engine.lexer import without_inner_ends
from dbt_arctic.engine.session_cursor import SessionCursor
from dbt_arctic.engine.settings import SparkSettings, session_conf
from dbt_arctic.engine.source_view import create_source_view, with_reader
from dbt_arctic.engine.statement import RunningStatement
from dbt_arctic.engine.temp_view import create_temp_view
from dbt_arctic.engine.translate import translated
from dbt_arctic.engine.type_text import type_text

_OPENING = "open a session"
_END = "\x00"


class SessionEngine:
    """Connections to the Spark of this process. Creating an engine or a connection starts nothing."""

    def __init__(self, settings: SparkSettings) -> None:
        self.settings = settings
        self._new_conf: dict[str, str] = {}

    def connect(self) -> SessionConnection:
        """Create a connection."""
        return SessionConnection(self.settings, self._new_conf)

    def close(self) -> None:
        """Release the engine. Spark keeps running for other engines and ends with the process.

        ``dbt_arctic.engine.jvm.stop()`` ends it earlier.
        """


class SessionConnection:
    """One Spark session. It runs one statement at a time; ``cancel`` may be called from any thread."""

    def __init__(self, settings: SparkSettings, new_conf: dict[str, str]) -> None:
        """Create a connection.

        :param new_conf: the conf of a new session, as soon as one connection of the engine has opened one.
        """
        self.settings = settings
        self._new_conf = new_conf
        self._process: jvm.SparkProcess | None = None
        self._session: Any = None
        self.running = _Running(self)
        self._opening = threading.Lock()

    @property
    def session(self) -> Any:
        """The pyspark session. The first access starts Spark, and one after Spark died starts a new one.

        Raises ``StatementCancelled`` if the connection was cancelled, even while Spark was starting.
        """
        with self._opening:
            self.running.refuse_if_cancelled(_OPENING)
            if self._session is None:
                self._process = jvm.started_spark(self.settings)
                self.running.refuse_if_cancelled(_OPENING)
                with translated("", self._process):
                    session = self._process.new_session(self.settings)
                    if not self._new_conf:
                        self._new_conf.update(_conf_of(session))
                self._session = session
            return self._session

    @property
    def process(self) -> jvm.SparkProcess:
        """The Spark of the session."""
        assert self.session is not None
        assert self._process is not None
        return self._process

    @property
    def is_open(self) -> bool:
        """Whether a session exists to which statements can be sent."""
        return self._session is not None and not self.running.is_cancelled

    def remember_state(self) -> None:
        """Do nothing.

        The session lives as long as its Spark, and no statement is repeated on another one.
        """

    def conf(self, *, start: bool = True) -> Mapping[str, str]:
        if not start and not self.is_open:
            return self._new_conf or {**spark_defaults(), **session_conf(self.settings)}
        session = self.session
        with translated("", self.process):
            return _conf_of(session)

    def cursor(self) -> SessionCursor:
        """Create a cursor."""
        return SessionCursor(self)

    def query_schema(self, sql: str) -> list[ColumnInfo]:
        """The columns that a query would return.

        It is parsed and analysed but not run, not even a command.
        """
        session = self.session
        process = self.process
        # Only now: opening a session imports pyspark under a lock, and two threads that import parts of it
        # at the same time fail.
        from pyspark.sql.types import StructType

        text = without_inner_ends(sql)
        with translated(sql, process), active_session(session):
            state = session._jsparkSession.sessionState()
            execution = state.executePlan(state.sqlParser().parsePlan(text), process.skip_commands)
            execution.assertAnalyzed()
            schema = StructType.fromJson(json.loads(execution.analyzed().schema().json()))
        return [ColumnInfo(field.name, type_text(field.dataType)) for field in schema.fields]

    def create_temp_view(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Create a temporary view over literal rows with string columns (or NULL)."""
        session = self.session
        with translated(f"temporary view {name}", self.process):
            create_temp_view(session, name, columns, rows)

    def create_file_view(self, name: str, files: FileRead) -> None:
        session = self.session
        with with_reader(files), translated(f"files of {files.base}", self.process):
            create_file_view(session, name, files)

    def create_source_view(self, name: str, source: SourceRead) -> None:
        session = self.session
        with with_reader(source), translated(f"the source {source.format}", self.process):
            create_source_view(session, name, source)

    def file_columns(self, files: FileRead) -> list[ColumnInfo]:
        session = self.session
        with with_reader(files), translated(f"files of {files.base}", self.process):
            return file_columns(session, files)

    def noting(self) -> AbstractContextManager[list[str]]:
        return self.running.noting()

    def traffic(self, statements: Sequence[str]) -> Traffic | None:
        return self._process.traffic(statements) if self._process is not None else None

    def cancel(self) -> None:
        """Stop the running statement and refuse new ones with ``StatementCancelled``."""
        self.running.cancel()

    def release(self) -> None:
        """Discard a session whose Spark died. The next use starts a new one."""
        if self._process is not None and not self._process.is_alive():
            self._session = self._process = None

    def close(self) -> None:
        """Release the session and the connections that its catalog has opened."""
        session, process = self._session, self._process
        self._session = self._process = None
        if session is None or process is None or not process.is_alive():
            return
        with translated("", process):
            for name in (self.settings.catalog, *(other.name for other in self.settings.others)):
                process.close_catalog(session, name)


class _Running(RunningStatement):
    """Discards a session whose Spark died, after each statement."""

    def __init__(self, connection: SessionConnection) -> None:
        super().__init__()
        self._connection = connection

    def end(self) -> None:
        super().end()
        self._connection.release()


def _conf_of(session: Any) -> dict[str, str]:
    # A request for each entry would take longer than a statement.
    text = session._jsparkSession.conf().getAll().mkString(_END)
    return dict(entry.split(" -> ", 1) for entry in text.split(_END) if entry)
