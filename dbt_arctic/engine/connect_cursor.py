"""The cursor of a Spark Connect session: one call for a command, two for a query.

The result of a command is in its first response; pyspark's ``collect`` and ``schema`` would request it again
with one call each. Row counts of writes and Spark's job numbers are not available over Connect.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from dbt_arctic.engine.connect_faults import is_lost
from dbt_arctic.engine.cursor import SparkCursor, described
from dbt_arctic.engine.faults import Fault
from dbt_arctic.engine.lexer import without_comments
from dbt_arctic.engine.rows import plain_rows
from dbt_arctic.engine.statement import RunningStatement, Statement
from dbt_arctic.engine.type_text import types_in
from dbt_arctic.engine.unsupported_types import OUT_OF_RANGE, cast_unsupported, is_supported


class _Connection(Protocol):
    """The part of the connection that the cursor needs."""

    @property
    def running(self) -> RunningStatement: ...

    @property
    def session(self) -> Any: ...

    def remember_state(self) -> None: ...

    def fault(self, error: Exception, statement: Statement) -> Fault | None: ...


CANCEL_TRIES = 40
CANCEL_PAUSE_S = 0.05

# Statements that leave state in the session on which later statements may depend.
_TEMPORARY = re.compile(r"\s*CREATE\s+(OR\s+REPLACE\s+)?(GLOBAL\s+)?TEMP", re.IGNORECASE)
_STATEFUL = {"SET", "RESET", "USE", "DECLARE", "CACHE", "UNCACHE", "CLEAR", "ADD"}


class ConnectCursor(SparkCursor):
    """See ``dbt_arctic.engine.api.Cursor``."""

    def __init__(self, connection: _Connection) -> None:
        super().__init__(connection.running)
        self._connection = connection

    @property
    def job_count(self) -> int | None:
        return None

    def _prepared(self, sql: str) -> Statement:
        session = self._connection.session

        def stop(statement: Statement) -> None:
            # Between two calls of one statement, the server knows of nothing to interrupt.
            for _ in range(CANCEL_TRIES):
                try:
                    if session.interruptTag(statement.id) or statement.ended.wait(CANCEL_PAUSE_S):
                        return
                except Exception as error:
                    if is_lost(error):  # the statement is lost as well and raises its own error
                        return
                    raise

        return Statement(sql, stop)

    def _run(self, statement: Statement) -> None:
        session = self._connection.session
        session.addTag(statement.id)
        try:
            if statement.verb in _STATEFUL or _TEMPORARY.match(without_comments(statement.sql)):
                self._connection.remember_state()
            frame = session.sql(statement.text)
            if not statement.cancelled.is_set():
                self._keep(session, frame)
            else:
                raise InterruptedError("cancelled between two calls")
        finally:
            session.removeTag(statement.id)

    def _keep(self, session: Any, frame: Any) -> None:
        from pyspark.errors import PySparkNotImplementedError

        returned = _returned(session, frame)
        try:
            read = _read(session, *(frame._to_table() if returned is None else (returned, None)))
            if read is not None and returned is None and not is_supported(read[0]):
                raise TypeError("values of these types are read as text")
        except (*OUT_OF_RANGE, TypeError, PySparkNotImplementedError):
            if returned is not None:
                raise
            as_text = _read(session, *cast_unsupported(frame, times_as_text=True)._to_table())
            assert as_text is not None
            read = frame.schema, as_text[1]
        if read is None:
            return
        schema, self._rows = read
        self._description = described(schema)
        self._known_rows = len(self._rows)

    def _fault(self, error: Exception, statement: Statement) -> Fault | None:
        return self._connection.fault(error, statement)


def _read(session: Any, table: Any, schema: Any) -> tuple[Any, list[tuple[Any, ...]]] | None:
    """The schema and rows of an Arrow table; ``None`` if it has no columns."""
    from pyspark.sql.conversion import ArrowTableToRowsConversion
    from pyspark.sql.pandas.types import from_arrow_schema

    if schema is None:
        schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    if not schema.fields:
        return None
    rows = ArrowTableToRowsConversion.convert(table, schema, binary_as_bytes=True)
    has_instants = any(one.typeName() == "timestamp" for one in types_in(schema))
    time_zone = session.conf.get("spark.sql.session.timeZone") if has_instants else "UTC"
    return schema, plain_rows(rows, schema, time_zone)


def _returned(session: Any, frame: Any) -> Any:
    """The Arrow table in the response to a command; ``None`` for a query, which has not run yet."""
    import pyarrow as pa

    relation = frame._plan.to_proto(session.client).root
    if relation.WhichOneof("rel_type") != "local_relation":
        return None
    return pa.ipc.open_stream(relation.local_relation.data).read_all()
