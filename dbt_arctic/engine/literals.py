"""Formats Python values as Spark SQL literals, and binds them to a statement. Pure text functions."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from dbt_arctic.engine.lexer import PLACEHOLDER, pieces
from dbt_arctic.errors import StatementError
from dbt_arctic.human_readable import counted

_ESCAPES = {
    "\\": "\\\\",
    "'": "\\'",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    # Not \0: followed by digits, it is an octal escape.
    "\0": "\\u0000",
    # Spark replaces ${name} by the value of a variable in the text of a statement, even inside strings.
    "$": "\\u0024",
}
_ESCAPE_TABLE = str.maketrans(_ESCAPES)


def literal(value: Any) -> str:
    """A literal that Spark parses as the same value.

    >>> literal("it's"), literal(None), literal(Decimal("1.50")), literal(b"a")
    ("'it\\\\'s'", 'NULL', '1.50BD', "X'61'")

    A naive ``datetime`` is a TIMESTAMP in the session's time zone, like dbt's own literals. An aware one is
    that instant.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return _integer(value)
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"X'{bytes(value).hex().upper()}'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    raise StatementError(
        f"A value of type {type(value).__name__} cannot be bound to a statement.",
        where=repr(value)[:200],
        why="There is no Spark literal for it.",
        fix="pass None, bool, int, float, Decimal, str, bytes, date or datetime",
    )


def bind(sql: str, bindings: Sequence[Any] | None) -> str:
    """The statement with each ``%s`` outside strings and comments replaced by a literal.

    Without bindings, the statement is unchanged.
    """
    if not bindings:
        return sql
    parts: list[str] = []
    used = 0
    for kind, text in pieces(sql, placeholders=True):
        if kind is PLACEHOLDER:
            if used < len(bindings):
                parts.append(literal(bindings[used]))
            used += 1
        else:
            parts.append(text)
    if used != len(bindings):
        raise StatementError(
            f"The statement has {counted(used, 'placeholder')} but {counted(len(bindings), 'value')}.",
            where=sql.strip()[:200],
            why="Each `%s` outside strings and comments takes one value.",
            fix="pass one value per placeholder",
        )
    return "".join(parts)


def _integer(value: int) -> str:
    if -(2**31) < value < 2**31:
        return str(value)
    if -(2**63) < value < 2**63:
        return f"{value}L"
    return f"CAST('{value}' AS {'BIGINT' if value == -(2**63) else 'DECIMAL(38,0)'})"


def _double(value: float) -> str:
    if math.isnan(value):
        return "DOUBLE('NaN')"
    if math.isinf(value):
        return "DOUBLE('Infinity')" if value > 0 else "DOUBLE('-Infinity')"
    return f"{value!r}D"


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise StatementError(
            f"The decimal {value} cannot be bound to a statement.",
            why="Spark's DECIMAL has no NaN and no infinity.",
            fix="pass a float, or NULL",
        )
    return f"{value:f}BD"


def _string(value: str) -> str:
    return "'" + value.translate(_ESCAPE_TABLE) + "'"
