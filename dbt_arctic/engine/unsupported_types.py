"""Casts columns to strings whose values Python cannot represent.

A map whose keys are structs, arrays or maps cannot be a ``dict``, nor can a struct with duplicate field
names. Python takes two instants with the same local time, in the hour that is repeated at the end of summer
time, for the same key. pyspark has no year-month interval, and Python no year after 9999.
"""

from __future__ import annotations

from typing import Any

from dbt_arctic.data_type import parse_type
from dbt_arctic.engine.nested_json import shown_text
from dbt_arctic.engine.type_text import type_text

OUT_OF_RANGE = (ValueError, OverflowError)
"""The errors that Python raises for a date or time out of its range."""


def cast_unsupported(frame: Any, *, times_as_text: bool = False) -> Any:
    """The rows of a DataFrame, with a text in the columns that Python cannot represent.

    :param times_as_text: whether dates and times are converted as well.
    """
    types = [field.dataType for field in frame.schema.fields]
    if not any(_is_text_only(one, times_as_text) for one in types):
        return frame
    names = [f"c{number}" for number in range(len(types))]
    return frame.toDF(*names).selectExpr(
        *(
            shown_text(name, parse_type(type_text(type_))) if _is_text_only(type_, times_as_text) else name
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
