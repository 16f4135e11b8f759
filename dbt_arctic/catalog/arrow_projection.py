"""Converts the columns of a data file to the current ones, at every depth by field id.

A field that the file lacks has its default or is NULL, and a widened one gets its current type. pyiceberg's
own conversion reads a NULL list of structs as an empty list, and loses renamed fields of structs in lists of
maps (0.12).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType


def as_today(
    rows: pyarrow.Table, stored: StructType, today: StructType, constants: Mapping[int, Any]
) -> pyarrow.Table:
    """The rows of a file with the columns ``today``. Strings, binary values and lists have large types.

    :param rows: with the columns ``stored``.
    :param constants: by field id, the values of columns that are not in the file, as Iceberg stores them.
    """
    schema = pyarrow.schema(_arrow(today))
    batches = [
        pyarrow.RecordBatch.from_struct_array(_struct(batch.to_struct_array(), stored, today, constants))
        for batch in rows.combine_chunks().to_batches()
    ]
    return pyarrow.Table.from_batches(batches, schema)


def _struct(
    values: pyarrow.StructArray, stored: StructType, today: StructType, constants: Mapping[int, Any]
) -> pyarrow.StructArray:
    places = {field.field_id: place for place, field in enumerate(stored.fields)}
    arrays = []
    for field in today.fields:
        place = places.get(field.field_id)
        if place is None:
            arrays.append(_missing(field, len(values), constants.get(field.field_id)))
        else:
            arrays.append(_converted(values.field(place), stored.fields[place].field_type, field.field_type))
    return pyarrow.StructArray.from_arrays(arrays, fields=list(_arrow(today)), mask=_nulls(values))


def _missing(field: NestedField, count: int, constant: Any) -> pyarrow.Array:
    value = field.initial_default if constant is None else constant
    type_ = _arrow(field.field_type)
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
            offsets = values.offsets.cast(pyarrow.int64())
            return pyarrow.LargeListArray.from_arrays(offsets, elements, type=type_, mask=_nulls(values))
        case MapType(), MapType():
            keys = _converted(values.keys, stored.key_type, today.key_type)
            items = _converted(values.items, stored.value_type, today.value_type)
            return pyarrow.MapArray.from_arrays(values.offsets, keys, items, type=type_, mask=_nulls(values))
    if isinstance(type_, pyarrow.BaseExtensionType) and values.type == type_.storage_type:
        return type_.wrap_array(values)
    return values.cast(type_)


def _nulls(values: pyarrow.Array) -> pyarrow.Array | None:
    return values.is_null() if values.null_count else None


def _arrow(type_: IcebergType) -> Any:
    return schema_to_pyarrow(type_, include_field_ids=False)
