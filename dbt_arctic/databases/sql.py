"""SQL of a database, for its Python client and for Spark's JDBC reader. Pure.

What differs between databases is in their dialect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from dbt_arctic.databases.api import Column, KeyRange, RowQuery, Window

_VALUE = re.compile(r"-?\d+(\.\d+)?|\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")
_RANGE = "range_of_row"


class Dialect(Protocol):
    """How a database writes its SQL."""

    def quote(self, name: str) -> str:
        """An identifier."""
        ...

    def text(self, column: Column, value: str) -> str:
        """The text of a value, with which it can be read back exactly."""
        ...

    def transport(self, column: Column, value: str) -> str:
        """A value in the form in which Spark's JDBC reader takes it without a loss."""
        ...

    def literal(self, cursor: Column, value: str) -> str:
        """A value of a cursor. The text is valid."""
        ...

    def hashes(self, values: Sequence[str]) -> str:
        """The sum of the hash values of rows with these values."""
        ...


def condition(dialect: Dialect, window: Window) -> str:
    """The condition on rows of a window. It may be NULL for rows without a cursor."""
    cursor = dialect.quote(window.cursor.name)
    parts = []
    if window.low is not None:
        parts.append(
            f"{cursor} {'>=' if window.includes_low else '>'} {_literal(dialect, window, window.low)}"
        )
    parts.append("1 = 0" if window.high is None else f"{cursor} <= {_literal(dialect, window, window.high)}")
    joined = " AND ".join(parts)
    return f"(({joined}) OR {cursor} IS NULL)" if window.with_null else f"({joined})"


def newest(dialect: Dialect, cursor: Column, table: str) -> str:
    """The largest value of a cursor."""
    return f"SELECT {dialect.text(cursor, f'MAX({dialect.quote(cursor.name)})')} FROM {table}"


def has_null(dialect: Dialect, column: Column, table: str) -> str:
    """A row, if one has no value in a column."""
    return f"SELECT 1 FROM {table} WHERE {dialect.quote(column.name)} IS NULL LIMIT 1"


def extremes(dialect: Dialect, column: Column, table: str) -> str:
    """The smallest and the largest value of a column."""
    name = dialect.quote(column.name)
    return f"SELECT MIN({name}), MAX({name}) FROM {table}"


def count(dialect: Dialect, window: Window, table: str) -> str:
    """The number of rows of a window."""
    return f"SELECT COUNT(*) FROM {table} WHERE {condition(dialect, window)}"


def fingerprint(dialect: Dialect, columns: Sequence[Column], window: Window | None, table: str) -> str:
    """The number of rows of a window, and the sum of their hash values."""
    values = [dialect.text(column, dialect.quote(column.name)) for column in columns]
    where = "" if window is None else f" WHERE {condition(dialect, window)}"
    return f"SELECT COUNT(*), {dialect.hashes(values)} FROM {table}{where}"


def rows(dialect: Dialect, query: RowQuery, table: str) -> str:
    """The rows of a query, as a subquery for Spark's JDBC reader."""
    is_new = "" if query.window is None else condition(dialect, query.window)
    selected = []
    for at, (column, as_text) in enumerate(query.columns):
        name = dialect.quote(column.name)
        value = dialect.text(column, name) if as_text else dialect.transport(column, name)
        if query.all_keys and is_new and column.name not in query.all_keys:
            value = f"CASE WHEN {is_new} THEN {value} END"
        selected.append(f"{value} AS c{at}")
    if query.all_keys:
        selected.append(f"{f'CASE WHEN {is_new} THEN 1 ELSE 0 END' if is_new else '1'} AS is_new")
    if query.ranges and query.ranges_of is not None:
        selected.append(f"{dialect.quote(query.ranges_of.name)} AS {_RANGE}")
    where = f" WHERE {is_new}" if is_new and not query.all_keys else ""
    return f"(SELECT {', '.join(selected)} FROM {table}{where}) AS arctic_rows"


def predicates(ranges: Sequence[KeyRange]) -> list[str]:
    """The conditions of concurrent statements over ``rows``."""
    return [
        " AND ".join(
            part
            for part in (
                f"{_RANGE} >= {low}" if low is not None else "",
                ""
                if high is None
                else f"{_RANGE} < {high}"
                if low is not None
                else f"({_RANGE} < {high} OR {_RANGE} IS NULL)",
            )
            if part
        )
        for low, high in ranges
    ]


def _literal(dialect: Dialect, window: Window, value: str) -> str:
    assert _VALUE.fullmatch(value), value
    return dialect.literal(window.cursor, value)


__all__ = [
    "Dialect",
    "condition",
    "count",
    "extremes",
    "fingerprint",
    "has_null",
    "newest",
    "predicates",
    "rows",
]
