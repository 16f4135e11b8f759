"""Converts Spark's rows to plain Python: tuples of values, with ``dict`` and ``list`` for nested types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

Convert = Callable[[Any], Any]


def plain_rows(rows: Iterable[Any], schema: Any, time_zone: str) -> list[tuple[Any, ...]]:
    """Convert rows of pyspark to tuples.

    Structs and maps become dicts, arrays lists, BINARY ``bytes``. A TIMESTAMP is an instant and becomes an
    aware ``datetime`` in the session's time zone; a TIMESTAMP_NTZ remains naive.
    """
    zone = _zone(time_zone)
    made = [(at, _converter(field.dataType, zone)) for at, field in enumerate(schema.fields)]
    converters = [(at, convert) for at, convert in made if convert is not None]
    if not converters:
        return [tuple(row) for row in rows]
    plain = []
    for row in rows:
        values = list(row)
        for at, convert in converters:
            if values[at] is not None:
                values[at] = convert(values[at])
        plain.append(tuple(values))
    return plain


def _converter(data_type: Any, zone: dt.tzinfo) -> Convert | None:
    from pyspark.sql import types

    if isinstance(data_type, types.TimestampType):
        # pyspark returns the instant as a naive datetime in the time zone of this process.
        return lambda value: value.astimezone(zone)
    if isinstance(data_type, types.BinaryType):
        return bytes
    if isinstance(data_type, types.ArrayType):
        element = _nullable(_converter(data_type.elementType, zone))
        return lambda value: [element(item) for item in value]
    if isinstance(data_type, types.MapType):
        key = _nullable(_converter(data_type.keyType, zone))
        item = _nullable(_converter(data_type.valueType, zone))
        return lambda value: {key(name): item(held) for name, held in value.items()}
    if isinstance(data_type, types.StructType):
        fields = [(field.name, _nullable(_converter(field.dataType, zone))) for field in data_type.fields]
        return lambda value: {
            name: convert(held) for (name, convert), held in zip(fields, value, strict=True)
        }
    return None


def _nullable(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def _zone(name: str) -> dt.tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        # Spark also accepts offsets (+02:00), which Python does not; the instant is the same in UTC.
        return dt.timezone.utc
