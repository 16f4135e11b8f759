"""Turns the events of the client of MariaDB's log (mysql-replication) into those of ``mariadb_events``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_arctic.databases.api import TableName
from dbt_arctic.databases.mariadb_events import (
    Committed,
    Event,
    Group,
    LoggedRow,
    Prepared,
    RowsChanged,
    Statement,
)
from dbt_arctic.databases.mariadb_values import NOT_A_DATE, LoggedColumn, text_of

_STANDALONE = 1
"""The flag of a transaction that consists of one statement."""
_FIXED, _YEAR, _INSTANTS = 254, 13, (7, 17)
"""Numbers of types: BINARY and CHAR, YEAR, and both forms of TIMESTAMP."""
_UNREADABLE: Mapping[int, str] = {
    **dict.fromkeys(range(165, 170), "compressed events (log_bin_compress)"),
    39: "partial JSON values",
    40: "compressed transactions",
}
_NOT_SENT, _NULL, _EMPTY = "cols bitmap", "null", "empty set"
_KINDS: Mapping[str, Any] = {
    "WriteRowsEvent": "insert",
    "UpdateRowsEvent": "update",
    "DeleteRowsEvent": "delete",
}


def event_of(event: Any, types: Mapping[TableName, Mapping[str, str]]) -> Event | None:
    """An event; ``None`` for one that says nothing about rows.

    :param types: by table and column, the declared type where the log has the same bytes for several.
    """
    kind = type(event).__name__
    if kind in _KINDS:
        return _rows(event, _KINDS[kind], types)
    match kind:
        case "MariadbGtidEvent":
            return Group(bool(event.flags & _STANDALONE))
        case "QueryEvent":
            return Statement(event.query, _text(event.schema))
        case "XidEvent":
            return Committed()
        case "XAPrepareEvent":
            return Committed() if event.one_phase else Prepared()
    return None


def unreadable(event: Any) -> str | None:
    """What an event is that cannot be read and that may have rows."""
    if type(event).__name__ in _KINDS and any(one.name is None for one in event.columns):
        return "rows from before binlog_row_metadata was FULL"
    return _UNREADABLE.get(int(event.event_type or 0))


def at_ms(event: Any) -> int:
    """When an event was written."""
    return int(event.timestamp) * 1000


def _rows(event: Any, kind: Any, types: Mapping[TableName, Mapping[str, str]]) -> RowsChanged:
    table = TableName(event.schema, event.table)
    declared = types.get(table, {})
    columns = {one.name: _column(one, declared.get(one.name, "")) for one in event.columns}
    rows: list[tuple[LoggedRow | None, LoggedRow | None]] = []
    for row in event.rows:
        if kind == "update":
            before = _row(row["before_values"], row["before_none_sources"], columns)
            rows.append((before, _row(row["after_values"], row["after_none_sources"], columns)))
        else:
            values = _row(row["values"], row["none_sources"], columns)
            rows.append((values, None) if kind == "delete" else (None, values))
    return RowsChanged(kind, table, tuple(columns), rows)


def _column(column: Any, declared: str) -> LoggedColumn:
    is_binary = column.type == _FIXED and column.character_set_name == "binary"
    return LoggedColumn(
        column.name,
        length=column.max_length if is_binary else 0,
        digits=getattr(column, "fsp", 0),
        is_instant=column.type in _INSTANTS,
        is_year=column.type == _YEAR,
        is_bits=hasattr(column, "bits"),
        labels=tuple(column.set_values or ()),
        declared=declared,
    )


def _row(
    values: Mapping[str, Any], missing: Mapping[str, str], columns: Mapping[str, LoggedColumn]
) -> LoggedRow:
    """A row. The client returns ``None`` for several reasons."""
    found: dict[str, Any] = {}
    unsent = []
    for name, value in values.items():
        reason = missing.get(name, "")
        if reason == _NOT_SENT:
            unsent.append(name)
        elif value is not None:
            found[name] = text_of(value, columns[name])
        else:
            found[name] = None if reason == _NULL else "" if reason == _EMPTY else NOT_A_DATE
    return LoggedRow(found, tuple(unsent))


def _text(name: bytes | str) -> str:
    return name.decode("utf-8") if isinstance(name, bytes) else name


__all__ = ["at_ms", "event_of", "unreadable"]
