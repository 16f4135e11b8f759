"""Translates Iceberg's types to Spark types, from Iceberg's JSON (``"long"``, ``{"type": "struct", ...}``).

Depends neither on pyiceberg nor on Spark. pyiceberg writes the same JSON, so one translation is enough.
"""

from __future__ import annotations

import json
import re
from typing import Any

from dbt_arctic.errors import StatementError

_PRIMITIVES = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "timestamp_ns": "timestamp_ntz",
    "timestamptz_ns": "timestamp",
    "string": "string",
    "uuid": "string",
    "binary": "binary",
    "variant": "variant",
    "unknown": "void",
}
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PRIMITIVE = re.compile(r"[a-z_]+(?: [a-z]+)*(?:\([\w ,:.]*\))?(?: collate \w+)?", re.IGNORECASE)
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def spark_type(iceberg_type: Any) -> str:
    """The Spark type of an Iceberg type, in the form of ``DataType.simpleString()``.

    Field names are quoted where Spark could not parse them otherwise. A type without an equivalent in Spark
    (``geometry``, ``time``) keeps Iceberg's name.

    >>> spark_type("long")
    'bigint'
    >>> spark_type({"type": "list", "element-id": 2, "element": "timestamptz", "element-required": False})
    'array<timestamp>'
    """
    if isinstance(iceberg_type, dict):
        return _nested(iceberg_type)
    name = str(iceberg_type)
    if name in _PRIMITIVES:
        return _PRIMITIVES[name]
    if decimal := _DECIMAL.fullmatch(name):
        return f"decimal({decimal[1]},{decimal[2]})"
    if name.startswith("fixed["):
        return "binary"
    return name


def _nested(iceberg_type: dict[str, Any]) -> str:
    kind = iceberg_type["type"]
    if kind == "struct":
        fields = (
            f"{_field_name(field['name'])}:{spark_type(field['type'])}" for field in iceberg_type["fields"]
        )
        return f"struct<{','.join(fields)}>"
    if kind == "list":
        return f"array<{spark_type(iceberg_type['element'])}>"
    if kind == "map":
        return f"map<{spark_type(iceberg_type['key'])},{spark_type(iceberg_type['value'])}>"
    return str(kind)


def numbered(iceberg_type: Any) -> str:
    """The JSON of a nested type, reduced to names, field ids and Spark types; empty for other types.

    >>> numbered({"type": "list", "element-id": 2, "element": "int", "element-required": False})
    '{"element": "int", "element-id": 2, "type": "list"}'
    >>> numbered("int")
    ''
    """
    return json.dumps(_numbered(iceberg_type), sort_keys=True) if isinstance(iceberg_type, dict) else ""


def _numbered(iceberg_type: Any) -> Any:
    if not isinstance(iceberg_type, dict):
        return spark_type(iceberg_type)
    kind = iceberg_type["type"]
    if kind == "struct":
        fields = [
            {
                "id": one["id"],
                "name": one["name"],
                "type": _numbered(one["type"]),
                "spark_type": spark_type(one["type"]),
                **({"initial": initial} if (initial := initial_json(one)) else {}),
            }
            for one in iceberg_type["fields"]
        ]
        return {"type": kind, "fields": fields}
    parts = [part for part in ("element", "key", "value") if part in iceberg_type]
    inside: dict[str, Any] = {part: _numbered(iceberg_type[part]) for part in parts}
    return {"type": kind, **inside, **{f"{part}-id": iceberg_type[f"{part}-id"] for part in parts}}


def initial_json(field: dict[str, Any]) -> str:
    """JSON of the value that a column or field has in rows that were written without it; empty for NULL.

    >>> initial_json({"name": "n", "type": "int", "initial-default": 5}), initial_json({"name": "n"})
    ('5', '')
    """
    value = field.get("initial-default")
    return "" if value is None else json.dumps(value)


def requoted(described: str) -> str:
    """Quote the field names of a type as DESCRIBE prints it, so that Spark parses it as that type.

    A name that looks like a part of the type is ambiguous and parsed as the type.

    >>> requoted("struct<we ird:int,b:array<int>>")
    'struct<`we ird`:int,b:array<int>>'
    """
    if "struct<" not in described:
        return described
    read = _read(described, 0)
    if read is None or read[1] != len(described):
        raise StatementError(
            "The type of a column cannot be determined from Spark's description of it.",
            where=described,
            why="the name of a field inside it has characters that have a meaning in a type",
            fix="rename the field: ALTER TABLE ... RENAME COLUMN",
        )
    return read[0]


def _read(text: str, at: int) -> tuple[str, int] | None:
    """Parse the type that begins at a position, and return it with its end."""
    if text.startswith("struct<", at):
        return _read_struct(text, at + len("struct<"))
    if text.startswith("array<", at):
        element = _read(text, at + len("array<"))
        if element is None or not text.startswith(">", element[1]):
            return None
        return f"array<{element[0]}>", element[1] + 1
    if text.startswith("map<", at):
        key = _read(text, at + len("map<"))
        value = _read(text, key[1] + 1) if key is not None and text.startswith(",", key[1]) else None
        if key is None or value is None or not text.startswith(">", value[1]):
            return None
        return f"map<{key[0]},{value[0]}>", value[1] + 1
    found = _PRIMITIVE.match(text, at)
    return None if found is None else (found[0], found.end())


def _read_struct(text: str, at: int) -> tuple[str, int] | None:
    fields: list[str] = []
    colon = text.find(":", at)
    while colon >= 0:
        read = _read(text, colon + 1)
        if read is not None and text[read[1] : read[1] + 1] in (",", ">"):
            fields.append(f"{_field_name(text[at:colon])}:{read[0]}")
            at = read[1] + 1
            if text[read[1]] == ">":
                return f"struct<{','.join(fields)}>", at
            colon = at
        colon = text.find(":", colon + 1)
    return None


def _field_name(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
