"""Translates the type names in a contract to Spark's. Pure functions over text."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"`(?:``|[^`])*`|'(?:\\.|[^'\\])*'|\w+|\s+|.", re.DOTALL)


def translated(text: str, labels: Mapping[str, str]) -> str:
    """Translate type names of other databases to Spark's. Names of fields are unchanged.

    :param labels: Spark's type by the name in capitals.

    >>> translated("struct<text: TEXT, `a b`: array<integer>>", {"TEXT": "string", "INTEGER": "int"})
    'struct<text: string, `a b`: array<int>>'
    """
    tokens = _TOKEN.findall(text)
    enclosing: list[str] = []
    is_name_next, is_type_next, parentheses, last = False, True, 0, ""
    for at, token in enumerate(tokens):
        parentheses += (token == "(") - (token == ")")
        if parentheses or token.isspace() or token == ":":
            continue
        if token in ("<", ","):
            if token == "<":
                enclosing.append(last)
            is_name_next = enclosing[-1:] == ["struct"]
            is_type_next = not is_name_next
        elif token == ">":
            del enclosing[-1:]
        elif is_name_next:
            is_name_next, is_type_next = False, True
        elif is_type_next:
            is_type_next, last = False, token.lower()
            if tokens[at + 1 : at + 2] != ["("]:  # with its own precision or length
                tokens[at] = labels.get(token.upper(), token)
    return "".join(tokens)
