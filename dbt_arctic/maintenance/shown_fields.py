"""Rows with the fields and types that a view names, while a run changes the columns of its tables.

Until the run publishes the new view, the tables may already have more fields and wider types. This is what
``columns_at.projected`` is for rows of Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow
import pyarrow.compute

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, decimal_digits, parse_type

_NUMBERS = {
    "int": pyarrow.int32(),
    "bigint": pyarrow.int64(),
    "float": pyarrow.float32(),
    "double": pyarrow.float64(),
}
"""The types that may be widened, without decimals."""
_VOID = Atomic("void")


def with_shown_fields(rows: pyarrow.Table, types: Mapping[str, str]) -> pyarrow.Table:
    """The rows in the types of a view.

    :param types: Spark type by column. All of its fields are in the rows, except those without a type, which
        are NULL.
    """
    columns = []
    for name in rows.column_names:
        type_ = parse_type(types[name])
        chunks = rows.column(name).chunks or [rows.column(name).combine_chunks()]
        columns.append(pyarrow.chunked_array([_shown(chunk, type_) for chunk in chunks]))
    return pyarrow.table(columns, rows.column_names)


def _shown(values: Any, type_: DataType) -> pyarrow.Array:
    nulls = values.is_null() if values.null_count else None
    match type_:
        case Struct(fields):
            there = [field.name.lower() for field in values.type]
            arrays = [
                pyarrow.nulls(len(values))
                if one == _VOID
                else _shown(values.field(there.index(name.lower())), one)
                for name, one in fields
            ]
            return pyarrow.StructArray.from_arrays(arrays, [name for name, _ in fields], mask=nulls)
        case Array(element):
            shown = _shown(values.values, element)
            return pyarrow.LargeListArray.from_arrays(_offsets(values), shown, mask=nulls)
        case Map(_, item):
            shown = _shown(values.items, item)
            return pyarrow.MapArray.from_arrays(_offsets(values), values.keys, shown, mask=nulls)
        case Atomic("void"):
            return pyarrow.nulls(len(values))
        case Atomic(text) if text in _NUMBERS:
            return values.cast(_NUMBERS[text])
        case Atomic(text) if (digits := decimal_digits(text)) is not None:
            return values.cast(pyarrow.decimal128(digits.precision, digits.scale))
    return values


def _offsets(values: Any) -> pyarrow.Array:
    """A copy, because Arrow does not accept those of a slice."""
    return pyarrow.compute.add(values.offsets, pyarrow.scalar(0, values.offsets.type))
