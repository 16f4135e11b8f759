"""One statement that is sent to Spark.

Its kind, whether it was cancelled, and how often it may be retried.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dbt_arctic.engine.faults import Reaction, shortened
from dbt_arctic.engine.lexer import first_word, without_inner_ends, without_leading_comments
from dbt_arctic.errors import StatementCancelled

CONFLICT_ATTEMPTS = 8
LOCKED_ATTEMPTS = 2
LOST_ATTEMPTS = 2

# These may have committed a part of their work before they fail, so they are never repeated.
_NOT_REPEATABLE = {"BEGIN", "CALL", "EXECUTE", "FROM"}


# Iceberg recognises its own statements after a comment, but not if the comment contains `--`.
_OF_ICEBERG = {"ALTER", "CALL"}


class Statement:
    """The text and id of a statement. The id is the job group or tag of Spark's jobs.

    :param stop: stops everything that Spark runs under an id; may be called from any thread.
    """

    def __init__(self, sql: str, stop: Callable[[Statement], None]) -> None:
        self.id = f"dbt-arctic-{uuid.uuid4()}"
        self.sql = sql
        self.verb = first_word(sql)
        self.cancelled = threading.Event()
        self.ended = threading.Event()
        self._stop = stop

    @property
    def text(self) -> str:
        """The text that is sent to Spark."""
        sql = without_leading_comments(self.sql) if self.verb in _OF_ICEBERG else self.sql
        return without_inner_ends(sql)

    def cancel(self) -> None:
        """Cancel the statement."""
        self.cancelled.set()
        self._stop(self)

    def attempts(self, reaction: Reaction) -> int:
        """The maximum number of attempts after a kind of failure."""
        if self.verb in _NOT_REPEATABLE:
            return 1
        return {
            Reaction.RAISE: 1,
            Reaction.RETRY: CONFLICT_ATTEMPTS,
            Reaction.RETRY_BRIEFLY: LOCKED_ATTEMPTS,
            Reaction.RETRY_ON_NEW_CONNECTION: LOST_ATTEMPTS,
        }[reaction]


class RunningStatement:
    """The statement that a connection is running. Once the connection is cancelled, it accepts no other."""

    def __init__(self) -> None:
        self._statement: Statement | None = None
        self._noted: list[str] | None = None
        self._cancelled = threading.Event()
        self._changing = threading.Lock()

    @contextmanager
    def noting(self) -> Iterator[list[str]]:
        """Collect the ids of the statements that are started while the context lasts."""
        before, self._noted = self._noted, []
        try:
            yield self._noted
        finally:
            self._noted = before

    @property
    def is_cancelled(self) -> bool:
        """Whether the connection was cancelled."""
        return self._cancelled.is_set()

    def refuse_if_cancelled(self, sql: str) -> None:
        """Refuse a statement on a connection that was cancelled.

        :raises StatementCancelled: the connection was cancelled; nothing may be sent any more.
        """
        if self.is_cancelled:
            raise cancelled_error(sql)

    def begin(self, statement: Statement) -> None:
        """Register a statement, so that a cancel reaches it.

        :raises StatementCancelled: the connection was cancelled before.
        """
        with self._changing:
            self.refuse_if_cancelled(statement.sql)
            self._statement = statement
        if self._noted is not None:
            self._noted.append(statement.id)

    def end(self) -> None:
        """Forget the finished statement."""
        statement, self._statement = self._statement, None
        if statement is not None:
            statement.ended.set()

    def cancel(self) -> None:
        """Stop the statement and refuse later ones; each fails with ``StatementCancelled``."""
        with self._changing:
            self._cancelled.set()
            statement = self._statement
        if statement is not None:
            statement.cancel()


def cancelled_error(sql: str) -> StatementCancelled:
    """The error for a cancelled statement."""
    return StatementCancelled("The statement was cancelled.", where=shortened(sql))
