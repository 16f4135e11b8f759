"""The columns of a table in a read of an older snapshot, or while the columns are being changed.

Spark reads a snapshot with the columns of that snapshot, and a view fails if the types of its source differ
from the declared ones. Reads therefore convert each value to the table's current type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, atoms, parse_type
from dbt_arctic.keyed.assignment import stored_value
from dbt_arctic.keyed.initial_default import initial_value
from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.keyed.nested import as_today
from dbt_arctic.keyed.schema_difference import compare_columns
from dbt_arctic.keyed.table import Column, KeyedTable
from dbt_arctic.keyed.widening import PROMOTED


@dataclass(frozen=True)
class ColumnThen:
    """A column at a snapshot.

    :param type: its type there.
    :param nested: its nested type there, as in ``CatalogColumn.nested``; empty if unknown.
    :param nested_today: its current nested type; empty if unknown.
    :param type_today: its current type in the same table; empty if unknown.
    :param initial: of a column that the snapshot lacks, the value of its rows, as ``CatalogColumn.initial``.
    """

    type: str
    nested: str = ""
    type_today: str = ""
    nested_today: str = ""
    initial: str = ""


_VOID = Atomic("void")

ColumnsAt = Mapping[int, Mapping[str, ColumnThen]]
"""The columns of snapshots by snapshot id. Snapshots that are not listed have the current columns."""


def select_columns(table: KeyedTable, snapshot_id: int | None, known: ColumnsAt, alias: str = "") -> str:
    """SQL of the current columns of the table in a read of a snapshot.

    A column that was added later is NULL there, and a widened one has its old type until the next commit. The
    same applies to nested fields.
    """
    present = known.get(snapshot_id) if snapshot_id is not None else None
    prefix = f"{alias}." if alias else ""

    def selected(column: Column) -> str:
        name = quote(column.name)
        value = prefix + name
        if present is not None:
            shaped = _as_of(value, present.get(column.name), column, is_changing=bool(table.projected))
        else:
            shaped = projected(value, column.type) if table.projected else value
        return value if shaped == value else f"{shaped} AS {name}"

    return ", ".join(map(selected, table.columns))


def _as_of(value: str, then: ColumnThen | None, column: Column, *, is_changing: bool) -> str:
    if then is None:
        return f"CAST(NULL AS {column.type})"
    if then.initial:
        return f"CAST({initial_value(then.initial, then.type)} AS {column.type})"
    type_ = then.type
    if type_ == "void":
        return f"CAST(NULL AS {column.type})"
    if then.nested and then.nested_today and then.nested != then.nested_today:
        # Fields are matched by id: a field that was dropped and added again is a different one.
        value, type_ = as_today(value, then.nested, then.nested_today), then.type_today
    if type_ == column.type:
        return value
    found = compare_columns([Column(column.name, type_)], [column])
    if found.incompatible:
        # In another generation the type may be arbitrary; a conversion could lose digits.
        return value
    value = stored_value(value, type_, column.type)
    return f"CAST({value} AS {column.type})" if found.widened or found.typed or is_changing else value


def selected_types(table: KeyedTable, present: Mapping[str, ColumnThen]) -> dict[str, str]:
    """The Spark type of each column that ``select_columns`` returns for a snapshot.

    It is the current one, unless another generation had a type that is not converted.
    """
    return {column.name: _selected_type(present.get(column.name), column) for column in table.columns}


def _selected_type(then: ColumnThen | None, column: Column) -> str:
    if then is None or then.initial or then.type == "void":
        return column.type
    is_converted = then.nested and then.nested_today and then.nested != then.nested_today
    type_ = then.type_today if is_converted else then.type
    is_kept = type_ != column.type and compare_columns([Column(column.name, type_)], [column]).incompatible
    return type_ if is_kept else column.type


def projected(value: str, type_: str) -> str:
    """SQL of a value with the fields and the type of ``type_``.

    Its stored type may have more fields or be wider.

    A part without a type is NULL. It is not read, because it may be missing until it gets its type.

    >>> projected("a", "string"), projected("a", "int"), projected("a", "void")
    ('a', 'CAST(a AS int)', 'NULL')
    """
    parsed = parse_type(type_)
    if parsed == _VOID:
        return "NULL"
    if not (_has_fields(parsed) or any(atom.kind in PROMOTED for atom in atoms(parsed))):
        return value
    return f"CAST({_named(value, parsed, 0)} AS {type_})"


def _has_fields(type_: DataType) -> bool:
    match type_:
        case Struct():
            return True
        case Array(element):
            return _has_fields(element)
        case Map(_, value):
            return _has_fields(value)
    return False


def _named(value: str, type_: DataType, depth: int) -> str:
    if type_ == _VOID:
        return "NULL"
    if not _has_fields(type_):
        return value
    each = f"_arctic_{depth}"
    match type_:
        case Struct(fields):
            listed = ", ".join(
                f"{literal(name)}, {_named(f'{value}.{quote(name)}', one, depth)}" for name, one in fields
            )
            return f"CASE WHEN {value} IS NOT NULL THEN named_struct({listed}) END"
        case Array(element):
            return f"transform({value}, {each} -> {_named(each, element, depth + 1)})"
        case Map(_, inner):
            entry = f"struct({each}.key AS key, {_named(f'{each}.value', inner, depth + 1)} AS value)"
            return f"map_from_entries(transform(map_entries({value}), {each} -> {entry}))"
        case Atomic():
            return value
