"""Iceberg's types in Spark's words, read from Iceberg's JSON (``"long"``, ``{"type": "struct", ...}``).

It knows neither pyiceberg nor Spark: pyiceberg writes the same JSON, so one translation serves both.
"""

from __future__ import annotations

import re
from typing import Any

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
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def spark_type(iceberg_type: Any) -> str:
    """The Spark type of an Iceberg type, spelled as ``DataType.simpleString()`` spells it.

    A type that Spark has no word for (``geometry``, ``time``) keeps Iceberg's name.

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
        fields = ",".join(f"{field['name']}:{spark_type(field['type'])}" for field in iceberg_type["fields"])
        return f"struct<{fields}>"
    if kind == "list":
        return f"array<{spark_type(iceberg_type['element'])}>"
    if kind == "map":
        return f"map<{spark_type(iceberg_type['key'])},{spark_type(iceberg_type['value'])}>"
    return str(kind)
