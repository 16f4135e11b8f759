"""Our own cursor: a statement runs to its end, its errors surface, a lost race for a commit is run again."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from dbt_arctic.engine.faults import Fault, Reaction, shortened
from dbt_arctic.engine.lexer import first_word, without_comments
from dbt_arctic.engine.literals import bind
from dbt_arctic.engine.rowcount import UNKNOWN, written_rows
from dbt_arctic.engine.rows import plain_rows
from dbt_arctic.engine.translate import fault_of
from dbt_arctic.errors import StatementCancelled

if TYPE_CHECKING:
    from dbt_arctic.engine.jvm import SparkProcess
    from dbt_arctic.engine.session import SessionConnection

CONFLICT_ATTEMPTS = 8
LOCKED_ATTEMPTS = 2
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0

# These may have committed a part of what they do before they fail, so they are never run a second time.
_NOT_REPEATABLE = {"BEGIN", "CALL", "EXECUTE", "FROM"}


class Statement:
    """One statement on its way: its id, which is Spark's job group, and whether someone has cancelled it."""

    def __init__(self, sql: str, process: SparkProcess) -> None:
        self.id = f"dbt-arctic-{uuid.uuid4()}"
        self.sql = sql
        self.verb = first_word(sql)
        self.process = process
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()
        self.process.cancel_jobs(self.id)

    def attempts(self, reaction: Reaction) -> int:
        """How often the statement may be tried in all, after a failure of a kind."""
        if self.verb in _NOT_REPEATABLE or reaction is Reaction.RAISE:
            return 1
        return CONFLICT_ATTEMPTS if reaction is Reaction.RETRY else LOCKED_ATTEMPTS


class SessionCursor:
    """See ``dbt_arctic.engine.api.Cursor``."""

    arraysize = 1

    def __init__(self, connection: SessionConnection) -> None:
        self._connection = connection
        self._statement: Statement | None = None
        self._reset()

    def _reset(self) -> None:
        self._description: list[tuple[Any, ...]] | None = None
        self._rows: list[tuple[Any, ...]] = []
        self._next = 0
        self._rowcount = UNKNOWN

    def __enter__(self) -> SessionCursor:
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
    def job_count(self) -> int:
        """Spark jobs of the last statement, all its attempts together. Asks Spark when it is read."""
        if self._statement is None:
            return 0
        return self._statement.process.job_count(self._statement.id)

    @property
    def statement_id(self) -> str:
        return self._statement.id if self._statement else ""

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run one statement to its end.

        A commit that another writer won is tried again, up to ``CONFLICT_ATTEMPTS`` times; a locked catalog
        file ``LOCKED_ATTEMPTS`` times, each as long as SQLite waits. Raises an ``ArcticError``.
        """
        self._reset()
        text = bind(sql, bindings)
        statement = self._statement = Statement(text, self._connection.process)
        self._connection.begin(statement)
        try:
            attempt = 1
            while (fault := self._attempt(statement)) is not None:
                if attempt >= statement.attempts(fault.reaction):
                    raise fault.error
                # Full jitter: writers that collided once should not meet again.
                longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)
                if statement.cancelled.wait(random.uniform(FIRST_PAUSE_S / 2, longest)):
                    raise _cancelled(text) from fault.error
                attempt += 1
        finally:
            self._connection.end()

    def _attempt(self, statement: Statement) -> Fault | None:
        """Run the statement once; keep its result, or return why it failed."""
        context = statement.process.context
        try:
            context.setJobGroup(statement.id, shortened(without_comments(statement.sql), 120), True)
            try:
                self._run(statement)
            finally:
                if statement.process.is_alive():
                    context.setLocalProperty("spark.jobGroup.id", None)
                    context.setLocalProperty("spark.job.description", None)
        except Exception as error:
            if statement.cancelled.is_set():
                raise _cancelled(statement.sql) from error
            fault = fault_of(error, statement.sql, statement.process)
            if fault is None or fault.error is error:
                raise
            fault.error.__cause__ = error
            return fault
        return None

    def _run(self, statement: Statement) -> None:
        session = self._connection.session
        frame = session.sql(statement.sql)
        executed = frame._jdf.queryExecution().commandExecuted()
        is_command = executed.getClass().getSimpleName() == "CommandResult"
        fields = frame.schema.fields
        if fields:
            # Of a command this only fetches what it has returned already: no job.
            time_zone = session.conf.get("spark.sql.session.timeZone")
            self._rows = plain_rows(frame.collect(), frame.schema, time_zone)
            self._description = [
                (field.name, field.dataType.simpleString(), None, None, None, None, field.nullable)
                for field in fields
            ]
            self._rowcount = len(self._rows)
        if is_command and not fields:
            self._rowcount = written_rows(executed.commandPhysicalPlan(), statement.verb)

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


def _cancelled(sql: str) -> StatementCancelled:
    return StatementCancelled("The statement was cancelled.", where=shortened(sql))
