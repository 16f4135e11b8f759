"""The base of all cursors: errors are raised, commit conflicts are retried, results are stored.

How a statement reaches Spark is implemented in ``session_cursor``, ``connect_cursor`` and ``thrift_cursor``.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from dbt_arctic.engine.faults import Fault
from dbt_arctic.engine.literals import bind
from dbt_arctic.engine.statement import RunningStatement, Statement, cancelled_error
from dbt_arctic.engine.type_text import type_text
from dbt_arctic.errors import CommitStateUnknown

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0


class SparkCursor(ABC):
    """See ``dbt_arctic.engine.api.Cursor``."""

    arraysize = 1

    def __init__(self, running: RunningStatement) -> None:
        self._running = running
        self._statement: Statement | None = None
        self._reset()

    def _reset(self) -> None:
        self._description: list[tuple[Any, ...]] | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._next = 0
        self._known_rows: int | None = None

    def __enter__(self) -> SparkCursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        return self._description

    @property
    def known_rows(self) -> int | None:
        """Rows returned by a query, or written by a write (see ``rowcount.py``); ``None`` if unknown."""
        return self._known_rows

    @property
    def rowcount(self) -> int:
        """The same for users of DB-API, where -1 stands for an unknown number (PEP 249)."""
        return -1 if self._known_rows is None else self._known_rows

    @property
    @abstractmethod
    def job_count(self) -> int | None:
        """Spark jobs of all attempts of the last statement; ``None`` if Spark does not report it."""

    @property
    def statement_id(self) -> str:
        return self._statement.id if self._statement else ""

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run one statement to completion.

        A commit conflict is retried, a locked catalog file briefly, and a query whose connection was lost
        once on a new one (``statement.py`` has the numbers). Raises an ``ArcticError``. Once the connection
        is cancelled, always raises ``StatementCancelled`` and sends nothing.
        """
        self._reset()
        text = bind(sql, bindings)
        self._running.refuse_if_cancelled(text)
        statement = self._statement = self._prepared(text)
        self._running.begin(statement)
        try:
            attempt = 1
            while (fault := self._attempt(statement)) is not None:
                if attempt >= statement.attempts(fault.reaction):
                    raise fault.error
                # Full jitter, so that writers that collided once do not collide again.
                longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
                if statement.cancelled.wait(random.uniform(FIRST_PAUSE_S / 2, longest)):
                    raise cancelled_error(text) from fault.error
                attempt += 1
        except (KeyboardInterrupt, SystemExit):
            # No caller waits for it any more, but a server would run it to completion.
            with suppress(Exception):  # the interruption must be raised, even if Spark is gone
                statement.cancel()
            raise
        finally:
            self._running.end()

    def _attempt(self, statement: Statement) -> Fault | None:
        """Run the statement once. Stores its result, or returns why it failed."""
        if statement.cancelled.is_set():
            raise cancelled_error(statement.sql)
        try:
            self._run(statement)
        except Exception as error:
            fault = self._fault(error, statement)
            if statement.cancelled.is_set() and not _may_have_landed(fault):
                raise cancelled_error(statement.sql) from error
            if fault is None or fault.error is error:
                raise
            fault.error.__cause__ = error
            return fault
        return None

    @abstractmethod
    def _prepared(self, sql: str) -> Statement:
        """The statement, ready to be cancelled. Starts the session if necessary."""

    @abstractmethod
    def _run(self, statement: Statement) -> None:
        """Send the statement, wait for its completion, and store its result."""

    @abstractmethod
    def _fault(self, error: Exception, statement: Statement) -> Fault | None:
        """The error for an exception; ``None`` if it does not come from Spark and indicates a bug."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(len(self._rows) - self._next)

    def fetchone(self) -> tuple[Any, ...] | None:
        rows = self.fetchmany(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        start, self._next = self._next, self._next + (self.arraysize if size is None else size)
        return self._rows[start : self._next]

    def close(self) -> None:
        self._rows = []
        self._next = 0


def described(schema: Any) -> list[tuple[Any, ...]]:
    """The DB-API description of a pyspark schema."""
    return [
        (field.name, type_text(field.dataType), None, None, None, None, field.nullable)
        for field in schema.fields
    ]


def _may_have_landed(fault: Fault | None) -> bool:
    return fault is not None and isinstance(fault.error, CommitStateUnknown)
