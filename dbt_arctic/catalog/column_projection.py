"""Converts the columns of a data file to the current ones, at every depth by field id.

A field that the file lacks has its default or is NULL, and a widened one gets its current type. pyiceberg's
own conversion reads a NULL list of structs as an empty list, and loses renamed fields of structs in lists of
maps (0.12).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pyarrow
import pyarrow.compute
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType, UUIDType


def as_today(
    rows: pyarrow.Table, stored: StructType, today: StructType, constants: Mapping[int, Any]
) -> pyarrow.Table:
    """The rows of a file with the columns ``today``. Strings, binary values and lists have large types.

    :param rows: with the columns ``stored``.
    :param constants: by field id, the values of columns that are not in the file, as Iceberg stores them.
    """
    schema = arrow_schema(today)
    batches = [
        pyarrow.RecordBatch.from_struct_array(_struct(batch.to_struct_array(), stored, today, constants))
        for batch in rows.combine_chunks().to_batches()
    ]
    return pyarrow.Table.from_batches(batches, schema)


def arrow_schema(today: StructType) -> pyarrow.Schema:
    """The columns of ``as_today``. A UUID is text and a fixed value is binary, as in Spark."""
    return pyarrow.schema(_arrow(today))


def _struct(
    values: pyarrow.StructArray, stored: StructType, today: StructType, constants: Mapping[int, Any]
) -> pyarrow.StructArray:
    places = {field.field_id: place for place, field in enumerate(stored.fields)}
    arrays = []
    for field in today.fields:
        place = places.get(field.field_id)
        if place is None:
            value = constants.get(field.field_id, field.initial_default)
            arrays.append(_missing(field, len(values), value))
        else:
            arrays.append(_converted(values.field(place), stored.fields[place].field_type, field.field_type))
    return pyarrow.StructArray.from_arrays(arrays, fields=list(_arrow(today)), mask=_nulls(values))


def _missing(field: NestedField, count: int, value: Any) -> pyarrow.Array:
    type_ = _arrow(field.field_type)
    if isinstance(value, UUID):
        value = str(value)
    return (
        pyarrow.nulls(count, type_) if value is None else pyarrow.repeat(pyarrow.scalar(value, type_), count)
    )


def _converted(values: Any, stored: IcebergType, today: IcebergType) -> pyarrow.Array:
    type_ = _arrow(today)
    match stored, today:
        case StructType(), StructType():
            return _struct(values, stored, today, {})
        case ListType(), ListType():
            elements = _converted(values.values, stored.element_type, today.element_type)
            offsets = _offsets(values).cast(pyarrow.int64())
            return pyarrow.LargeListArray.from_arrays(offsets, elements, type=type_, mask=_nulls(values))
        case MapType(), MapType():
            keys = _converted(values.keys, stored.key_type, today.key_type)
            items = _converted(values.items, stored.value_type, today.value_type)
            return pyarrow.MapArray.from_arrays(
                _offsets(values), keys, items, type=type_, mask=_nulls(values)
            )
    if isinstance(today, UUIDType):
        return _texts_of(values)
    return values.cast(type_)


def _texts_of(uuids: pyarrow.Array) -> pyarrow.Array:
    stored = uuids.storage if isinstance(uuids, pyarrow.ExtensionArray) else uuids
    texts = [None if value is None else str(UUID(bytes=value)) for value in stored.to_pylist()]
    return pyarrow.array(texts, pyarrow.large_string())


def _offsets(values: Any) -> pyarrow.Array:
    """The places of the elements of lists. A slice of an array is copied, because Arrow expects that here."""
    return pyarrow.compute.add(values.offsets, pyarrow.scalar(0, values.offsets.type))


def _nulls(values: pyarrow.Array) -> pyarrow.Array | None:
    return values.is_null() if values.null_count else None


def _arrow(type_: IcebergType) -> Any:
    return _as_in_spark(schema_to_pyarrow(type_, include_field_ids=False))


def _as_in_spark(type_: pyarrow.DataType) -> pyarrow.DataType:
    if pyarrow.types.is_struct(type_):
        return pyarrow.struct([_field_as_in_spark(field) for field in type_])
    if pyarrow.types.is_large_list(type_):
        return pyarrow.large_list(_field_as_in_spark(type_.value_field))
    if pyarrow.types.is_map(type_):
        return pyarrow.map_(_field_as_in_spark(type_.key_field), _field_as_in_spark(type_.item_field))
    if isinstance(type_, pyarrow.UuidType):
        return pyarrow.large_string()
    return pyarrow.large_binary() if pyarrow.types.is_fixed_size_binary(type_) else type_


def _field_as_in_spark(field: pyarrow.Field) -> pyarrow.Field:
    return field.with_type(_as_in_spark(field.type))
