"""Store assignment: decides whether values of one type can be stored in a column of another without loss.

Spark itself stores 10.7 in an INT column as 10, drops the time of a timestamp stored in a DATE column, and
assigns struct fields by position. Here, a value is stored unchanged and struct fields by name, or the
assignment is rejected. A single value out of range (3,000,000,000 for INT) fails in Spark with an overflow
error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dbt_arctic.data_type import Array, Atomic, DataType, Map, Struct, parse_type, type_text
from dbt_arctic.keyed.names import literal, quote

INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Decimal digits of each integer type."""
_EXACT_DIGITS = {"float": 6, "double": 15}
"""The number of decimal digits that a floating-point type represents exactly."""
_TEXTS = frozenset({"string", "char", "varchar"})
_SHOWN_EXACTLY = frozenset(
    {*INTEGER_DIGITS, "decimal", "boolean", "date", "timestamp_ntz", "float", "double"}
)
"""Types whose string form does not depend on the session's settings."""


@dataclass(frozen=True)
class Mismatch:
    """A part of a column that cannot be stored without loss.

    :param path: the column, and the path to the part: ``addr.zip``, ``tags[]``, ``prices{value}``.
    :param produced: its type in the query; empty for a field that the query lacks.
    :param stored: its type in the table; empty for a field that the table lacks.
    """

    path: str
    produced: str
    stored: str

    def describe(self) -> str:
        """A description for an error."""
        if not self.stored:
            return f"{self.path} {self.produced} is a field that the table does not have"
        if not self.produced:
            return f"{self.path} {self.stored} is a field that the query does not have"
        return f"{self.path} is {self.produced} in the query and {self.stored} in the table"


def mismatches(path: str, produced: str, stored: str, *, fill: bool = False) -> list[Mismatch]:
    """The reasons why values of a type cannot be stored in a column without loss. Fields are matched by name.

    :param fill: whether fields that only the table has are filled with NULL.

    >>> [found.describe() for found in mismatches("n", "decimal(10,1)", "int")]
    ['n is decimal(10,1) in the query and int in the table']
    >>> mismatches("n", "struct<zip:string,city:string>", "struct<city:string,zip:string>")
    []
    """
    if produced == stored:
        return []
    return list(_mismatches(path, parse_type(produced), parse_type(stored), fill))


def unstorable(
    produced: Iterable[tuple[str, str]], stored: Iterable[tuple[str, str]], *, fill: bool
) -> list[Mismatch]:
    """The mismatches of all columns that both a query and a table have. Names are case-insensitive.

    :param produced: names and types of the query's columns.
    :param stored: names and types of the table's columns.
    """
    there = {name.lower(): (name, type_) for name, type_ in stored}
    return [
        mismatch
        for name, type_ in produced
        if name.lower() in there
        for mismatch in mismatches(there[name.lower()][0], type_, there[name.lower()][1], fill=fill)
    ]


def _mismatches(path: str, produced: DataType, stored: DataType, fill: bool) -> Iterator[Mismatch]:
    match produced, stored:
        case Struct(), Struct():
            yield from _of_fields(path, produced, stored, fill)
        case Array(one), Array(other):
            yield from _mismatches(f"{path}[]", one, other, fill)
        case Map(), Map():
            yield from _mismatches(f"{path}{{key}}", produced.key, stored.key, fill)
            yield from _mismatches(f"{path}{{value}}", produced.value, stored.value, fill)
        case Atomic(), Atomic() if is_exact(produced, stored):
            return
        case Atomic("void"), _:
            return
        case _:
            yield Mismatch(path, type_text(produced), type_text(stored))


def _of_fields(path: str, produced: Struct, stored: Struct, fill: bool) -> Iterator[Mismatch]:
    for name, type_ in produced.fields:
        there = stored.field(name)
        if there is None:
            yield Mismatch(f"{path}.{name}", type_text(type_), "")
        else:
            yield from _mismatches(f"{path}.{there[0]}", type_, there[1], fill)
    for name, type_ in stored.fields:
        if produced.field(name) is None and not fill:
            yield Mismatch(f"{path}.{name}", "", type_text(type_))


