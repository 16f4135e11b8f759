"""Types and values of random tables: drawn, written as SQL, and in a form that can be compared.

A value is plain Python: a struct is a dict, a map a ``Pairs``, a timestamp has no zone and means UTC.
"""

from __future__ import annotations

import datetime as dt
import random
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, parse_type, type_text

INTEGERS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
"""Integer types, and the bits that each has for a number."""


class Pairs(tuple[tuple[Any, Any], ...]):
    """A map's keys and values."""


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def single(number: float) -> float:
    """The number as a 32-bit one holds it."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


# Time zones

_ZONE: ContextVar[str] = ContextVar("zone", default="UTC")


@contextmanager
def in_zone(zone: str) -> Iterator[None]:
    """Within it, local times are those of a session with that time zone."""
    before = _ZONE.set(zone)
    try:
        yield
    finally:
        _ZONE.reset(before)


def instant(local: dt.datetime) -> dt.datetime:
    """The instant of a local time in the session.

    Of an hour that comes twice it is the first one; a time that summer time leaves out is that much later.
    """
    return local.replace(tzinfo=ZoneInfo(_ZONE.get())).astimezone(dt.timezone.utc).replace(tzinfo=None)


def local(at: dt.datetime) -> dt.datetime:
    """The local time of an instant in the session."""
    return at.replace(tzinfo=dt.timezone.utc).astimezone(ZoneInfo(_ZONE.get())).replace(tzinfo=None)


# Drawing

ATOMS = (
    "int",
    "int",
    "string",
    "string",
    "bigint",
    "smallint",
    "tinyint",
    "double",
    "float",
    "decimal(5,2)",
    "decimal(12,2)",
    "decimal(38,10)",
    "boolean",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
)
KEY_TYPES = (
    *("int", "int", "string", "string", "bigint", "date", "decimal(12,2)", "timestamp", "timestamp_ntz"),
    *("boolean", "smallint"),
)
MAP_KEYS = ("int", "string", "date", "decimal(12,2)", "timestamp", "boolean")
FIELDS = ("a", "b", "order", "x-y", "Zip")
COLLATED = "string collate UTF8_LCASE"


def draw_type(chance: random.Random, depth: int = 3) -> str:
    """A type with up to ``depth`` types inside each other."""
    return type_text(_drawn_type(chance, depth))


def _drawn_type(chance: random.Random, depth: int) -> DataType:
    if depth == 0 or chance.random() < 0.6:
        return Atomic(chance.choice(ATOMS))
    kind = chance.random()
    if kind < 0.5:
        names = chance.sample(FIELDS, chance.randint(1, 3))
        return Struct(tuple((name, _drawn_type(chance, depth - 1)) for name in names))
    if kind < 0.8:
        return Array(_drawn_type(chance, depth - 1))
    return Map(Atomic(chance.choice(MAP_KEYS)), _drawn_type(chance, depth - 1))


TEXTS = ("a", "A", "b", "", "a|b", "it's", "x\\y", "00501", "é", " a", "null", "1\n2")


def draw_value(chance: random.Random, type_: str, nulls: float = 0.2) -> Any:
    return _drawn(chance, parse_type(type_), nulls)


def _drawn(chance: random.Random, type_: DataType, nulls: float) -> Any:
    if chance.random() < nulls:
        return None
    match type_:
        case Struct(fields):
            return {name: _drawn(chance, one, nulls) for name, one in fields}
        case Array(element):
            return [_drawn(chance, element, nulls) for _ in range(chance.randint(0, 2))]
        case Map(key, value):
            keys = {
                repr(one): one
                for _ in range(chance.randint(0, 2))
                if (one := _drawn(chance, key, 0)) is not None
            }
            return Pairs((one, _drawn(chance, value, nulls)) for one in keys.values())
    return _drawn_atom(chance, type_)


def _drawn_atom(chance: random.Random, type_: Atomic) -> Any:
    kind = type_.kind
    if kind in INTEGERS:
        if chance.random() < 0.1:
            return chance.choice((-(2 ** INTEGERS[kind]), 2 ** INTEGERS[kind] - 1))
        return chance.randint(-2, 5)
    if kind == "decimal":
        precision, scale = type_.parameters
        digits = precision if chance.random() < 0.15 else min(precision, scale + 2)
        return Decimal(chance.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-scale)
    if kind in ("double", "float"):
        number = chance.choice((0.0, -0.0, 1.5, -2.25, 0.1, 100.0, float("nan"), float("inf"), 12345.678))
        return single(number) if kind == "float" else number
    if kind == "string":
        return chance.choice(TEXTS)
    if kind == "binary":
        return chance.choice((b"", b"\x00", b"\xff\xfe", b"ab"))
    if kind == "boolean":
        return chance.random() < 0.5
    if kind == "void":
        return None
    # 30 and 240 days later summer time begins and ends in Europe.
    day = dt.datetime(2024, 3, 1) + dt.timedelta(days=chance.choice((-20000, -1, 0, 1, 2, 30, 240)))
    if kind == "date":
        return day.date()
    return day + dt.timedelta(
        seconds=chance.choice((0, 1, 1800, 5400, 86399)), microseconds=chance.choice((0, 1, 500000))
    )


# SQL


def sql_of(value: Any, type_: str) -> str:
    """The value as a SQL expression of exactly that type."""
    return _sql(value, parse_type(type_))


def text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def _sql(value: Any, type_: DataType) -> str:
    if value is None:
        return _null(type_)
    match type_:
        case Struct(fields):
            given = ", ".join(f"{text(name)}, {_sql(value[name], one)}" for name, one in fields)
            return f"named_struct({given})"
        case Array(element):
            if not value:
                return f"CAST(array() AS {type_text(type_)})"
            return f"array({', '.join(_sql(one, element) for one in value)})"
        case Map(key, inner):
            if not value:
                return f"CAST(map() AS {type_text(type_)})"
            return f"map({', '.join(f'{_sql(one, key)}, {_sql(other, inner)}' for one, other in value)})"
    return _atom_sql(value, type_)


def _null(type_: DataType) -> str:
    if type_ == Atomic("void"):
        return "NULL"
    plain, _, collation = type_text(type_).partition(" collate ")
    return f"CAST(NULL AS {plain})" + (f" COLLATE {collation}" if collation else "")


def _atom_sql(value: Any, type_: Atomic) -> str:
    kind = type_.kind
    if kind == "string":
        collation = type_.text.partition(" collate ")[2]
        return text(value) + (f" COLLATE {collation}" if collation else "")
    if kind == "binary":
        return f"X'{value.hex()}'"
    if kind == "boolean":
        return str(value).lower()
    if kind == "date":
        return f"DATE'{value}'"
    if kind == "timestamp":
        return f"TIMESTAMP'{value}Z'"
    if kind == "timestamp_ntz":
        return f"TIMESTAMP_NTZ'{value}'"
    written = format(value, "f") if kind == "decimal" else repr(value)
    written = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(written, written)
    return f"CAST('{written}' AS {type_.text})"


# Comparing


def comparable_type(type_: str) -> str:
    """The type with the fields of its structs in the order of the alphabet: a field's place means nothing."""
    return type_text(_comparable(parse_type(type_)))


