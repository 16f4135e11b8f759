"""What every cursor of ours does: errors surface, a lost race for a commit is run again, results are kept.

How a statement reaches Spark is left to the two kinds: ``session_cursor`` and ``connect_cursor``.
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
from dbt_arctic.engine.rowcount import UNKNOWN
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
        self._rowcount = UNKNOWN

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
    def rowcount(self) -> int:
        """Rows returned by a query, or written by a write as ``rowcount.py`` lists them; else -1."""
        return self._rowcount

    @property
    @abstractmethod
    def job_count(self) -> int | None:
        """Spark jobs of the last statement, all its attempts together; ``None`` where Spark does not tell."""

    @property
    def statement_id(self) -> str:
        return self._statement.id if self._statement else ""

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run one statement to its end.

        A commit that another writer won is tried again, a locked catalog file briefly, a query whose
        connection was lost once on a new one (``statement.py`` has the numbers). Raises an ``ArcticError``;
        once the connection is cancelled, always ``StatementCancelled``, and nothing is sent.
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
                # Full jitter: writers that collided once should not meet again.
                longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
                if statement.cancelled.wait(random.uniform(FIRST_PAUSE_S / 2, longest)):
                    raise cancelled_error(text) from fault.error
                attempt += 1
        except (KeyboardInterrupt, SystemExit):
            # Nobody waits for it any more, but a server would run it to its end.
            with suppress(Exception):  # the interruption is what matters, also of a Spark that is gone
                statement.cancel()
            raise
        finally:
            self._running.end()

    def _attempt(self, statement: Statement) -> Fault | None:
        """Run the statement once; keep its result, or return why it failed."""
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
        """The statement, ready to be cancelled; whatever it runs on is started."""

    @abstractmethod
    def _run(self, statement: Statement) -> None:
        """Send the statement, wait for its end, keep its result."""

    @abstractmethod
    def _fault(self, error: Exception, statement: Statement) -> Fault | None:
        """What went wrong, ``None`` where the exception is not Spark's but a mistake of ours."""

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
    """A DB-API description of a schema of pyspark."""
    return [
        (field.name, type_text(field.dataType), None, None, None, None, field.nullable)
        for field in schema.fields
    ]


def _may_have_landed(fault: Fault | None) -> bool:
    return fault is not None and isinstance(fault.error, CommitStateUnknown)
