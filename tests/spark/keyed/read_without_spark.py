"""Each time a test reads a keyed table with Spark, ``dbt_arctic.read`` has to find the same rows."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.table_read import read_table

Row = dict[str, Any]


def require_same_rows(
    catalog: CatalogReader, name: Name, columns: Sequence[str], read_by_spark: Callable[[], list[Row]]
) -> list[Row]:
    """The rows that Spark reads. Other sessions may write at the same time, so a difference is read again."""
    for _ in range(3):
        rows = read_by_spark()
        table = read_table(catalog, name, columns)
        found = Counter(repr(as_text(row)) for row in table.to_pylist())
        expected = Counter(repr(as_text(of_json(row, table.schema))) for row in rows)
        if found == expected:
            return rows
    assert found == expected, "dbt_arctic.read and Spark"
    return rows


def of_json(row: Row, schema: pyarrow.Schema) -> Row:
    return {name: _value(value, schema.field(name).type) for name, value in row.items()}


def _value(value: Any, type_: pyarrow.DataType) -> Any:
    """A value of Spark's JSON, in Python's types."""
    if value is None:
        return None
    if pyarrow.types.is_struct(type_):
        return {field.name: _value(value[field.name], field.type) for field in type_}
    if pyarrow.types.is_large_list(type_):
        return [_value(one, type_.value_type) for one in value]
    if pyarrow.types.is_map(type_):
        return [(key, _value(one, type_.item_type)) for key, one in value.items()]
    if pyarrow.types.is_floating(type_):
        return float(value)
    if pyarrow.types.is_decimal(type_):
        return Decimal(value)
    if pyarrow.types.is_large_binary(type_):
        return base64.b64decode(value)
    if pyarrow.types.is_timestamp(type_):
        return datetime.fromisoformat(value)
    return str(value) if pyarrow.types.is_date(type_) else value


def as_text(value: Any) -> Any:
    """A value in a form that is the same for equal values. Spark's JSON has no microseconds."""
    match value:
        case datetime():
            whole = value - timedelta(microseconds=value.microsecond % 1000)
            return str(whole if whole.tzinfo is None else whole.astimezone(timezone.utc))
        case dict():
            return {name: as_text(one) for name, one in value.items()}
        case list():
            pairs = [
                (str(one[0]), as_text(one[1])) if isinstance(one, tuple) else as_text(one) for one in value
            ]
            return sorted(pairs) if pairs and isinstance(pairs[0], tuple) else pairs
        case Decimal():
            return str(value.normalize() + 0)
        case bool() | int() | float() | bytes() | str() | None:
            return value
    return str(value)
