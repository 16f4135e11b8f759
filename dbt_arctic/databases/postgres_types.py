"""What each type of PostgreSQL becomes in Spark, and PostgreSQL's SQL. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dbt_arctic.databases.api import Column, Family

MOST_DIGITS = 38
"""Of a decimal in Spark."""
SCALE = 18
"""Of a decimal whose scale the database does not limit."""

_SIMPLE: Mapping[str, tuple[Family, str]] = {
    "boolean": ("boolean", "BOOLEAN"),
    "smallint": ("integer", "INT"),  # Iceberg has no smaller type
    "integer": ("integer", "INT"),
    "bigint": ("integer", "BIGINT"),
    "oid": ("integer", "BIGINT"),
    "real": ("float", "FLOAT"),
    "double precision": ("float", "DOUBLE"),
    "date": ("date", "DATE"),
    "timestamp without time zone": ("timestamp", "TIMESTAMP_NTZ"),
    "timestamp with time zone": ("timestamptz", "TIMESTAMP"),
    "bytea": ("binary", "BINARY"),
    "money": ("decimal", "DECIMAL(19,2)"),
}
_NUMERIC = re.compile(r"numeric(?:\((\d+),(-?\d+)\))?")
_TIME_DIGITS = re.compile(r"(?<=timestamp)\(\d\)")
_NATIVE: tuple[Family, ...] = ("boolean", "integer", "float", "binary")
_NO_ELEMENTS = ("money",)
_CASTS = ("text", "character", "bpchar", "character varying", "json", "jsonb", "uuid")
"""Types read as text whose cast gives what the log has. A cast of ``inet`` adds the bits of its mask, and one
of ``xml`` keeps its declaration. Those of extensions may do anything."""
_OTHER_CASTS = ("inet", "xml")
_LENGTH = re.compile(r"\(\d+\)$")


def postgres_type(name: str) -> tuple[Family, str]:
    """How a type is read, and what it becomes.

    :param name: as PostgreSQL's ``format_type`` shows it.

    >>> postgres_type("numeric(12,2)"), postgres_type("timestamp(3) with time zone")
    (('decimal', 'DECIMAL(12,2)'), ('timestamptz', 'TIMESTAMP'))
    >>> postgres_type("integer[]"), postgres_type("uuid")
    (('array', 'ARRAY<INT>'), ('text', 'STRING'))
    """
    if name.endswith("[]"):
        element = name.removesuffix("[]")
        family, kind = postgres_type(element)
        if family in ("binary", "array") or element in _NO_ELEMENTS:
            return "text", "STRING"
        return "array", f"ARRAY<{kind}>"
    number = _NUMERIC.fullmatch(name)
    if number is not None:
        return "decimal", _decimal(number[1], number[2])
    return _SIMPLE.get(_TIME_DIGITS.sub("", name), ("text", "STRING"))


def _decimal(precision: str | None, scale: str | None) -> str:
    if precision is None or scale is None:
        return f"DECIMAL({MOST_DIGITS},{SCALE})"
    digits, after = int(precision), int(scale)
    # A scale may be negative, or larger than the precision.
    digits, after = (digits - after, 0) if after < 0 else (max(digits, after), after)
    return f"DECIMAL({min(digits, MOST_DIGITS)},{min(after, MOST_DIGITS)})"


class PostgresDialect:
    """SQL of PostgreSQL."""

    def quote(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def text(self, column: Column, value: str) -> str:
        if column.family == "timestamptz":
            return f"({value} AT TIME ZONE 'UTC')::text"
        if column.family == "binary":
            return f"encode({value}, 'hex')"
        if column.family == "array":
            # The text of an array has the texts of its elements as their types write them.
            cast = "::text::text[]" if column.type.removesuffix("[]") in _OTHER_CASTS else "::text[]"
            return f"to_json({value}{cast})::text"
        if column.family == "text" and _LENGTH.sub("", column.type) not in _CASTS:
            # It writes a value as its type does. This test is right also for a row of NULLs.
            return f"CASE WHEN {value} IS DISTINCT FROM NULL THEN concat({value}) END"
        return f"{value}::numeric::text" if column.type == "money" else f"{value}::text"

    def transport(self, column: Column, value: str) -> str:
        if column.family not in _NATIVE:
            return self.text(column, value)
        return f"{value}::bigint" if column.type == "oid" else value

    def literal(self, cursor: Column, value: str) -> str:
        if cursor.family in ("integer", "decimal"):
            return value
        kinds = {"date": "DATE", "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMP WITH TIME ZONE"}
        zone = "+00" if cursor.family == "timestamptz" else ""
        return f"{kinds[cursor.family]} '{value}{zone}'"

    def hashes(self, values: Sequence[str]) -> str:
        # The text of a row distinguishes NULL from an empty text.
        return f"COALESCE(SUM(hashtextextended(ROW({', '.join(values)})::text, 0)), 0)"


__all__ = ["MOST_DIGITS", "SCALE", "PostgresDialect", "postgres_type"]
