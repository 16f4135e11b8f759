"""Casts columns to strings whose values Python cannot represent.

A map whose keys are structs, arrays or maps cannot be a ``dict``, nor can a struct with duplicate field
names. Python takes two instants with the same local time, in the hour that is repeated at the end of summer
time, for the same key. pyspark has no year-month interval, and Python no year after 9999.
"""

from __future__ import annotations

from typing import Any

from dbt_arctic.data_type import EXACT_JSON
from dbt_arctic.engine.literals import literal
from dbt_arctic.engine.type_text import type_text

OUT_OF_RANGE = (ValueError, OverflowError)
"""The errors that Python raises for a date or time out of its range."""


def cast_unsupported(frame: Any, *, times_as_text: bool = False) -> Any:
    """The rows of a DataFrame, with a text in the columns that Python cannot represent.

    The text of a nested value is JSON with each of its parts, NULL as well. A nested key of a map is a JSON
    text itself.

    :param times_as_text: whether dates and times are converted as well.
    """
    types = [field.dataType for field in frame.schema.fields]
    if not any(_is_text_only(one, times_as_text) for one in types):
        return frame
    names = [f"c{number}" for number in range(len(types))]
    return frame.toDF(*names).selectExpr(
        *(
            _text(name, type_) if _is_text_only(type_, times_as_text) else name
            for name, type_ in zip(names, types, strict=True)
        )
    )


def is_supported(schema: Any) -> bool:
    """Whether Python can represent all values of a schema, apart from the range of dates and times."""
    return not any(_is_text_only(field.dataType, False) for field in schema.fields)


def _is_text_only(data_type: Any, times: bool) -> bool:
    from pyspark.sql import types

    match data_type:
        case types.YearMonthIntervalType() | types.CalendarIntervalType():
            return True
        case types.DateType() | types.TimestampType() | types.TimestampNTZType():
            return times
        case types.ArrayType():
            return _is_text_only(data_type.elementType, times)
        case types.MapType():
            key = data_type.keyType
            no_keys = types.ArrayType | types.MapType | types.StructType | types.TimestampType
            return (
                isinstance(key, no_keys)
                or _is_text_only(key, times)
                or _is_text_only(data_type.valueType, times)
            )
        case types.StructType():
            names = [field.name for field in data_type.fields]
            return len(set(names)) < len(names) or any(
                _is_text_only(field.dataType, times) for field in data_type.fields
            )
    return False


def _text(name: str, data_type: Any) -> str:
    if data_type.typeName() in ("struct", "array", "map"):
        return f"to_json({_for_json(name, data_type, 0)}, {EXACT_JSON})"
    return f"CAST({name} AS STRING)"


def _for_json(value: str, data_type: Any, depth: int) -> str:
    """SQL of a value of which ``to_json`` shows every part.

    It writes the keys of a map without their fields, and does not support all intervals.

    :param value: SQL of the value, without side effects; it may be repeated in the result.
    :param depth: the number of lambda expressions around it.
    """
    from pyspark.sql import types

    one = f"_arctic_{depth}"
    match data_type:
        case types.YearMonthIntervalType() | types.CalendarIntervalType() | types.DayTimeIntervalType():
            return f"CAST({value} AS STRING)"
        case types.ArrayType():
            inner = _for_json(one, data_type.elementType, depth + 1)
            return value if inner == one else f"transform({value}, {one} -> {inner})"
        case types.MapType():
            key, held = _key(f"{one}.key", data_type.keyType, depth + 1), f"{one}.value"
            inner = _for_json(held, data_type.valueType, depth + 1)
            if (key, inner) == (f"{one}.key", held):
                return value
            pairs = f"transform(map_entries({value}), {one} -> struct({key}, {inner}))"
            return f"map_from_entries({pairs})"
        case types.StructType():
            return _struct_for_json(value, data_type, depth)
    return value


def _struct_for_json(value: str, data_type: Any, depth: int) -> str:
    fields = data_type.fields
    # Names may occur twice: the cast gives each field one of its own, by position.
    renamed = ", ".join(f"_{at}: {type_text(field.dataType)}" for at, field in enumerate(fields))
    each = [f"CAST({value} AS STRUCT<{renamed}>)._{at}" for at in range(len(fields))]
    inner = [_for_json(one, field.dataType, depth) for one, field in zip(each, fields, strict=True)]
    if inner == each:
        return value
    listed = ", ".join(f"{literal(field.name)}, {one}" for field, one in zip(fields, inner, strict=True))
    return f"IF({value} IS NULL, NULL, named_struct({listed}))"


def _key(value: str, data_type: Any, depth: int) -> str:
    """SQL of the text of a key of a map; ``value`` itself if it is a string."""
    match data_type.typeName():
        case "string":
            return value
        case "struct" | "array" | "map":
            return f"to_json({_for_json(value, data_type, depth)}, {EXACT_JSON})"
        case "binary":
            return f"base64({value})"
        case "timestamp":  # the local time alone may stand for two
            return f"date_format({value}, 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX')"
    return f"CAST({value} AS STRING)"
