"""The cursor of a session on a Spark Thrift server.

The protocol does not report the element types of nested types, so the columns of a query are requested
first.
"""

from __future__ import annotations

import re
from typing import Protocol

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.engine.lexer import without_comments
from dbt_arctic.engine.server_cursor import CursorConnection, ServerCursor, stop_repeatedly
from dbt_arctic.engine.statement import Statement
from dbt_arctic.engine.thrift_client import Result, ThriftClient
from dbt_arctic.engine.thrift_values import converter, has_instants, readable, value_type

_DESCRIBED = {"SELECT", "WITH", "VALUES", "FROM", "TABLE"}
_INSERTS = re.compile(r"\bINSERT\b", re.IGNORECASE)


class _Connection(CursorConnection, Protocol):
    """The part of the connection that the cursor needs."""

    @property
    def client(self) -> ThriftClient: ...


class ThriftCursor(ServerCursor[_Connection]):
    """See ``dbt_arctic.engine.api.Cursor``."""

    def _prepared(self, sql: str) -> Statement:
        client = self._connection.client
        return Statement(sql, lambda statement: stop_repeatedly(statement, client.cancel))

    def _run(self, statement: Statement) -> None:
        client = self._connection.client
        self._remember_state(statement)
        types = described(client, statement) if _is_query(statement) else None
        if statement.cancelled.is_set():
            raise InterruptedError("cancelled between two calls")
        text = statement.text if types is None else _read_as_json(statement.text, types)
        result = client.run(text)
        if result.names:
            self._keep(result, types)

    def _keep(self, result: Result, types: list[ColumnInfo] | None) -> None:
        returned = (ColumnInfo(*column) for column in zip(result.names, result.types, strict=True))
        columns = list(returned) if types is None else types
        self._description = [(name, type_, None, None, None, None, None) for name, type_ in columns]
        parsed = [value_type(type_) for _, type_ in columns]
        zone = "UTC"
        if any(map(has_instants, parsed)):
            zone = str(self._connection.client.run("SET spark.sql.session.timeZone").rows[0][1])
        converters = [converter(one, zone) for one in parsed]
        self._rows = [
            tuple(convert(value) for convert, value in zip(converters, row, strict=True))
            for row in result.rows
        ]
        self._known_rows = len(self._rows)


def described(client: ThriftClient, statement: Statement) -> list[ColumnInfo]:
    """The columns of a query, by analysis only."""
    return [ColumnInfo(row[0], row[1]) for row in client.run(f"DESCRIBE QUERY {statement.text}").rows]


def _is_query(statement: Statement) -> bool:
    """Whether the text is a query. ``FROM t INSERT ..`` and ``WITH .. INSERT ..`` are writes."""
    if statement.verb not in _DESCRIBED and not statement.text.lstrip().startswith("("):
        return False
    return statement.verb not in ("WITH", "FROM") or not _INSERTS.search(without_comments(statement.sql))


def _read_as_json(sql: str, columns: list[ColumnInfo]) -> str:
    """The query, with nested values as JSON."""
    types = [value_type(type_) for _, type_ in columns]
    names = [f"c{number}" for number in range(len(types))]
    expressions = readable(types, names)
    if expressions is None:
        return sql
    listed = ", ".join(f"{expression} AS {name}" for expression, name in zip(expressions, names, strict=True))
    return f"SELECT {listed} FROM (\n{sql}\n) AS q({', '.join(names)})"
