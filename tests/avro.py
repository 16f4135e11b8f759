"""Writes values in Avro's binary encoding, for messages of tests. It follows Avro's specification."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any


def encode(schema: Any, value: Any) -> bytes:
    """A value in the encoding of a schema, without a header.

    A value of a union is that of the first branch that fits.
    """
    return _encode(_resolved(schema, {}), value)


def _resolved(schema: Any, named: dict[str, Any]) -> Any:
    """A schema with the definition of a record in the place of its name."""
    if isinstance(schema, list):
        return [_resolved(one, named) for one in schema]
    if isinstance(schema, str):
        return named.get(schema, schema)
    if schema["type"] == "record":
        fields = [{**one, "type": _resolved(one["type"], named)} for one in schema["fields"]]
        named[schema["name"]] = {**schema, "fields": fields}
        return named[schema["name"]]
    return {key: _resolved(one, named) if key in ("items", "values") else one for key, one in schema.items()}


def _encode(schema: Any, value: Any) -> bytes:
    if isinstance(schema, list):
        at = next(place for place, one in enumerate(schema) if _fits(one, value))
        return _long(at) + _encode(schema[at], value)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return _encode(kind, value)
    if kind == "record":
        return b"".join(_encode(one["type"], value[one["name"]]) for one in schema["fields"])
    if kind == "array":
        return _blocks([_encode(schema["items"], one) for one in value])
    if kind == "map":
        pairs = [_encode("string", key) + _encode(schema["values"], one) for key, one in value.items()]
        return _blocks(pairs)
    if kind == "enum":
        return _long(schema["symbols"].index(value))
    if kind in ("int", "long"):
        return _long(value)
    if kind == "null":
        return b""
    if kind == "boolean":
        return bytes([value])
    if kind in ("float", "double"):
        return struct.pack("<f" if kind == "float" else "<d", value)
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()  # operators would round to 28 digits
        number = int("".join(map(str, digits))) * 10 ** (schema["scale"] + int(exponent)) * (-1) ** sign
        value = number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)
    raw = value.encode() if isinstance(value, str) else value
    return raw if kind == "fixed" else _long(len(raw)) + raw


def framed(number: int, schema: Any, value: Any) -> bytes:
    """A value as a registry's clients write it: a byte 0, the id of the schema, and the value."""
    return b"\0" + struct.pack(">I", number) + encode(schema, value)


def _fits(schema: Any, value: Any) -> bool:
    kind = schema["type"] if isinstance(schema, dict) else schema
    if value is None:
        return kind == "null"
    known = {str: "string", bool: "boolean", float: "double", dict: "record", list: "array"}
    if isinstance(value, int) and not isinstance(value, bool):
        return kind in ("int", "long")
    if isinstance(value, bytes | Decimal):
        return kind == "bytes"
    return kind == known[type(value)]


def _blocks(items: list[bytes]) -> bytes:
    return (_long(len(items)) + b"".join(items) if items else b"") + _long(0)


def _long(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


__all__ = ["encode", "framed"]
