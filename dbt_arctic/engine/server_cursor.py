"""The part that cursors of sessions on a server share: state that the session holds, and cancelling.

Row counts of writes and Spark's job numbers are not available on a server.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from dbt_arctic.engine.cursor import SparkCursor
from dbt_arctic.engine.faults import Fault
from dbt_arctic.engine.lexer import without_comments
from dbt_arctic.engine.statement import RunningStatement, Statement

CANCEL_TRIES = 40
CANCEL_PAUSE_S = 0.05

_STATEFUL = {"SET", "RESET", "USE", "DECLARE", "CACHE", "UNCACHE", "CLEAR", "ADD"}
_TEMPORARY = re.compile(r"\s*CREATE\s+(OR\s+REPLACE\s+)?(GLOBAL\s+)?TEMP", re.IGNORECASE)


class CursorConnection(Protocol):
    """The part of a connection that each of these cursors needs."""

    @property
    def running(self) -> RunningStatement:
        """The statement that runs."""

    def remember_state(self) -> None:
        """Record that the session holds state that a new one would lack."""

    def fault(self, error: Exception, statement: Statement) -> Fault | None:
        """Classify an error, and discard the session if it is lost."""


C = TypeVar("C", bound=CursorConnection)


class ServerCursor(SparkCursor, Generic[C]):
    """Base of cursors of a session on a server."""

    def __init__(self, connection: C) -> None:
        super().__init__(connection.running)
        self._connection = connection

    @property
    def job_count(self) -> int | None:
        return None

    def _remember_state(self, statement: Statement) -> None:
        """Record that later statements may depend on what the statement leaves in the session."""
        if statement.verb in _STATEFUL or _TEMPORARY.match(without_comments(statement.sql)):
            self._connection.remember_state()

    def _fault(self, error: Exception, statement: Statement) -> Fault | None:
        return self._connection.fault(error, statement)


def stop_repeatedly(statement: Statement, stop: Callable[[], object]) -> None:
    """Stop a statement on the server, again until the server has found it or the statement has ended.

    Between two calls of one statement, the server knows of nothing to stop.

    :param stop: returns whether there was something to stop.
    """
    for _ in range(CANCEL_TRIES):
        if stop() or statement.ended.wait(CANCEL_PAUSE_S):
            return
