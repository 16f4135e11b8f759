"""Values of a Spark Thrift server in plain Python.

The protocol has numbers, strings, booleans and bytes only. Dates, times and decimals arrive as text, and
nested values would arrive in a form that cannot be parsed, so queries return them as JSON.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, UnreadableType, atoms, parse_type
from dbt_arctic.engine.nested_json import shown_text

_TIMES = r"yyyy-MM-dd\'T\'HH:mm:ss.SSSSSS"
_JSON_OPTIONS = (
    f"map('ignoreNullFields', 'false', 'timestampFormat', '{_TIMES}XXX', 'timestampNTZFormat', '{_TIMES}')"
)
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_AS_IT_IS = ("string", "char", "varchar", "boolean", "double", "float", *_INTEGERS)
_FROM_TEXT = ("date", "timestamp", "timestamp_ntz", "decimal", "binary", "void")
_LONGEST_YEAR = 4


def value_type(text: str) -> DataType:
    """The type of a column. One that cannot be parsed is a type whose values are read as text.

    A server does not quote the names of fields, so that of a struct may be ambiguous.
    """
    try:
        return parse_type(text)
    except UnreadableType:
        return Atomic(text)


def has_instants(one: DataType) -> bool:
    """Whether values of a type depend on the time zone of the session."""
    return any(atom.kind == "timestamp" for atom in atoms(one))


def _is_representable(one: DataType) -> bool:
    """Whether Python has the values of a type: ``dict`` has no nested keys, and no duplicate names.

    Nor has it two instants with one local time as keys.
    """
    match one:
        case Atomic():
            return one.kind in (*_AS_IT_IS, *_FROM_TEXT)
        case Array(element):
            return _is_representable(element)
        case Map(key, value):
            is_key = isinstance(key, Atomic) and key.kind != "timestamp" and _is_representable(key)
            return is_key and _is_representable(value)
        case Struct(fields):
            names = {name for name, _ in fields}
            return len(names) == len(fields) and all(_is_representable(part) for _, part in fields)


def readable(types: Sequence[DataType], names: Sequence[str]) -> list[str] | None:
    """The expressions that read columns; ``None`` if all are read as they are."""
    if all(isinstance(one, Atomic) and _is_representable(one) for one in types):
        return None
    return [_expression(one, name) for one, name in zip(types, names, strict=True)]


def _expression(one: DataType, name: str) -> str:
    if not _is_representable(one):
        return f"to_json({name})" if one.kind == "variant" else shown_text(name, one)
    return name if isinstance(one, Atomic) else f"to_json({name}, {_JSON_OPTIONS})"


def converter(one: DataType, time_zone: str) -> Callable[[Any], Any]:
    """A function from a value as it arrives to a Python value. NULL stays ``None``."""
    zone = _zone(time_zone)
    if isinstance(one, Atomic):
        return lambda value: None if value is None else _plain(value, one, zone)
    if not _is_representable(one):
        return lambda value: value
    return lambda value: None if value is None else _from_json(_parsed(value), one, zone)


def _parsed(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def _plain(value: Any, one: Atomic, zone: dt.tzinfo) -> Any:
    match one.kind:
        case "decimal":
            return Decimal(value)
        case "date":
            # A year after 9999 has no value in Python.
            return dt.date.fromisoformat(value) if value.index("-", 1) == _LONGEST_YEAR else value
        case "timestamp":
            time = _time(value)
            return time.replace(tzinfo=zone) if isinstance(time, dt.datetime) else time
        case "timestamp_ntz":
            return _time(value)
        case _:
            return value


def _time(text: str) -> dt.datetime | str:
    if text.index("-", 1) != _LONGEST_YEAR:
        return text
    whole, _, fraction = text.partition(".")
    time = dt.datetime.fromisoformat(whole)
    return time.replace(microsecond=int(fraction.ljust(6, "0"))) if fraction else time


def _from_json(value: Any, one: DataType, zone: dt.tzinfo) -> Any:
    if value is None:
        return None
    match one:
        case Struct(fields):
            return {name: _from_json(value.get(name), part, zone) for name, part in fields}
        case Array(element):
            return [_from_json(item, element, zone) for item in value]
        case Map(Atomic() as key, held):
            return {_key(name, key, zone): _from_json(item, held, zone) for name, item in value.items()}
        case Atomic():
            return _atom_of_json(value, one, zone)
    raise AssertionError(one)  # a map with nested keys is read as text


def _atom_of_json(value: Any, one: Atomic, zone: dt.tzinfo) -> Any:
    match one.kind:
        case "double" | "float":
            return float(value)
        case "decimal":
            return Decimal(value)
        case "binary":
            return base64.b64decode(value)
        case "timestamp":
            return dt.datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone(zone)
        case "timestamp_ntz":
            return dt.datetime.fromisoformat(value)
        case "date":
            return dt.date.fromisoformat(value)
        case _:
            return value


def _key(text: str, one: Atomic, zone: dt.tzinfo) -> Any:
    """The key of a map, which JSON has as text."""
    if one.kind in _INTEGERS:
        return int(text)
    if one.kind == "boolean":
        return text == "true"
    if one.kind in ("double", "float"):
        return float(text)
    return text if one.kind == "binary" else _plain(text, one, zone)


def _zone(name: str) -> dt.tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        offset = dt.datetime.strptime(name.replace("Z", "+00:00"), "%z").tzinfo
        assert offset is not None
        return offset
