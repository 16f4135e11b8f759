"""Formats values for ``dbt show``, ``run_query`` and ``dbt-arctic sql``.

They are exact. Nested types become JSON.

dbt's tables and JSON do not support maps with other keys than strings, ``NaN``, intervals, bytes, or years
after 9999.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, parse_type
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.names import quote

_AS_THEY_ARE = frozenset({"tinyint", "smallint", "int", "bigint", "boolean", "string", "void"})
_WITH_PARTS = ("struct", "array", "map", "variant")


def shown_columns(columns: Sequence[ColumnInfo]) -> list[str] | None:
    """SQL of each column of a relation for display.

    ``None`` if all columns can be shown unchanged, or if column names are not unique.
    """
    names = [column.name.lower() for column in columns]
    if len(set(names)) < len(names) or all(column.type in _AS_THEY_ARE for column in columns):
        return None
    return [_shown(quote(column.name), column.type) for column in columns]


def _shown(name: str, type_: str) -> str:
    if type_ in _AS_THEY_ARE or parse_type(type_).kind in _WITH_PARTS:
        return name  # a nested value becomes JSON when its rows are read, as in run_query
    if type_ == "binary":
        return f"hex({name}) as {name}"  # not all bytes are valid characters
    return f"cast({name} as string) as {name}"


def table_value(value: Any, type_: DataType) -> Any:
    """A value from a cursor as a table cell; a nested value as JSON.

    >>> table_value({Decimal("1.50"): [b"a", None]}, Map(Atomic("decimal(3,2)"), Array(Atomic("binary"))))
    '{"1.50": ["YQ==", null]}'
    """
    match type_:
        case Array() | Map() | Struct() if not (value is None or isinstance(value, str)):
            return _json(value, type_)
        case Atomic("binary") if isinstance(value, bytes):
            return value.hex().upper()
        case Atomic("float" | "double") if isinstance(value, float):
            return _number(value, type_.text) if math.isfinite(value) else _text(value, type_)
        case Atomic("variant") if value is not None:
            return str(value)
    return value


def _json(value: Any, type_: DataType) -> str:
    # Python's JSON encoder supports only some kinds of keys, and 17 digits.
    match type_:
        case _ if value is None:
            return "null"
        case Array(element):
            return f"[{', '.join(_json(one, element) for one in value)}]"
        case Map(key, held):
            pairs = ((json.dumps(_text(one, key), ensure_ascii=False), value[one]) for one in value)
            return f"{{{', '.join(f'{name}: {_json(one, held)}' for name, one in pairs)}}}"
        case Struct(fields):
            named = ((json.dumps(name, ensure_ascii=False), _json(value[name], one)) for name, one in fields)
            return f"{{{', '.join(f'{name}: {held}' for name, held in named)}}}"
    if isinstance(value, bool | int):
        return json.dumps(value)
    is_number = isinstance(value, Decimal) or (isinstance(value, float) and math.isfinite(value))
    text = _text(value, type_)
    return text if is_number or type_ == Atomic("variant") else json.dumps(text, ensure_ascii=False)


def _text(value: Any, type_: DataType) -> str:
    """The text of an atomic value, or of the key of a map."""
    if isinstance(type_, Struct | Array):
        return _json(value, type_)
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case float():
            return repr(_number(value, type_.text if isinstance(type_, Atomic) else ""))
        case bytes():
            return base64.b64encode(value).decode()
        case date() | time():
            return value.isoformat()
    return str(value)


def _number(value: float, type_: str) -> float:
    """A four-byte float as the number that Spark shows: 0.1, not 0.10000000149011612."""
    if type_ != "float":
        return value
    stored = struct.pack("f", value)
    texts = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next((float(text) for text in texts if _packed(text) == stored), value)


def _packed(text: str) -> bytes:
    try:
        return struct.pack("f", float(text))
    except OverflowError:  # rounded up beyond the maximum of a float
        return b""