def is_exact(produced: Atomic, stored: Atomic) -> bool:
    """Whether each value of one type that fits the other is stored there unchanged.

    >>> is_exact(Atomic("int"), Atomic("double")), is_exact(Atomic("bigint"), Atomic("double"))
    (True, False)
    """
    if produced == stored or produced.text == "void":
        return True
    one, other = produced.kind, stored.kind
    if other in _TEXTS:
        return one in _TEXTS or one in _SHOWN_EXACTLY
    if one in INTEGER_DIGITS:
        return (
            other in INTEGER_DIGITS
            or other == "decimal"
            or INTEGER_DIGITS[one] <= _EXACT_DIGITS.get(other, 0)
        )
    if one == "decimal":
        precision, scale = produced.parameters
        if other == "decimal":
            return scale <= stored.parameters[1]
        return precision <= _EXACT_DIGITS.get(other, 0) or (other in INTEGER_DIGITS and scale == 0)
    return (one, other) in {("float", "double"), ("date", "timestamp"), ("date", "timestamp_ntz")}


def is_cast(produced: str, stored: str) -> bool:
    """Whether a value is converted when it is stored, or a value in it at any depth.

    >>> is_cast("boolean", "string"), is_cast("int", "int")
    (True, False)
    """
    return not is_spelled_alike(produced, stored)


def is_spelled_alike(one: str, other: str) -> bool:
    """Whether two types are the same to Spark, where field names are case-insensitive.

    >>> is_spelled_alike("struct<City:string,Zip:int>", "struct<city:string,zip:int>")
    True
    """
    return one == other or _lowered(parse_type(one)) == _lowered(parse_type(other))


def _lowered(type_: DataType) -> DataType:
    match type_:
        case Struct(fields):
            return Struct(tuple((name.lower(), _lowered(one)) for name, one in fields))
        case Array(element):
            return Array(_lowered(element))
        case Map(key, value):
            return Map(_lowered(key), _lowered(value))
    return type_


def stored_value(value: str, produced: str, stored: str) -> str:
    """SQL of a value in the shape of a column.

    Struct fields are matched by name and in the order of the column.

    :param value: SQL of the value; it may be repeated in the result.
    :returns: ``value`` itself if the shapes are the same; Spark's store assignment does the rest.

    >>> stored_value("`a`", "struct<zip:int,city:int>", "struct<city:int,zip:int>")
    "CASE WHEN (`a`) IS NOT NULL THEN named_struct('city', (`a`).`city`, 'zip', (`a`).`zip`) END"

    A column has no collation, and Spark cannot compare strings with different collations.

    >>> stored_value("`a`", "array<string collate UTF8_LCASE>", "array<string>")
    'transform(`a`, _arctic_0 -> CAST(_arctic_0 AS string))'
    """
    if produced == stored:
        return value
    return _stored(value, parse_type(produced), parse_type(stored), 0, _same_shape)


def fields_by_name(value: str, type_: str) -> str:
    """SQL of a value with each struct in it put together again from its fields, which are taken by name.

    The result has the given type, even if the value has its fields in another order, or more of them, when
    the SQL runs.

    :param value: SQL of the value; it may be repeated in the result.

    >>> fields_by_name("`a`", "struct<x:int>")
    "CASE WHEN (`a`) IS NOT NULL THEN named_struct('x', (`a`).`x`) END"
    """
    parsed = parse_type(type_)
    return _stored(value, parsed, parsed, 0, lambda _, stored: not has_struct(stored))


def has_struct(type_: DataType) -> bool:
    """Whether a type is a struct or contains one."""
    match type_:
        case Array(element):
            return has_struct(element)
        case Map(key, value):
            return has_struct(key) or has_struct(value)
    return isinstance(type_, Struct)


