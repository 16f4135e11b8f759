"""What each type of MariaDB and MySQL becomes in Spark, and their SQL. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dbt_arctic.databases.api import Column, Family

_MOST_DIGITS = 38


class _Integer(NamedTuple):
    """What an integer type becomes with a sign, and without one."""

    signed: str
    unsigned: str


_INTEGERS: Mapping[str, _Integer] = {
    # Iceberg has no smaller type than INT.
    "tinyint": _Integer("INT", "INT"),
    "smallint": _Integer("INT", "INT"),
    "mediumint": _Integer("INT", "INT"),
    "int": _Integer("INT", "BIGINT"),
    "year": _Integer("INT", "INT"),
}
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
_WRITTEN = re.compile(r"(?P<base>\w+)(?:\((?P<numbers>[\d,]+)\))?(?P<rest>.*)", re.DOTALL)


class _Declared(NamedTuple):
    """A type as ``COLUMN_TYPE`` shows it: ``decimal(10,2) unsigned``."""

    base: str
    numbers: tuple[int, ...] = ()
    is_unsigned: bool = False


def _declared(text: str) -> _Declared:
    found = _WRITTEN.match(text.lower())
    if found is None:
        return _Declared("")
    numbers = found["numbers"] or ""
    is_unsigned = "unsigned" in found["rest"].split()
    return _Declared(found["base"], tuple(int(one) for one in numbers.split(",") if one), is_unsigned)


def holds_flags(name: str) -> bool:
    """Whether a type may hold truth values: BOOLEAN is another name of ``tinyint(1)``.

    >>> holds_flags("tinyint(1)"), holds_flags("bit(1)"), holds_flags("bit(8)"), holds_flags("int(1)")
    (True, True, False, False)
    """
    declared = _declared(name)
    return declared.base == "tinyint" or (declared.base, declared.numbers) == ("bit", (1,))


def mariadb_type(name: str) -> tuple[Family, str]:
    """How a type is read, and what it becomes.

    :param name: ``COLUMN_TYPE`` of the information schema.

    >>> mariadb_type("int(10) unsigned"), mariadb_type("tinyint(1)")
    (('integer', 'BIGINT'), ('integer', 'INT'))
    >>> mariadb_type("bigint(20) unsigned"), mariadb_type("geometry")
    (('decimal', 'DECIMAL(20,0)'), ('unreadable', ''))
    """
    base, numbers, is_unsigned = _declared(name)
    if base in _INTEGERS:
        integer = _INTEGERS[base]
        return "integer", integer.unsigned if is_unsigned else integer.signed
    if base == "bigint":
        return ("decimal", "DECIMAL(20,0)") if is_unsigned else ("integer", "BIGINT")
    if base == "bit":
        return ("decimal", "DECIMAL(20,0)") if numbers == (64,) else ("integer", "BIGINT")
    if base == "decimal" and len(numbers) == 2:
        return "decimal", f"DECIMAL({min(numbers[0], _MOST_DIGITS)},{numbers[1]})"
    return _SIMPLE.get(base, ("unreadable", ""))


class MariaDialect:
    """SQL of MariaDB and MySQL. The session has the time zone UTC."""

    def quote(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def text(self, column: Column, value: str) -> str:
        if column.family == "binary":
            return f"HEX({value})"
        base = _declared(column.type).base
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
        base = _declared(column.type).base
        if base in ("tinyint", "year"):  # the driver returns a truth value or a date
            return f"CAST({value} AS SIGNED)"
        if base == "bit" and column.family == "integer":
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


__all__ = ["MariaDialect", "holds_flags", "mariadb_type"]
