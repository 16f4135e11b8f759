"""Compares the columns of a query with those of a table and computes the evolved columns.

A struct field is compared like a column, at every depth: added, removed, widened, or of an incompatible type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, parse_type, type_text
from dbt_arctic.keyed.table import Column
from dbt_arctic.keyed.widening import can_widen

Path = tuple[str, ...]
"""The path of a field as in DDL: ``("addr", "zip")``, ``("lines", "element", "sku")``."""
Kind = Literal["added", "removed", "widened", "typed", "incompatible"]

_STORED_AS_INT = frozenset({"tinyint", "smallint"})
_COLLATE = " collate "


@dataclass(frozen=True)
class FieldChange:
    """One difference between a column or nested field of a query and of a table.

    :param kind: ``typed`` is a field without a type in the table (every value is NULL) that has a type in the
        query.
    :param label: the path of the field in errors: ``addr.zip``, ``lines[].sku``, ``prices{value}``.
    :param old: its type in the table; empty for a new field.
    :param new: its type in the query; empty for a removed field.
    """

    kind: Kind
    path: Path
    label: str
    old: str
    new: str

    @property
    def is_nested(self) -> bool:
        """Whether this is a field inside a column."""
        return len(self.path) > 1


@dataclass(frozen=True)
class SchemaDifference:
    """The differences between the columns of a model and those of a table."""

    changes: tuple[FieldChange, ...]

    def __bool__(self) -> bool:
        return bool(self.changes)

    def of(self, *kinds: Kind) -> tuple[FieldChange, ...]:
        """The changes of some kinds."""
        return tuple(change for change in self.changes if change.kind in kinds)

    @property
    def added(self) -> tuple[FieldChange, ...]:
        """The new columns and fields."""
        return self.of("added")

    @property
    def removed(self) -> tuple[FieldChange, ...]:
        """The removed columns and fields."""
        return self.of("removed")

    @property
    def widened(self) -> tuple[FieldChange, ...]:
        """The columns and fields with a wider type."""
        return self.of("widened")

    @property
    def incompatible(self) -> tuple[FieldChange, ...]:
        """The type changes that are not possible."""
        return self.of("incompatible")

    @property
    def typed(self) -> tuple[FieldChange, ...]:
        """The columns and fields that get their type, see ``FieldChange``."""
        return self.of("typed")

    def describe(self) -> str:
        """A description for errors and logs."""
        parts = []
        if self.added:
            parts.append("new: " + ", ".join(f"{change.label} {change.new}" for change in self.added))
        if self.removed:
            parts.append("gone: " + ", ".join(change.label for change in self.removed))
        changed = [f"{change.label} is now {change.new}" for change in self.widened]
        others = self.of("incompatible", "typed")
        changed += [f"{one.label} was {one.old}, is now {one.new}" for one in others]
        if changed:
            parts.append("; ".join(changed))
        return "; ".join(parts)


def compare_columns(table: Sequence[Column], produced: Sequence[Column]) -> SchemaDifference:
    """The differences between the columns of a query and a table, including nested fields.

    >>> compare_columns([Column("s", "struct<a:int>")], [Column("S", "struct<a:bigint,b:date>")]).describe()
    'new: s.b date; s.a is now bigint'
    """
    stored = {column.name.lower(): column for column in table}
    names = {column.name.lower() for column in produced}
    changes: list[FieldChange] = []
    for column in produced:
        there, type_ = stored.get(column.name.lower()), stored_type(column.type)
        if there is None:
            changes.append(FieldChange("added", (column.name,), column.name, "", type_))
        elif there.type != type_:
            changes += _compare((there.name,), there.name, parse_type(there.type), parse_type(type_))
    changes += [
        FieldChange("removed", (column.name,), column.name, column.type, "")
        for column in table
        if column.name.lower() not in names
    ]
    return SchemaDifference(tuple(changes))


def _compare(
    path: Path, label: str, stored: DataType, produced: DataType, *, is_field: bool = True
) -> Iterator[FieldChange]:
    match stored, produced:
        case Struct(), Struct():
            yield from _compare_fields(path, label, stored, produced)
        case Array(one), Array(other):
            yield from _compare((*path, "element"), f"{label}[]", one, other, is_field=False)
        case Map(), Map():
            yield from _compare_keys(path, label, stored.key, produced.key)
            value = f"{label}{{value}}"
            yield from _compare((*path, "value"), value, stored.value, produced.value, is_field=False)
        case _, Atomic("void"):
            return
        case _:
            kind = _kind_of_types(stored, produced, is_field)
            if kind is not None:
                yield FieldChange(kind, path, label, type_text(stored), type_text(produced))


def _compare_fields(path: Path, label: str, stored: Struct, produced: Struct) -> Iterator[FieldChange]:
    for name, type_ in produced.fields:
        there = stored.field(name)
        if there is None:
            yield FieldChange("added", (*path, name), f"{label}.{name}", "", type_text(type_))
        else:
            yield from _compare((*path, there[0]), f"{label}.{there[0]}", there[1], type_)
    for name, type_ in stored.fields:
        if produced.field(name) is None:
            yield FieldChange("removed", (*path, name), f"{label}.{name}", type_text(type_), "")


def _compare_keys(path: Path, label: str, stored: DataType, produced: DataType) -> Iterator[FieldChange]:
    """Compare the key types of maps, which Iceberg cannot change."""
    path, label = (*path, "key"), f"{label}{{key}}"
    if any(_compare(path, label, stored, produced)):
        yield FieldChange("incompatible", path, label, type_text(stored), type_text(produced))


def _kind_of_types(stored: DataType, produced: DataType, is_field: bool) -> Kind | None:
    """The kind of a type change; ``None`` if the column can store the new type unchanged.

    :param is_field: whether it has a name: an array element cannot be dropped and added again.
    """
    one, other = type_text(stored), type_text(produced)
    if one == other or can_widen(other, one):
        return None
    if can_widen(one, other):
        return "widened"
    return "typed" if one == "void" and is_field else "incompatible"


def evolved(table: Sequence[Column], changes: Iterable[FieldChange]) -> tuple[Column, ...]:
    """The columns of a table after some changes, in the order of Iceberg.

    >>> before = [Column("s", "struct<a:int,b:date>")]
    >>> found = compare_columns(before, [Column("s", "struct<a:bigint,c:date>")])
    >>> [column.type for column in evolved(before, found.changes)]
    ['struct<a:bigint,c:date>']
    """
    listed = list(changes)
    of_columns = [change for change in listed if not change.is_nested]
    gone = {change.path[0] for change in of_columns if change.kind in ("removed", "typed")}
    inside = {change.path[0] for change in listed}
    kept = [
        replace(column, type=type_text(_evolved(parse_type(column.type), (column.name,), listed)))
        if column.name in inside
        else column
        for column in table
        if column.name not in gone
    ]
    new = [one for one in of_columns if one.kind in ("added", "typed")]
    return (*kept, *(Column(change.path[0], change.new) for change in new))


def _evolved(type_: DataType, path: Path, changes: Collection[FieldChange]) -> DataType:
    inside = [change for change in changes if change.path[: len(path)] == path]
    if not inside:
        return type_
    match type_:
        case Struct(fields):
            here = [change for change in inside if len(change.path) == len(path) + 1]
            gone = {change.path[-1] for change in here if change.kind in ("removed", "typed")}
            new = [change for change in here if change.kind in ("added", "typed")]
            kept = [(name, _evolved(one, (*path, name), inside)) for name, one in fields if name not in gone]
            return Struct((*kept, *((change.path[-1], parse_type(change.new)) for change in new)))
        case Array(element):
            return Array(_evolved(element, (*path, "element"), inside))
        case Map(key, value):
            return Map(key, _evolved(value, (*path, "value"), inside))
    (change,) = inside
    return parse_type(change.new) if change.kind == "widened" else type_


def field_type(columns: Iterable[Column], path: Path) -> str | None:
    """The type of a column or nested field; ``None`` if it does not exist."""
    types = {column.name.lower(): column.type for column in columns}
    found: DataType | None = None
    for at, name in enumerate(path):
        if at == 0:
            text = types.get(name.lower())
            found = None if text is None else parse_type(text)
            continue
        match found:
            case Struct():
                there = found.field(name)
                found = None if there is None else there[1]
            case Array(element):
                found = element
            case Map(_, value):
                found = value
            case _:
                return None
    return None if found is None else type_text(found)


def same_columns(table: Sequence[Column], produced: Iterable[tuple[str, str]]) -> bool:
    """Whether a query has the same columns (name, type) as a table, in any order."""
    stored = {column.name.lower(): column.type for column in table}
    return {name.lower(): stored_type(type_) for name, type_ in produced} == stored


def stored_type(spark_type: str) -> str:
    """The type of a column in an Iceberg table, which has no integers shorter than 32 bits and no collations.

    >>> stored_type("struct<tinyint:int,`a,tinyint`:array<tinyint>>")
    'struct<tinyint:int,`a,tinyint`:array<int>>'
    >>> stored_type("array<string collate UTF8_LCASE>")
    'array<string>'
    """
    if not any(name in spark_type for name in (*_STORED_AS_INT, _COLLATE)):
        return spark_type
    return type_text(_stored(parse_type(spark_type)))


def _stored(type_: DataType) -> DataType:
    match type_:
        case Atomic(text):
            return Atomic("int" if text in _STORED_AS_INT else text.partition(_COLLATE)[0])
        case Array(element):
            return Array(_stored(element))
        case Map(key, value):
            return Map(_stored(key), _stored(value))
        case Struct(fields):
            return Struct(tuple((name, _stored(one)) for name, one in fields))
