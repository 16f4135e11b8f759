"""The events of the client of MariaDB's log (mysql-replication), as those of ``mariadb_transactions``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from dbt_arctic.databases.api import TableName
from dbt_arctic.databases.mariadb_statements import SqlMode
from dbt_arctic.databases.mariadb_transactions import (
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
_ANSI_QUOTES, _NO_BACKSLASH_ESCAPES = 1 << 2, 1 << 20
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")
"""The form in which the client has a byte that is not UTF-8."""
_SECOND = timedelta(seconds=1)
_LOAD_HEADER = 26
_UNREADABLE: Mapping[int, str] = {
    **dict.fromkeys(range(165, 170), "compressed events (log_bin_compress)"),
    26: "an incident: the server could not write all changes",
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
            return Statement(_query(event), _text(event.schema), sql_mode(getattr(event, "sql_mode", 0)))
        case "ExecuteLoadQueryEvent":
            return _load_data(event)
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


def has_checksums(event: Any) -> bool | None:
    """Whether the events of a file have checksums, as its first event says; ``None`` for other events."""
    is_first = type(event).__name__ == "FormatDescriptionEvent"
    return bool(event.checksum_algorithm) if is_first else None


def sql_mode(flags: int) -> SqlMode:
    """The mode of a session, from the flags in the log."""
    return SqlMode(bool(flags & _ANSI_QUOTES), not flags & _NO_BACKSLASH_ESCAPES)


def _query(event: Any) -> str:
    """The text of a statement. The client takes it for UTF-8, and it is in the session's character set."""
    text, number = str(event.query), getattr(event, "character_set_client", None)
    if number is None:
        return text
    from pymysqlreplication.row_event import find_charset

    encoding = str(find_charset(str(number), dbms="mariadb")[0])
    if encoding in ("utf8", "ascii", "binary"):
        return text
    written = _ESCAPED.sub(lambda one: bytes.fromhex(one[1].decode()), text.encode())
    try:
        return written.decode(encoding, errors="replace")
    except LookupError:
        return text


def _load_data(event: Any) -> Statement:
    """The text of ``LOAD DATA`` in a session with ``binlog_format = STATEMENT``; the client leaves it out."""
    event.packet.read(event.status_vars_length)
    schema = event.packet.read(event.schema_length)
    event.packet.read(1)
    rest = event.event_size - _LOAD_HEADER - event.status_vars_length - event.schema_length - 1
    return Statement(event.packet.read(rest).decode(errors="replace"), _text(schema))


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
            found[name] = text_of(_corrected(value), columns[name])
        else:
            found[name] = None if reason == _NULL else "" if reason == _EMPTY else NOT_A_DATE
    return LoggedRow(found, tuple(unsent))


def _corrected(value: Any) -> Any:
    """A value of the client, with the right fraction of a time before zero.

    In the log, such a fraction counts up from the next second, which the client does not know.
    """
    if not isinstance(value, timedelta) or value >= timedelta(0) or not value % _SECOND:
        return value
    return -value - 2 * (-value // _SECOND) * _SECOND - _SECOND


def _text(name: bytes | str) -> str:
    return name.decode("utf-8") if isinstance(name, bytes) else name


__all__ = ["at_ms", "event_of", "has_checksums", "sql_mode", "unreadable"]
