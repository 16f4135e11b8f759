"""What is known of the type of an expression, as a value, and what follows from it.

An exact type is a value of ``keyed.data_type``, the same as for the columns of tables: it is parsed from the
text that Spark's catalog gives, and keeps what sqlglot's types lose, such as collations, ``TIME``, and
whether a decimal has digits. Less may be known than an exact type: ``Kind`` says what sort of value it is,
and ``Mixed`` is the type of a column of a UNION whose parts have several. ``None`` stands for an unknown
type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache

from dbt_arctic.data_type import (
    Array,
    Atomic,
    DataType,
    Map,
    Struct,
    UnreadableType,
    atoms,
    parse_type,
    type_text,
)
from dbt_arctic.keyed.type_categories import TypeCategory, category_of_type, family


class Kind(Enum):
    """What is known of a type that is not known exactly."""

    WHOLE = "an integer of up to 32 bits"
    LONG = "a BIGINT, or a decimal without digits after the point"
    DECIMAL = "a decimal"
    FLOATING = "a FLOAT or a DOUBLE"
    MOMENT = "a timestamp, with or without a time zone"
    NO_NUMBER = "a value that is not a number"


@dataclass(frozen=True)
class Mixed:
    """The type of a column of a UNION whose parts have several types, of which NULL may be one.

    Rules compute an expression over the column in the type of one part.

    :param column: the identifier of the column.
    :param common: the type that Spark gives the column; ``None`` if the type of the only part with values is
        unknown.
    :param is_exact: whether Spark casts the values of all parts without loss.
    """

    column: str
    common: DataType | Kind | None
    is_exact: bool


Inferred = DataType | Kind | Mixed

TINYINT, SMALLINT, INT, BIGINT = map(Atomic, ("tinyint", "smallint", "int", "bigint"))
BOOLEAN, STRING, BINARY, DATE, TIMESTAMP, VOID = map(
    Atomic, ("boolean", "string", "binary", "date", "timestamp", "void")
)
INTEGERS = (TINYINT, SMALLINT, INT, BIGINT)
"""The integer types, from the narrowest to the widest."""
_DIGITS = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}

_CATEGORIES: dict[Kind, TypeCategory] = {
    Kind.WHOLE: "int",
    Kind.LONG: "bigint",
    Kind.DECIMAL: "decimal",
    Kind.FLOATING: "float",
    Kind.MOMENT: "timestamp",
    Kind.NO_NUMBER: "other",
}
_WIDEST: tuple[TypeCategory, ...] = ("float", "decimal", "bigint", "int", "timestamp", "other")
_OF_CATEGORY: dict[TypeCategory, DataType | Kind] = {
    **{sort: kind for kind, sort in _CATEGORIES.items() if kind is not Kind.LONG},
    "bigint": BIGINT,
}


@cache
def read_type(text: str) -> DataType | None:
    """The type that a text stands for; names of fields are in lower case, because case does not matter.

    ``None`` if it is not a type that is known here.

    >>> read_type("STRUCT<userId: INT>") == read_type("struct<userid:int>")
    True
    >>> read_type("DECIMAL"), read_type("numeric(5)"), read_type("VARCHAR(3)"), read_type("")
    (Atomic(text='decimal(10,0)'), Atomic(text='decimal(5,0)'), Atomic(text='varchar(3)'), None)
    """
    try:
        return _named(parse_type(text.lower().replace(", ", ",").replace(": ", ":")))
    except UnreadableType:
        return None


_NAMES = {
    **{"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float"},
    **{"time": "time(6)", "timestamp_ltz": "timestamp"},
}
"""Types with two names in Spark's SQL."""


def _named(type_: DataType) -> DataType:
    match type_:
        case Array(element):
            return Array(_named(element))
        case Map(key, value):
            return Map(_named(key), _named(value))
        case Struct(fields):
            return Struct(tuple((name, _named(one)) for name, one in fields))
        case Atomic(text) if type_.kind not in ("decimal", "dec", "numeric"):
            return Atomic(_NAMES.get(text, text))
        case Atomic():
            precision, scale = (*type_.parameters, 0)[:2] if type_.parameters else (10, 0)
            return Atomic(f"decimal({precision},{scale})")


def atoms_of(text: str) -> list[Atomic]:
    """The types without nested types that a type of the catalog consists of."""
    found = read_type(text)
    return [] if found is None else list(atoms(found))


def exact(type_: Inferred | None) -> DataType | None:
    """The type, if it is known exactly. That of an untyped NULL is none that a column could be cast to."""
    return None if type_ is None or isinstance(type_, Kind | Mixed) or type_ == VOID else type_


def is_known(type_: Inferred | None) -> bool:
    """Whether anything is known of a type."""
    return type_ is not None and not (isinstance(type_, Mixed) and type_.common is None)


def category_of(type_: Inferred | None) -> TypeCategory:
    """The sort of number of a type; ``float`` if it is unknown, or no sort of its own."""
    if isinstance(type_, Mixed):
        return category_of(type_.common)
    if type_ is None:
        return "float"
    return _CATEGORIES[type_] if isinstance(type_, Kind) else category_of_type(type_text(type_))


def family_of(type_: Inferred | None) -> str | None:
    """The comparison family: the same for types whose values Spark compares without a lossy cast.

    ``None`` if it is unknown. ``void``, that of an untyped NULL, is compared with every other.
    """
    match type_:
        case None | Kind.MOMENT | Kind.NO_NUMBER:
            return None
        case Kind.FLOATING:
            return "float"
        case Kind():
            return "number"
        case Mixed(name, common, is_exact):
            return None if not is_exact else f"of {name}" if common is None else family_of(common)
        case _:
            return family(type_text(type_))


