"""One statement on its way to Spark: what it is, whether it was cancelled, how often it may be tried."""

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

# These may have committed a part of what they do before they fail, so they are never run a second time.
_NOT_REPEATABLE = {"BEGIN", "CALL", "EXECUTE", "FROM"}


# Iceberg looks for its own statements behind a comment, and does not find them behind one that holds `--`.
_OF_ICEBERG = {"ALTER", "CALL"}


class Statement:
    """A statement's text and id. Spark's jobs carry the id as their job group or tag.

    :param stop: stops what Spark runs under an id; called from any thread.
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
        """What Spark is sent."""
        sql = without_leading_comments(self.sql) if self.verb in _OF_ICEBERG else self.sql
        return without_inner_ends(sql)

    def cancel(self) -> None:
        self.cancelled.set()
        self._stop(self)

    def attempts(self, reaction: Reaction) -> int:
        """How often the statement may be tried in all, after a failure of a kind."""
        if self.verb in _NOT_REPEATABLE:
            return 1
        return {
            Reaction.RAISE: 1,
            Reaction.RETRY: CONFLICT_ATTEMPTS,
            Reaction.RETRY_BRIEFLY: LOCKED_ATTEMPTS,
            Reaction.RETRY_ANEW: LOST_ATTEMPTS,
        }[reaction]


class RunningStatement:
    """The statement that a connection runs now. Once the connection is cancelled, there is no other."""

    def __init__(self) -> None:
        self._statement: Statement | None = None
        self._noted: list[str] | None = None
        self._cancelled = threading.Event()
        self._changing = threading.Lock()

    @contextmanager
    def noting(self) -> Iterator[list[str]]:
        """The ids of the statements that are begun while the context lasts."""
        before, self._noted = self._noted, []
        try:
            yield self._noted
        finally:
            self._noted = before

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def refuse_if_cancelled(self, sql: str) -> None:
        """Refuse a statement on a connection that was cancelled.

        :raises StatementCancelled: the connection was cancelled; nothing is to be sent any more.
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
        statement, self._statement = self._statement, None
        if statement is not None:
            statement.ended.set()

    def cancel(self) -> None:
        """Stop it, and refuse all later ones; each fails with ``StatementCancelled``."""
        with self._changing:
            self._cancelled.set()
            statement = self._statement
        if statement is not None:
            statement.cancel()


def cancelled_error(sql: str) -> StatementCancelled:
    return StatementCancelled("The statement was cancelled.", where=shortened(sql))
