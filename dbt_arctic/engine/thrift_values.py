"""Values of a Spark Thrift server in plain Python.

The protocol has numbers, strings, booleans and bytes only. Dates, times and decimals arrive as text, and
nested values would arrive in a form that cannot be parsed, so queries return them as JSON.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_TIMES = "yyyy-MM-dd''T''HH:mm:ss.SSSSSS"
_JSON_OPTIONS = (
    "map('ignoreNullFields', 'false', "
    f"'timestampFormat', '{_TIMES}XXX', 'timestampNTZFormat', '{_TIMES}')".replace("''T''", "\\'T\\'")
)
_NESTED = ("struct<", "array<", "map<")
_AS_IT_IS = (
    "string",
    "char",
    "varchar",
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "double",
    "float",
)
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_FROM_TEXT = ("date", "timestamp", "timestamp_ntz", "decimal", "binary", "void")
_LONGEST_YEAR = 4


@dataclass(frozen=True)
class ValueType:
    """A Spark type.

    :param name: ``struct``, ``array``, ``map``, or the name of another type without parameters.
    :param parts: the types of the fields, of the elements, or of the keys and values.
    :param fields: the names of a struct's fields.
    """

    name: str
    parts: tuple[ValueType, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def is_nested(self) -> bool:
        """Whether it contains other types."""
        return bool(self.parts) or self.name == "struct"

    @property
    def has_instants(self) -> bool:
        """Whether its values depend on the time zone of the session."""
        return self.name == "timestamp" or any(part.has_instants for part in self.parts)

    @property
    def is_representable(self) -> bool:
        """Whether Python has its values: ``dict`` has no nested keys, and no duplicate names."""
        if self.name == "map" and self.parts[0].is_nested:
            return False
        if len(set(self.fields)) < len(self.fields):
            return False
        known = self.is_nested or self.name in (*_AS_IT_IS, *_FROM_TEXT)
        return known and all(part.is_representable for part in self.parts)


def parse_type(text: str) -> ValueType:
    """Parse the text of a Spark type.

    >>> parse_type("map<string,array<decimal(10,2)>>").parts[1].parts[0].name
    'decimal'
    """
    kind, is_nested, inner = text.partition("<")
    if not is_nested or not text.startswith(_NESTED):
        return ValueType(text.partition("(")[0])
    parts = _split(inner[:-1])
    if kind != "struct":
        return ValueType(kind, tuple(map(parse_type, parts)))
    named = [part.partition(":") for part in parts]
    return ValueType(
        kind,
        tuple(parse_type(type_) for _, _, type_ in named),
        tuple(name.strip("`") for name, _, _ in named),
    )


def _split(text: str) -> list[str]:
    """Split a list at the commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]


def readable(types: Sequence[ValueType], names: Sequence[str]) -> list[str] | None:
    """The expressions that read columns; ``None`` if all are read as they are."""
    if all(not one.is_nested and one.is_representable for one in types):
        return None
    return [_expression(one, name) for one, name in zip(types, names, strict=True)]


def _expression(one: ValueType, name: str) -> str:
    if not one.is_representable:
        return f"to_json({name})" if one.name in ("struct", "variant") else f"CAST({name} AS STRING)"
    return f"to_json({name}, {_JSON_OPTIONS})" if one.is_nested else name


def converter(one: ValueType, time_zone: str) -> Callable[[Any], Any]:
    """A function from a value as it arrives to a Python value. NULL stays ``None``."""
    zone = _zone(time_zone)
    if not one.is_nested or not one.is_representable:
        return lambda value: None if value is None else _plain(value, one, zone)
    return lambda value: None if value is None else _from_json(_parsed(value), one, zone)


def _parsed(text: str) -> Any:
    return json.loads(text, parse_float=Decimal)


def _plain(value: Any, one: ValueType, zone: dt.tzinfo) -> Any:
    match one.name:
        case "decimal":
            return Decimal(value)
        case "date":
            # A year after 9999 has no value in Python.
            return dt.date.fromisoformat(value) if value.index("-", 1) == _LONGEST_YEAR else value
        case "timestamp":
            moment = _moment(value)
            return moment.replace(tzinfo=zone) if isinstance(moment, dt.datetime) else moment
        case "timestamp_ntz":
            return _moment(value)
        case _:
            return value


def _moment(text: str) -> dt.datetime | str:
    if text.index("-", 1) != _LONGEST_YEAR:
        return text
    whole, _, fraction = text.partition(".")
    moment = dt.datetime.fromisoformat(whole)
    return moment.replace(microsecond=int(fraction.ljust(6, "0"))) if fraction else moment


def _from_json(value: Any, one: ValueType, zone: dt.tzinfo) -> Any:
    if value is None:
        return None
    match one.name:
        case "struct":
            named = zip(one.fields, one.parts, strict=True)
            return {name: _from_json(value.get(name), part, zone) for name, part in named}
        case "array":
            return [_from_json(item, one.parts[0], zone) for item in value]
        case "map":
            key, held = one.parts
            return {_key(name, key, zone): _from_json(item, held, zone) for name, item in value.items()}
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


def _key(text: str, one: ValueType, zone: dt.tzinfo) -> Any:
    """The key of a map, which JSON has as text."""
    if one.name in _INTEGERS:
        return int(text)
    if one.name == "boolean":
        return text == "true"
    if one.name in ("double", "float"):
        return float(text)
    return text if one.name == "binary" else _plain(text, one, zone)


def _zone(name: str) -> dt.tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        offset = dt.datetime.strptime(name.replace("Z", "+00:00"), "%z").tzinfo
        assert offset is not None
        return offset
