"""The cursor of a Spark Connect session: one call for a command, two for a query.

The result of a command is in its first response; pyspark's ``collect`` and ``schema`` would request it again
with one call each.
"""

from __future__ import annotations

from typing import Any, Protocol

from dbt_arctic.engine.connect_faults import is_lost
from dbt_arctic.engine.cursor import described
from dbt_arctic.engine.rows import plain_rows
from dbt_arctic.engine.server_cursor import CursorConnection, ServerCursor, stop_repeatedly
from dbt_arctic.engine.statement import Statement
from dbt_arctic.engine.type_text import types_in
from dbt_arctic.engine.unsupported_types import OUT_OF_RANGE, cast_unsupported, is_supported


class _Connection(CursorConnection, Protocol):
    """The part of the connection that the cursor needs."""

    @property
    def session(self) -> Any: ...


class ConnectCursor(ServerCursor[_Connection]):
    """See ``dbt_arctic.engine.api.Cursor``."""

    def _prepared(self, sql: str) -> Statement:
        session = self._connection.session

        def stop(statement: Statement) -> bool:
            try:
                return bool(session.interruptTag(statement.id))
            except Exception as error:
                if is_lost(error):  # the statement is lost as well and raises its own error
                    return True
                raise

        return Statement(sql, lambda statement: stop_repeatedly(statement, lambda: stop(statement)))

    def _run(self, statement: Statement) -> None:
        session = self._connection.session
        session.addTag(statement.id)
        try:
            self._remember_state(statement)
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
