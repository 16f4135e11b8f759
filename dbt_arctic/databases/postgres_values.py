"""Values of PostgreSQL in its text format, as JSON values. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_BOOL, _BYTEA, _MONEY, _CHAR = 16, 17, 790, 1042
"""The oids of types whose texts have another form than in SQL. They are fixed in PostgreSQL."""
_OTHER_TEXTS = frozenset((_BOOL, _BYTEA, _MONEY, _CHAR))
_TRUTH: Mapping[str, str] = {"t": "true", "f": "false"}
_BOUNDS = re.compile(r"^(\[-?\d+:-?\d+\])+=")


class ValueType(NamedTuple):
    """A type of a column.

    :param base: the oid of the type, or of the type below a domain.
    :param element: the oid of an array's elements; 0 for other types.
    :param delimiter: what is between an array's elements. It is another one for ``box``, and for types of
        extensions.
    """

    base: int
    element: int = 0
    delimiter: str = ","

    @property
    def is_text(self) -> bool:
        """Whether each value is its text, so that ``as_json`` returns it."""
        return not self.element and self.base not in _OTHER_TEXTS


def as_json(text: str, kind: ValueType) -> Any:
    """A value as JSON has it: a text, or an array of texts.

    >>> as_json("t", ValueType(16)), as_json("{1,NULL}", ValueType(1007, 23))
    ('true', ['1', None])
    """
    if kind.element in (_BYTEA, _MONEY):
        return text  # read as text from the table as well
    if kind.element and text.startswith(("{", "[")):  # the text of an int2vector has no braces
        return _array(text, ValueType(kind.element), kind.delimiter)
    if kind.base == _BOOL:
        return _TRUTH.get(text, text)
    if kind.base == _BYTEA:
        return text.removeprefix("\\x")
    if kind.base == _CHAR:
        return text.rstrip(" ")  # padding, which a cast to text removes
    if kind.base == _MONEY:
        return re.sub(r"[^0-9.-]", "", text)
    return text


def _array(text: str, element: ValueType, delimiter: str = ",") -> Any:
    """An array of any number of dimensions.

    >>> _array('{"a,b",NULL,"NULL"}', ValueType(25)), _array("[0:1]={{1,2},{3,4}}", ValueType(23))
    (['a,b', None, 'NULL'], [['1', '2'], ['3', '4']])
    >>> _array("{(1,1),(0,0);NULL}", ValueType(603), ";")
    ['(1,1),(0,0)', None]
    """
    stack: list[list[Any]] = [[]]
    for part in _parts(_BOUNDS.sub("", text), delimiter):
        if part == "{":
            inner: list[Any] = []
            stack[-1].append(inner)
            stack.append(inner)
        elif part == "}":
            stack.pop()
        else:
            value = part[1:] if part.startswith('"') else None if part == "NULL" else part
            stack[-1].append(None if value is None else as_json(value, element))
    return stack[0][0]


def _parts(text: str, delimiter: str) -> Iterator[str]:
    """Braces and elements; an element in double quotes begins with one, and has no escapes left."""
    at, special = 0, re.compile(rf'[\\{{}}"{re.escape(delimiter)}]')
    while at < len(text):
        sign = text[at]
        if sign in "{}":
            yield sign
            at += 1
        elif sign == delimiter:
            at += 1
        elif sign == '"':
            end, made = at + 1, []
            while text[end] != '"':
                end += text[end] == "\\"
                made.append(text[end])
                end += 1
            yield '"' + "".join(made)
            at = end + 1
        else:
            found = special.search(text, at)
            end = len(text) if found is None else found.start()
            yield text[at:end]
            at = end


__all__ = ["ValueType", "as_json"]
