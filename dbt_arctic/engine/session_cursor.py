"""The cursor of a Spark in this process.

Each statement is a job group, and row counts come from the executed plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from dbt_arctic.engine.branch_commits import run_on_branch
from dbt_arctic.engine.cursor import SparkCursor, described
from dbt_arctic.engine.faults import Fault, shortened
from dbt_arctic.engine.lexer import without_comments
from dbt_arctic.engine.purge import purge
from dbt_arctic.engine.rowcount import written_rows
from dbt_arctic.engine.rows import plain_rows
from dbt_arctic.engine.statement import RunningStatement, Statement
from dbt_arctic.engine.translate import fault_of
from dbt_arctic.engine.unsupported_types import OUT_OF_RANGE, cast_unsupported

if TYPE_CHECKING:
    from dbt_arctic.engine.jvm import SparkProcess


class _Connection(Protocol):
    """The part of the connection that the cursor needs."""

    @property
    def running(self) -> RunningStatement: ...

    @property
    def process(self) -> SparkProcess: ...

    @property
    def session(self) -> Any: ...


class SessionCursor(SparkCursor):
    """See ``dbt_arctic.engine.api.Cursor``."""

    def __init__(self, connection: _Connection) -> None:
        super().__init__(connection.running)
        self._connection = connection
        self._process: SparkProcess | None = None
        self._counted = ""
        self._jobs: int | None = None

    @property
    def job_count(self) -> int | None:
        """Spark jobs of all attempts of the last statement.

        Requests the number from Spark when it is read first.
        """
        if self._statement is None or self._process is None:
            return 0
        if self._counted != self._statement.id:
            self._counted, self._jobs = self._statement.id, self._process.job_count(self._statement.id)
        return self._jobs

    def _prepared(self, sql: str) -> Statement:
        process = self._process = self._connection.process
        return Statement(sql, lambda statement: process.cancel_jobs(statement.id))

    def _run(self, statement: Statement) -> None:
        process = self._process = self._connection.process
        context = process.context
        context.setJobGroup(statement.id, shortened(without_comments(statement.sql), 120), True)
        try:
            self._run_in_group(statement)
        finally:
            if process.is_alive():
                context.setLocalProperty("spark.jobGroup.id", None)
                context.setLocalProperty("spark.job.description", None)

    def _run_in_group(self, statement: Statement) -> None:
        session = self._connection.session
        if purge(session, statement) or run_on_branch(session, statement):
            return
        frame = session.sql(statement.text)
        executed = frame._jdf.queryExecution().commandExecuted()
        is_command = executed.getClass().getSimpleName() == "CommandResult"
        if frame.schema.fields:
            # For a command, this only fetches the existing result, without a job.
            time_zone = session.conf.get("spark.sql.session.timeZone")
            self._rows = _collected(frame if is_command else cast_unsupported(frame), time_zone, is_command)
            self._description = described(frame.schema)
            self._known_rows = len(self._rows)
        elif is_command:
            self._known_rows = written_rows(executed.commandPhysicalPlan(), statement.verb)

    def _fault(self, error: Exception, statement: Statement) -> Fault | None:
        assert self._process is not None
        return fault_of(error, statement.sql, self._process)


def _collected(frame: Any, time_zone: str, is_command: bool) -> list[tuple[Any, ...]]:
    try:
        return plain_rows(frame.collect(), frame.schema, time_zone)
    except OUT_OF_RANGE:
        if is_command:
            raise
    late = cast_unsupported(frame, times_as_text=True)
    return plain_rows(late.collect(), late.schema, time_zone)
