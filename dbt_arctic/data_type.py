"""Column types as values: parsed from Spark's type text, compared, and formatted again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

EXACT_JSON = (
    "map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
)
"""The options of ``to_json`` with which its texts differ for different values. By default, it leaves out
fields that are NULL, and cuts times to milliseconds."""

_NAME = re.compile(r"`((?:``|[^`])*)`|([^`:<>,\s][^`:<>,]*)")
_ATOMIC = re.compile(r"[a-z_]+(?: (?!collate\b)[a-z_]+)*(?:\([^()]*\))?(?: collate \w+)?", re.IGNORECASE)
_PARAMETERS = re.compile(r"([a-z_]+)\((\d+)(?:,\s*(\d+))?\)")


class UnreadableType(ValueError):
    """Raised for a text that is not a Spark type."""


@dataclass(frozen=True)
class Atomic:
    """A type without nested types.

    :param text: as Spark writes it: ``int``, ``decimal(10,2)``, ``string collate UTF8_LCASE``.
    """

    text: str

    @property
    def kind(self) -> str:
        """The type's name without parameters and collation."""
        return re.split(r"[( ]", self.text, maxsplit=1)[0]

    @property
    def parameters(self) -> tuple[int, ...]:
        """Precision and scale of a decimal, the length of a char or varchar."""
        found = _PARAMETERS.match(self.text)
        return () if found is None else tuple(int(part) for part in found.groups()[1:] if part is not None)


@dataclass(frozen=True)
class Array:
    """An array type."""

    element: DataType

    kind = "array"


@dataclass(frozen=True)
class Map:
    """A map type."""

    key: DataType
    value: DataType

    kind = "map"


@dataclass(frozen=True)
class Struct:
    """A type with named fields.

    :param fields: names and types; names are as they were written.
    """

    fields: tuple[tuple[str, DataType], ...]

    kind = "struct"

    def field(self, name: str) -> tuple[str, DataType] | None:
        """The field with a name, which is case-insensitive as in Spark."""
        return next((one for one in self.fields if one[0].lower() == name.lower()), None)


DataType = Atomic | Array | Map | Struct


@cache
def parse_type(text: str) -> DataType:
    """Parse a Spark type; field names are quoted unless they are plain.

    >>> parse_type("struct<a:int,`b c`:array<decimal(10,2)>>").fields[1]
    ('b c', Array(element=Atomic(text='decimal(10,2)')))

    :raises UnreadableType: the text is not a type.
    """
    found, end = _read(text, 0)
    if end != len(text):
        raise UnreadableType(text)
    return found


def _read(text: str, at: int) -> tuple[DataType, int]:
    if text.startswith("array<", at):
        element, at = _read(text, at + len("array<"))
        return Array(element), _after(text, at, ">")
    if text.startswith("map<", at):
        key, at = _read(text, at + len("map<"))
        value, at = _read(text, _after(text, at, ","))
        return Map(key, value), _after(text, at, ">")
    if text.startswith("struct<", at):
        return _read_struct(text, at + len("struct<"))
    found = _ATOMIC.match(text, at)
    if found is None:
        raise UnreadableType(text)
    return Atomic(found[0]), found.end()


def _read_struct(text: str, at: int) -> tuple[DataType, int]:
    fields: list[tuple[str, DataType]] = []
    while not text.startswith(">", at):
        if fields:
            at = _after(text, at, ",")
        name = _NAME.match(text, at)
        if name is None:
            raise UnreadableType(text)
        type_, at = _read(text, _after(text, name.end(), ":"))
        fields.append((name[2] if name[1] is None else name[1].replace("``", "`"), type_))
    return Struct(tuple(fields)), at + 1


def _after(text: str, at: int, mark: str) -> int:
    if not text.startswith(mark, at):
        raise UnreadableType(text)
    return at + len(mark)


def type_text(type_: DataType) -> str:
    """The text of a type, which ``parse_type`` can parse.

    >>> type_text(parse_type("map<string,struct<`a:b`:int>>"))
    'map<string,struct<`a:b`:int>>'
    """
    match type_:
        case Atomic(text):
            return text
        case Array(element):
            return f"array<{type_text(element)}>"
        case Map(key, value):
            return f"map<{type_text(key)},{type_text(value)}>"
        case Struct(fields):
            return f"struct<{','.join(f'{field_text(name)}:{type_text(one)}' for name, one in fields)}>"


def atoms(type_: DataType) -> Iterator[Atomic]:
    """The atomic types in a type: itself, or those of its fields, elements, keys and values."""
    match type_:
        case Atomic():
            yield type_
        case Array(element):
            yield from atoms(element)
        case Map(key, value):
            yield from atoms(key)
            yield from atoms(value)
        case Struct(fields):
            for _, one in fields:
                yield from atoms(one)


def kind_of(text: str) -> str:
    """The name of a type in lower case, without parameters, nested types and collation.

    >>> kind_of("DECIMAL(10,2)"), kind_of("map<string,int>"), kind_of("string collate UTF8_LCASE")
    ('decimal', 'map', 'string')

    :raises UnreadableType: the text is not a type.
    """
    return parse_type(text.lower()).kind


def written_kind(text: str) -> str:
    """The name of a type as a user has written it, in any case, with spaces or types of another dialect.

    >>> written_kind(" ARRAY < int >"), written_kind("Interval day to second"), written_kind("")
    ('array', 'interval', '')
    """
    return re.split(r"[(<\s]", text.strip().lower(), maxsplit=1)[0]


def has_kind(text: str, *kinds: str) -> bool:
    """Whether a type is of one of these atomic kinds, or contains a type that is.

    >>> has_kind("struct<a:array<void>>", "void"), has_kind("struct<void:int>", "void")
    (True, False)
    """
    return any(one.kind in kinds for one in atoms(parse_type(text)))


def without_parameters(text: str) -> str:
    """The name of a type in lower case, without parameters. A collation stays, because it affects equality.

    >>> without_parameters("DECIMAL(10,2)"), without_parameters("string collate UTF8_LCASE")
    ('decimal', 'string collate utf8_lcase')
    """
    return text.lower().partition("(")[0].strip()


class Digits(NamedTuple):
    """The digits of a decimal type: all of them, and those after the point."""

    precision: int
    scale: int

    @property
    def whole(self) -> int:
        """The digits before the point."""
        return self.precision - self.scale


def decimal_digits(text: str) -> Digits | None:
    """The precision and scale of a decimal type; ``None`` for other types, or if they are not given.

    >>> decimal_digits("decimal(10,2)"), decimal_digits("DEC(5)"), decimal_digits("decimal")
    (Digits(precision=10, scale=2), Digits(precision=5, scale=0), None)
    """
    found = _PARAMETERS.fullmatch(text.lower())
    if found is None or found[1] not in ("decimal", "dec", "numeric"):
        return None
    digits = Atomic(found[0]).parameters
    return Digits(digits[0], digits[1] if len(digits) > 1 else 0) if digits else None


def field_text(name: str) -> str:
    """A field name inside a type text, quoted unless it is plain."""
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else "`" + name.replace("`", "``") + "`"