def is_number(type_: Inferred | None) -> bool:
    """Whether a type is known to be a number."""
    return family_of(type_) in ("number", "float")


def is_decimal(type_: Inferred | None) -> bool:
    """Whether a type is a decimal."""
    return category_of(type_) == "decimal"


def digits_of(type_: DataType) -> tuple[int, int] | None:
    """The precision and scale of an exact number, for an integer those of its values as a decimal.

    >>> digits_of(Atomic("decimal(10,2)")), digits_of(INT), digits_of(STRING)
    ((10, 2), (10, 0), None)
    """
    if isinstance(type_, Atomic) and type_ in _DIGITS:
        return _DIGITS[type_], 0
    if not isinstance(type_, Atomic) or not is_decimal(type_):
        return None
    precision, scale = type_.parameters
    return precision, scale


def may_hold_moments(type_: Inferred | None) -> bool:
    """Whether a value may be a timestamp, or contain one."""
    match type_:
        case None | Kind.MOMENT:
            return True
        case Kind():
            return False
        case Mixed(common=common):
            return may_hold_moments(common)
        case _:
            return any(category_of_type(one.text) == "timestamp" for one in atoms(type_))


def loosened(type_: Inferred | None) -> Inferred | None:
    """What is known of a computed value, if an operand has this type in one part of a UNION only."""
    if not isinstance(type_, Mixed) or not is_number(type_):
        return type_
    return type_.common if isinstance(type_.common, Kind) else _OF_CATEGORY[category_of(type_)]


def widest(types: Iterable[Inferred | None]) -> Inferred | None:
    """The common type of numbers, as of the operands of ``+``; ``None`` if it is unknown."""
    found = [loosened(one) for one in types]
    integers = [one for one in found if one in INTEGERS]
    categories = {category_of(one) for one in found}
    if len(integers) == len(found) and integers:
        return max(integers, key=INTEGERS.index)
    if "float" in categories or (not all(map(is_number, found)) and any(map(is_number, found))):
        return Kind.FLOATING if all(map(is_number, found)) else None
    if Kind.LONG in found and "decimal" not in categories:
        return Kind.LONG
    return _OF_CATEGORY[next((one for one in _WIDEST if one in categories), "other")]


def common_of(types: Sequence[Inferred | None]) -> Inferred | None:
    """The type of a value that is one of several, such as a branch of CASE; ``None`` if it is unknown."""
    valued = list(dict.fromkeys(one for one in types if one != VOID))
    if len(valued) <= 1:
        return valued[0] if valued else VOID
    mixed = next((one for one in valued if isinstance(one, Mixed)), None)
    if mixed is not None:
        inner = common_of([one.common if isinstance(one, Mixed) else one for one in valued])
        is_exact = len({family_of(one) for one in valued}) == 1
        assert not isinstance(inner, Mixed), "what is common to the parts of a UNION is one type"
        return None if inner is None else Mixed(mixed.column, inner, is_exact)
    if {family_of(one) for one in valued} == {"string"}:
        return STRING
    return widest(valued)


def of_parts(name: str, types: Sequence[Inferred | None]) -> Inferred | None:
    """The type of a column of a UNION, given the types of its parts."""
    if len(set(types)) == 1 and types[0] is not None:
        return types[0]
    valued = [one for one in types if one != VOID]
    families = {family_of(one) for one in valued}
    common = common_of(valued)
    if isinstance(common, Mixed):
        common = common.common
    is_exact = len(families) == 1 and (families != {None} or len(valued) == 1)
    return None if common is None and len(valued) > 1 else Mixed(name, common, is_exact)


def field_of(type_: Inferred | None, name: str) -> DataType | None:
    """The type of ``x.name``, given the type of ``x``. For an array of structs, it is an array.

    >>> made = read_type("struct<at:timestamp,net:decimal(10,2)>")
    >>> field_of(made, "NET"), field_of(Array(made), "at"), field_of(made, "no"), field_of(None, "at")
    (Atomic(text='decimal(10,2)'), Array(element=Atomic(text='timestamp')), None, None)
    """
    if isinstance(type_, Array):
        inner = field_of(type_.element, name)
        return None if inner is None else Array(inner)
    found = type_.field(name) if isinstance(type_, Struct) else None
    return None if found is None else found[1]


def element_of(type_: Inferred | None) -> DataType | None:
    """The type of ``x[..]`` with an index or a key.

    >>> element_of(read_type("map<string,array<int>>")), element_of(read_type("string"))
    (Array(element=Atomic(text='int')), None)
    """
    match type_:
        case Array(element):
            return element
        case Map(_, value):
            return value
        case _:
            return None


__all__ = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "INT",
    "INTEGERS",
    "SMALLINT",
    "STRING",
    "TIMESTAMP",
    "TINYINT",
    "VOID",
    "Array",
    "Atomic",
    "DataType",
    "Inferred",
    "Kind",
    "Map",
    "Mixed",
    "atoms_of",
    "category_of",
    "common_of",
    "digits_of",
    "element_of",
    "exact",
    "family_of",
    "field_of",
    "is_decimal",
    "is_known",
    "is_number",
    "loosened",
    "may_hold_moments",
    "of_parts",
    "read_type",
    "type_text",
    "widest",
]
