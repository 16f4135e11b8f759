"""Finds the columns of an Iceberg table in the schema of a Parquet file, by field id.

Only the structure is converted, and the types of values are not: a file may have columns that the table
lacks, of any type. A file without field ids, as of Hive, has those of the table's name mapping.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StringType, StructType

_FIELD_ID = b"PARQUET:field_id"
_NONE = -1
"""The id of a field that the table does not have."""
_ANY_VALUE = StringType()


def stored_fields(file: pyarrow.Schema, mapping: NameMapping | None) -> StructType | None:
    """The fields of a file, in which values have any type; ``None`` if the file does not have field ids.

    :param mapping: of names to field ids, for a file without ids.
    """
    if any(map(_has_ids, file)):
        return StructType(*(_field(field, None) for field in file))
    if mapping is None:
        return None
    return StructType(*(_field(field, mapping.root) for field in file))


def _has_ids(field: pyarrow.Field) -> bool:
    if _FIELD_ID in (field.metadata or {}):
        return True
    return pyarrow.types.is_nested(field.type) and any(
        _has_ids(field.type.field(place)) for place in range(field.type.num_fields)
    )


def _field(field: pyarrow.Field, named: Sequence[MappedField] | None, name: str | None = None) -> NestedField:
    """A field with its id.

    :param named: the mapping of the names here; ``None`` in a file with ids.
    :param name: what the mapping calls it, if that is not the name in the file.
    """
    if named is None:
        field_id = int((field.metadata or {}).get(_FIELD_ID, _NONE))
        inside = None
    else:
        found = next((one for one in named if (name or field.name) in one.names), None)
        field_id = _NONE if found is None or found.field_id is None else found.field_id
        inside = [] if found is None else found.fields
    return NestedField(field_id, field.name, _type(field.type, inside), required=False)


def _type(type_: pyarrow.DataType, named: Sequence[MappedField] | None) -> IcebergType:
    if pyarrow.types.is_struct(type_):
        return StructType(*(_field(field, named) for field in type_))
    if pyarrow.types.is_list(type_) or pyarrow.types.is_large_list(type_):
        element = _field(type_.value_field, named, "element")
        return ListType(element.field_id, element.field_type, element_required=False)
    if pyarrow.types.is_map(type_):
        key, value = _field(type_.key_field, named, "key"), _field(type_.item_field, named, "value")
        return MapType(key.field_id, key.field_type, value.field_id, value.field_type, value_required=False)
    return _ANY_VALUE
