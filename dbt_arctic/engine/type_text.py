"""Formats Spark types as text that Spark can parse, because ``simpleString()`` does not quote field names.

This module must not import pyspark: its types are passed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def type_text(data_type: Any) -> str:
    """The text of a pyspark type. If all names are plain, it is the result of ``simpleString()``."""
    kind = data_type.typeName()
    if kind == "struct":
        fields = (f"{field_name(field.name)}:{type_text(field.dataType)}" for field in data_type.fields)
        return f"struct<{','.join(fields)}>"
    if kind == "array":
        return f"array<{type_text(data_type.elementType)}>"
    if kind == "map":
        return f"map<{type_text(data_type.keyType)},{type_text(data_type.valueType)}>"
    return str(data_type.simpleString())


def types_in(data_type: Any) -> Iterator[Any]:
    """A pyspark type, and all types that it contains."""
    yield data_type
    match data_type.typeName():
        case "struct":
            parts = [field.dataType for field in data_type.fields]
        case "array":
            parts = [data_type.elementType]
        case "map":
            parts = [data_type.keyType, data_type.valueType]
        case _:
            parts = []
    for part in parts:
        yield from types_in(part)


def field_name(name: str) -> str:
    """The name of a field inside a type.

    >>> field_name("a"), field_name("a:int,b")
    ('a', '`a:int,b`')
    """
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"
