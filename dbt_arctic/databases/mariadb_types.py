"""What each type of MariaDB and MySQL becomes in Spark, and their SQL. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dbt_arctic.databases.api import Column, Family

_MOST_DIGITS = 38
_INTEGERS: Mapping[str, tuple[str, str]] = {
    # Iceberg has no smaller type than INT.
    "tinyint": ("INT", "INT"),
    "smallint": ("INT", "INT"),
    "mediumint": ("INT", "INT"),
    "int": ("INT", "BIGINT"),
    "year": ("INT", "INT"),
}
"""By type: with a sign, and without one."""
_SIMPLE: Mapping[str, tuple[Family, str]] = {
    "float": ("float", "FLOAT"),
    "double": ("float", "DOUBLE"),
    "date": ("date", "DATE"),
    "datetime": ("timestamp", "TIMESTAMP_NTZ"),
    "timestamp": ("timestamptz", "TIMESTAMP"),
    **dict.fromkeys(
        ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), ("binary", "BINARY")
    ),
    **dict.fromkeys(
        ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json"),
        ("text", "STRING"),
    ),
    **dict.fromkeys(("time", "uuid", "inet4", "inet6"), ("text", "STRING")),
}
# Spark pads values of the type CHAR.
_TEXTS = ("varchar", "tinytext", "text", "mediumtext", "longtext")
_NATIVE: tuple[Family, ...] = ("integer", "binary")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def _base(name: str) -> str:
    return re.split(r"[( ]", name.lower(), maxsplit=1)[0]


def mariadb_type(name: str) -> tuple[Family, str]:
    """How a type is read, and what it becomes.

    :param name: ``COLUMN_TYPE`` of the information schema.

    >>> mariadb_type("int(10) unsigned"), mariadb_type("tinyint(1)")
    (('integer', 'BIGINT'), ('integer', 'INT'))
    >>> mariadb_type("bigint(20) unsigned"), mariadb_type("geometry")
    (('decimal', 'DECIMAL(20,0)'), ('unreadable', ''))
    """
    base, is_unsigned = _base(name), "unsigned" in name.lower()
    if base in _INTEGERS:
        return "integer", _INTEGERS[base][is_unsigned]
    if base == "bigint":
        return ("decimal", "DECIMAL(20,0)") if is_unsigned else ("integer", "BIGINT")
    if base == "bit":
        return ("decimal", "DECIMAL(20,0)") if "64" in name else ("integer", "BIGINT")
    number = _DECIMAL.match(name.lower())
    if number is not None:
        return "decimal", f"DECIMAL({min(int(number[1]), _MOST_DIGITS)},{number[2]})"
    return _SIMPLE.get(base, ("unreadable", ""))


class MariaDialect:
    """SQL of MariaDB and MySQL. The session has the time zone UTC."""

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def text(self, column: Column, value: str) -> str:
        if column.family == "binary":
            return f"HEX({value})"
        base = _base(column.type)
        if base in _TEXTS:
            return value
        if base == "bit":
            return f"CAST({value} + 0 AS CHAR)"
        if base == "float":  # as text, it has fewer digits than its value needs
            return f"CAST(CAST({value} AS DOUBLE) AS CHAR)"
        return f"CAST({value} AS CHAR)"

    def transport(self, column: Column, value: str) -> str:
        if column.family == "float":
            return f"CAST({value} AS DOUBLE)"
        if _base(column.type) in ("tinyint", "year"):  # the driver returns a truth value or a date
            return f"CAST({value} AS SIGNED)"
        if _base(column.type) == "bit" and column.family == "integer":
            return f"CAST({value} + 0 AS SIGNED)"
        return value if column.family in _NATIVE else self.text(column, value)

    def literal(self, cursor: Column, value: str) -> str:
        if cursor.family in ("integer", "decimal"):
            return value
        return f"{'DATE' if cursor.family == 'date' else 'TIMESTAMP'} '{value}'"

    def hashes(self, values: Sequence[str]) -> str:
        # QUOTE distinguishes NULL from an empty text.
        row = f"CONCAT_WS(',', {', '.join(f'QUOTE({value})' for value in values)})"
        number = f"CAST(CONV(LEFT(MD5({row}), 16), 16, 10) AS UNSIGNED)"
        return f"COALESCE(SUM({number}), 0)"


__all__ = ["MariaDialect", "mariadb_type"]