def _comparable(type_: DataType) -> DataType:
    match type_:
        case Struct(fields):
            return Struct(
                tuple(
                    sorted(((name, _comparable(one)) for name, one in fields), key=lambda one: one[0].lower())
                )
            )
        case Array(element):
            return Array(_comparable(element))
        case Map(key, value):
            return Map(_comparable(key), _comparable(value))
    return type_


def canonical(value: Any, type_: str) -> Any:
    """The value in a form in which equal values are equal, and different ones are not."""
    return _canonical(value, parse_type(type_))


def comparable(value: Any, type_: str) -> Any:
    """The value in a form in which values are equal that SQL finds equal: ``0.0`` and ``-0.0``."""
    return canonical(_with_one_zero(value), type_)


def _with_one_zero(value: Any) -> Any:
    match value:
        case float():
            return value + 0.0
        case list() | tuple():
            return type(value)(map(_with_one_zero, value))
        case dict():
            return {name: _with_one_zero(one) for name, one in value.items()}
    return value


def _canonical(value: Any, type_: DataType) -> Any:
    if value is None:
        return None
    match type_:
        case Struct(fields):
            return tuple(sorted((name.lower(), _canonical(value[name], one)) for name, one in fields))
        case Array(element):
            return tuple(_canonical(one, element) for one in value)
        case Map(key, inner):
            pairs = [(_canonical(one, key), _canonical(other, inner)) for one, other in value]
            return tuple(sorted(pairs, key=repr))
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Decimal):
        return str(value.normalize())
    return value
