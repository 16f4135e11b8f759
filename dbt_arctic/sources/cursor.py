"""Values of a cursor, how far below them a run begins, and what a commit records of them. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Context, Decimal, InvalidOperation

from dbt_arctic.databases.api import CURSORS, Column
from dbt_arctic.errors import ConfigError, MalformedFile
from dbt_arctic.keyed.version import DATABASE, Consumed
from dbt_arctic.sources.database_settings import DatabaseSource
from dbt_arctic.store.duration import parse_duration

_DAY_S = 86_400
_DEFAULT_S = 300
_DEFAULT_STEPS = 1000
_FUTURE = timedelta(days=1)

_EXACT = Context(prec=100)
"""For numbers of up to 65 digits, which databases have. Python's default is 28."""


@dataclass(frozen=True)
class Progress:
    """What a commit records of a table.

    :param cursor: the column; empty if all rows were read.
    :param value: the largest value that was read; ``None`` if no row had one.
    :param seen: the fingerprint of the rows that the next run would read again.
    :param keys: the fingerprint of the keys, if they are compared; otherwise empty.
    :param run: of each run another one, so that two concurrent runs never record the same.
    """

    cursor: str
    value: str | None
    seen: str
    keys: str
    run: str

    def consumed(self, table_id: str) -> Consumed:
        """The progress as a consumed version. Its size does not depend on the number of rows or runs."""
        parts = {"cursor": self.cursor, "value": self.value, "seen": self.seen, "keys": self.keys}
        return Consumed(DATABASE + table_id, json.dumps({**parts, "run": self.run}))

    @classmethod
    def of(cls, consumed: Consumed) -> Progress:
        """The progress that a commit has recorded."""
        return cls(**json.loads(consumed.version))


def cursor_of(source: DatabaseSource, column: Column | None, model: str) -> Column:
    """The column of a cursor.

    :raises ConfigError: it does not exist, or its type has no usable order.
    """
    if column is None:
        raise ConfigError(
            f"the table {source.table} has no column {source.cursor}",
            where=model,
            why=f"it is the cursor of the source {source.name}",
            fix="correct cursor in the source's meta.arctic, or remove it to read all rows in each run",
        )
    if column.family not in CURSORS:
        raise ConfigError(
            f"the column {column.name} cannot be a cursor",
            where=model,
            why=f"its type is {column.type}; a cursor is a whole number, a decimal, a date or a timestamp",
            fix=f"name another column in cursor of the source {source.name}, or remove it to read all rows "
            "in each run",
        )
    return column


def overlap_of(source: DatabaseSource, cursor: Column) -> int:
    """How far below its last value a run begins: seconds, days for a date, or a number.

    :raises ConfigError: the overlap does not fit the type of the cursor.
    """
    given = source.overlap
    if cursor.family in ("integer", "decimal"):
        if isinstance(given, str) or (given or 0) < 0:
            raise ConfigError(
                f"the source {source.name} has overlap: {given}",
                where=source.name,
                why=f"its cursor {cursor.name} is a number ({cursor.type})",
                fix=f"write a number, for instance overlap: {_DEFAULT_STEPS}",
            )
        return _DEFAULT_STEPS if given is None else given
    default = _DAY_S if cursor.family == "date" else _DEFAULT_S
    seconds = parse_duration(source.name, "overlap", given, default)
    if cursor.family != "date":
        return seconds
    if seconds % _DAY_S:
        raise ConfigError(
            f"the source {source.name} has overlap: {given}",
            where=source.name,
            why=f"its cursor {cursor.name} is a date",
            fix="write whole days, for instance overlap: '1 day'",
        )
    return seconds // _DAY_S


def below(cursor: Column, value: str, overlap: int) -> str:
    """The value from which a run reads.

    >>> below(Column("at", "timestamp", "timestamp", ""), "2026-01-01 00:03:00.5", 300)
    '2025-12-31 23:58:00.500000'
    >>> below(Column("id", "bigint", "integer", ""), "120", 100)
    '20'
    >>> below(Column("id", "numeric", "decimal", ""), "12345678901234567890123456789012345678", 1000)
    '12345678901234567890123456789012344678'
    """
    parsed = parse_value(cursor, value)
    if isinstance(parsed, Decimal):
        return format(_EXACT.subtract(parsed, Decimal(overlap)), "f")
    step = timedelta(days=overlap) if cursor.family == "date" else timedelta(seconds=overlap)
    try:
        return _shown(parsed - step)
    except OverflowError:
        return _shown(type(parsed).min)


def is_larger(cursor: Column, one: str, other: str) -> bool:
    """Whether a value of a cursor is larger than another one."""
    left, right = parse_value(cursor, one), parse_value(cursor, other)
    return bool(left > right)  # type: ignore[operator]


def is_future(cursor: Column, value: str) -> bool:
    """Whether a time is more than a day ahead of the clock, so that later rows could have smaller values."""
    parsed = parse_value(cursor, value)
    now = datetime.now(timezone.utc).replace(tzinfo=None) + _FUTURE
    if isinstance(parsed, datetime):
        return parsed > now
    return isinstance(parsed, date) and parsed > now.date()


def epoch_ms(cursor: Column, value: str) -> int | None:
    """The milliseconds of a time in UTC; ``None`` if the cursor is a number."""
    parsed = parse_value(cursor, value)
    if isinstance(parsed, Decimal):
        return None
    at = parsed if isinstance(parsed, datetime) else datetime(parsed.year, parsed.month, parsed.day)
    return int(at.replace(tzinfo=timezone.utc).timestamp() * 1000)


def parse_value(cursor: Column, value: str) -> Decimal | date:
    """A value of a cursor as a number, a date or a time.

    :raises MalformedFile: it is none of those that can be compared, such as ``infinity``.
    """
    try:
        if cursor.family in ("integer", "decimal"):
            number = Decimal(value)
            if number.is_finite():
                return number
        elif cursor.family == "date":
            return date.fromisoformat(value)
        else:
            text, _, fraction = value.partition(".")
            at = datetime.strptime(text, "%Y-%m-%d %H:%M:%S")
            return at + timedelta(microseconds=int(fraction[:6].ljust(6, "0")))
    except (InvalidOperation, ValueError):
        pass
    raise MalformedFile(
        f"the largest value of the cursor {cursor.name} is {value}",
        where=cursor.name,
        why="no later value could be larger, or it is not a valid value of its type",
        fix="correct this row in the database, or name another column in cursor of the source",
    )


def _shown(value: date) -> str:
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(" ", "microseconds")
    return value.isoformat()


__all__ = [
    "Progress",
    "below",
    "cursor_of",
    "epoch_ms",
    "is_future",
    "is_larger",
    "overlap_of",
    "parse_value",
]
