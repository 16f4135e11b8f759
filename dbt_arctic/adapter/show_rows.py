"""Converts Arrow tables to rows that commands print, in the same form as the rows of a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow

from dbt_arctic.adapter.show import table_value
from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct


class _Key(dict[Any, Any]):
    """A struct or a map that is the key of a map."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class _ListKey(list[Any]):
    """A list that is the key of a map."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def rows_of(table: pyarrow.Table, *, as_cells: bool) -> list[tuple[Any, ...]]:
    """The rows of a table.

    :param as_cells: whether values are in the form of ``table_value``.
    """
    columns = [_values(column) for column in table.columns]
    if as_cells:
        types = [data_type(field.type) for field in table.schema]
        columns = [
            [table_value(value, type_) for value in values]
            for values, type_ in zip(columns, types, strict=True)
        ]
    return list(zip(*columns, strict=True)) if columns else []


def _values(column: pyarrow.ChunkedArray) -> list[Any]:
    convert = _converter(column.type)
    try:
        values = column.to_pylist()
    except (ValueError, OverflowError):
        # Python has no years after 9999.
        values = column.cast(_with_times_as_text(column.type)).to_pylist()
    return [None if value is None else convert(value) for value in values]


def _with_times_as_text(type_: pyarrow.DataType) -> pyarrow.DataType:
    if pyarrow.types.is_temporal(type_):
        return pyarrow.large_string()
    if pyarrow.types.is_struct(type_):
        return pyarrow.struct([field.with_type(_with_times_as_text(field.type)) for field in type_])
    if pyarrow.types.is_large_list(type_):
        return pyarrow.large_list(_with_times_as_text(type_.value_type))
    if pyarrow.types.is_map(type_):
        return pyarrow.map_(_with_times_as_text(type_.key_type), _with_times_as_text(type_.item_type))
    return type_


def _converter(type_: pyarrow.DataType) -> Callable[[Any], Any]:
    """A function that makes dictionaries of maps, which are lists of pairs."""
    if pyarrow.types.is_map(type_):
        key, item = _converter(type_.key_type), _converter(type_.item_type)
        return lambda pairs: {
            _hashable(key(one)): None if other is None else item(other) for one, other in pairs
        }
    if pyarrow.types.is_struct(type_):
        fields = {field.name: _converter(field.type) for field in type_}
        return lambda value: {
            name: None if value[name] is None else convert(value[name]) for name, convert in fields.items()
        }
    if pyarrow.types.is_list(type_) or pyarrow.types.is_large_list(type_):
        element = _converter(type_.value_type)
        return lambda values: [None if one is None else element(one) for one in values]
    return lambda value: value


def _hashable(key: Any) -> Any:
    if isinstance(key, dict):
        return _Key(key)
    return _ListKey(key) if isinstance(key, list) else key


def data_type(type_: pyarrow.DataType) -> DataType:
    """The Spark type of an Arrow type, as far as the display of a value depends on it."""
    if pyarrow.types.is_map(type_):
        return Map(data_type(type_.key_type), data_type(type_.item_type))
    if pyarrow.types.is_struct(type_):
        return Struct(tuple((field.name, data_type(field.type)) for field in type_))
    if pyarrow.types.is_list(type_) or pyarrow.types.is_large_list(type_):
        return Array(data_type(type_.value_type))
    if pyarrow.types.is_binary(type_) or pyarrow.types.is_large_binary(type_):
        return Atomic("binary")
    if pyarrow.types.is_decimal(type_):
        return Atomic(f"decimal({type_.precision},{type_.scale})")
    names = {pyarrow.float32(): "float", pyarrow.float64(): "double", pyarrow.large_string(): "string"}
    return Atomic(names.get(type_, str(type_)))