_Keeps = Callable[[DataType, DataType], bool]
"""Whether a value of one type is stored as it is in a column of the other."""


def _stored(value: str, produced: DataType, stored: DataType, depth: int, keeps: _Keeps) -> str:
    if keeps(produced, stored):
        return value
    name = f"_arctic_{depth}"
    match produced, stored:
        case Struct(), Struct():
            fields = ", ".join(
                f"{literal(field)}, {_field(value, produced, field, type_, depth, keeps)}"
                for field, type_ in stored.fields
            )
            return f"CASE WHEN ({value}) IS NOT NULL THEN named_struct({fields}) END"
        case Array(one), Array(other):
            return f"transform({value}, {name} -> {_stored(name, one, other, depth + 1, keeps)})"
        case Map(), Map():
            key = _stored(f"{name}.key", produced.key, stored.key, depth + 1, keeps)
            inner = _stored(f"{name}.value", produced.value, stored.value, depth + 1, keeps)
            entry = f"struct({key} AS key, {inner} AS value)"
            return f"map_from_entries(transform(map_entries({value}), {name} -> {entry}))"
        case Atomic(), Atomic():
            return f"CAST({value} AS {stored.text})"
    return value


def _field(value: str, produced: Struct, field: str, type_: DataType, depth: int, keeps: _Keeps) -> str:
    there = produced.field(field)
    if there is None:
        return f"CAST(NULL AS {type_text(type_)})"
    return _stored(f"({value}).{quote(there[0])}", there[1], type_, depth, keeps)


def typed(produced: str, stored: str) -> str:
    """The type with a type for each part that has none: the one that the column stores there, or string.

    :param stored: the type of the column that the values are for; empty if there is none.

    >>> typed("struct<a:void,b:int>", "struct<b:int,a:date>"), typed("array<void>", "")
    ('struct<a:date,b:int>', 'array<string>')
    """
    return type_text(_typed(parse_type(produced), parse_type(stored) if stored else None))


def _typed(produced: DataType, stored: DataType | None) -> DataType:
    match produced:
        case Atomic("void"):
            return stored or Atomic("string")
        case Array(element):
            return Array(_typed(element, stored.element if isinstance(stored, Array) else None))
        case Map(key, value):
            of_key, of_value = (stored.key, stored.value) if isinstance(stored, Map) else (None, None)
            return Map(_typed(key, of_key), _typed(value, of_value))
        case Struct(fields):
            known = stored if isinstance(stored, Struct) else Struct(())
            return Struct(tuple((name, _typed(one, _field_type(known, name))) for name, one in fields))
    return produced


def _field_type(struct: Struct, name: str) -> DataType | None:
    there = struct.field(name)
    return None if there is None else there[1]


def same_shape(produced: str, stored: str) -> bool:
    """Whether fields have the same names in the same order at every depth.

    If so, no value has to be reshaped.
    """
    return produced == stored or _same_shape(parse_type(produced), parse_type(stored))


def _same_shape(produced: DataType, stored: DataType) -> bool:
    """Whether fields have the same names in the same order at every depth, and no collation is lost."""
    match produced, stored:
        case Struct(), Struct():
            return len(produced.fields) == len(stored.fields) and all(
                one[0].lower() == other[0].lower() and _same_shape(one[1], other[1])
                for one, other in zip(produced.fields, stored.fields, strict=True)
            )
        case Array(one), Array(other):
            return _same_shape(one, other)
        case Map(), Map():
            return _same_shape(produced.key, stored.key) and _same_shape(produced.value, stored.value)
        case Atomic(), Atomic():
            return not _loses_collation(produced, stored)
    return True


def _loses_collation(produced: Atomic, stored: Atomic) -> bool:
    return produced != stored and produced.kind == stored.kind == "string"
