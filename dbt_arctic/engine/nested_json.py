"""SQL of the JSON of a nested value with each of its parts, whatever their types."""

from __future__ import annotations

from dbt_arctic.data_type import EXACT_JSON, Array, Atomic, DataType, Map, Struct, type_text
from dbt_arctic.engine.literals import literal


def shown_text(value: str, type_: DataType) -> str:
    """SQL of the text of a value: JSON with each part of a nested one, NULL as well.

    A nested key of a map is a JSON text itself.

    :param value: SQL of the value, without side effects; it may be repeated in the result.

    >>> from dbt_arctic.data_type import parse_type
    >>> shown_text("a", parse_type("interval year to month"))
    'CAST(a AS STRING)'
    """
    if isinstance(type_, Atomic):
        return f"CAST({value} AS STRING)"
    return f"to_json({_for_json(value, type_, 0)}, {EXACT_JSON})"


def _for_json(value: str, type_: DataType, depth: int) -> str:
    """SQL of a value of which ``to_json`` shows every part.

    It writes the keys of a map without their fields, and does not support all intervals.

    :param depth: the number of lambda expressions around it.
    """
    one = f"_arctic_{depth}"
    match type_:
        case Atomic() if type_.kind == "interval":
            return f"CAST({value} AS STRING)"
        case Array(element):
            inner = _for_json(one, element, depth + 1)
            return value if inner == one else f"transform({value}, {one} -> {inner})"
        case Map():
            key, held = _key(f"{one}.key", type_.key, depth + 1), f"{one}.value"
            inner = _for_json(held, type_.value, depth + 1)
            if (key, inner) == (f"{one}.key", held):
                return value
            return f"map_from_entries(transform(map_entries({value}), {one} -> struct({key}, {inner})))"
        case Struct(fields):
            # Names may occur twice: the cast gives each field one of its own, by position.
            renamed = ", ".join(f"_{at}: {type_text(part)}" for at, (_, part) in enumerate(fields))
            each = [f"CAST({value} AS STRUCT<{renamed}>)._{at}" for at in range(len(fields))]
            parts = [_for_json(read, part, depth) for read, (_, part) in zip(each, fields, strict=True)]
            if parts == each:
                return value
            names = [literal(name) for name, _ in fields]
            listed = ", ".join(f"{name}, {part}" for name, part in zip(names, parts, strict=True))
            return f"IF({value} IS NULL, NULL, named_struct({listed}))"
    return value


def _key(value: str, type_: DataType, depth: int) -> str:
    """SQL of the text of a key of a map; ``value`` itself if it is a string."""
    if not isinstance(type_, Atomic):
        return f"to_json({_for_json(value, type_, depth)}, {EXACT_JSON})"
    match type_.kind:
        case "string":
            return value
        case "binary":
            return f"base64({value})"
        case "timestamp":  # the local time alone may stand for two
            return f"date_format({value}, 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX')"
    return f"CAST({value} AS STRING)"
