"""Finds out whether the column of a partition field has another type in the query that replaces a table.

In Iceberg, a column of the new table has the id of the old column with its name. So it also becomes the
column of the fields of all earlier partition specs. A transform that its type does not have fails the
statement, and values that were stored as another type make ``expire_snapshots`` fail from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_arctic.catalog.api import TableState
from dbt_arctic.data_type import Atomic, DataType, Struct, parse_type
from dbt_arctic.keyed.layout import partition_column
from dbt_arctic.keyed.table import Column
from dbt_arctic.keyed.widening import can_widen

_STORED_AS = {"tinyint": "int", "smallint": "int", "char": "string", "varchar": "string"}
_LOCAL_OR_NOT = {"timestamp", "timestamp_ntz"}
"""Types whose values Iceberg stores in the same way, and that have the same transforms."""


def gets_other_partition_values(state: TableState, columns: Sequence[Column]) -> bool:
    """Whether a field of one of a table's partition specs would have values of another type.

    :param columns: the columns of the query that replaces the table.
    """
    before = {column.name: column.type for column in state.columns}
    after = {column.name: column.type for column in columns}
    for field in state.partition_fields:
        path = partition_column(field.text)
        old, new = _type_at(path, before), _type_at(path, after)
        if old is not None and new is not None and not _is_same(old, new):
            return True
    return False


def _type_at(path: str, types: Mapping[str, str]) -> DataType | None:
    """The type of a column or of a nested field. Iceberg compares their names case-sensitively."""
    if path in types:
        return parse_type(types[path])
    name, _, rest = path.partition(".")
    found: DataType | None = parse_type(types[name]) if name in types else None
    for part in rest.split("."):
        found = dict(found.fields).get(part) if isinstance(found, Struct) else None
    return found


def _is_same(old: DataType, new: DataType) -> bool:
    """Whether values of both types are stored in the same way, or the new type is wider."""
    if not (isinstance(old, Atomic) and isinstance(new, Atomic)):
        return False
    before, after = _stored(old), _stored(new)
    return before == after or {before, after} == _LOCAL_OR_NOT or can_widen(before, after)


def _stored(type_: Atomic) -> str:
    kind = _STORED_AS.get(type_.kind, type_.kind)
    return type_.text if kind == "decimal" else kind
