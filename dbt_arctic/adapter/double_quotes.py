"""Detects names in double quotes, which are strings in Spark by default.

SQL for other databases selects `"name"`, and gets that string in each row. The detection uses the text alone:
quoted words at positions where strings are unusual, and quoted column names at positions where a string is
useless. Strings in comparisons or arguments are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from dbt_arctic.engine.lexer import Piece, pieces

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|[<>!=|&:]+|\S")
_OF_A_COLUMN = frozenset(
    [
        "avg",
        "cast",
        "coalesce",
        "count",
        "lower",
        "max",
        "min",
        "nullif",
        "nvl",
        "sum",
        "trim",
        "try_cast",
        "upper",
    ]
)
"""Functions whose first argument is not a constant string in practice."""
_BEGINS_A_CONDITION = frozenset(["and", "having", "not", "on", "or", "when", "where"])
_COMPARES = frozenset(
    ["=", "==", "<=>", "<>", "!=", "<", ">", "<=", ">=", "between", "in", "is", "like", "not"]
)
_CLAUSES = {"select": "items", "by": "order", "from": "", "where": "", "having": "", "limit": ""}


@dataclass(frozen=True)
class _Token:
    text: str
    is_quoted: bool = False

    @property
    def name(self) -> str:
        """The name between double quotes; empty for other tokens."""
        return self.text[1:-1] if self.is_quoted and self.text[0] == '"' else ""

    @property
    def word(self) -> str:
        return "" if self.is_quoted else self.text.lower()


def names_in_double_quotes(sql: str, columns: Collection[str]) -> list[str]:
    """Words in double quotes that are meant as names of columns.

    :param columns: the lower-case columns of the relations that the query reads.

    >>> names_in_double_quotes('select "Id", "EU" as region from t where x = "id"', ["id"])
    ['Id']
    """
    tokens = list(_tokens(sql))
    found: dict[str, None] = {}
    clauses, opened = [""], [""]
    end = _Token("")
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else end
        after = tokens[at + 1] if at + 1 < len(tokens) else end
        if token.word == "(":
            opened.append(before.word)
            clauses.append("")
        elif token.word == ")" and len(clauses) > 1:
            opened.pop()
            clauses.pop()
        elif token.word in _CLAUSES:
            clauses[-1] = _CLAUSES[token.word]
        elif token.name and _is_meant(before, token, after, clauses[-1], opened[-1], columns):
            has_alias = clauses[-1] == "items" and after.word.isidentifier()
            if not (has_alias and _is_read_next_to(tokens, at)):
                found[token.name] = None
    return list(found)


def _is_meant(
    before: _Token, token: _Token, after: _Token, clause: str, function: str, columns: Collection[str]
) -> bool:
    if before.word in (".", "as"):
        return True
    begins_item = before.word in ("select", "distinct", "all", "by") or (before.word == "," and clause != "")
    is_item = begins_item and (after.word in ("", ",", ")") or after.word.isidentifier())
    if clause == "order" and is_item:
        return True
    if token.name.lower() not in columns:
        return False
    is_compared = before.word in _BEGINS_A_CONDITION and after.word in _COMPARES
    is_argument = before.word in ("(", "distinct") and function in _OF_A_COLUMN
    return is_item or is_compared or is_argument


def _is_read_next_to(tokens: Sequence[_Token], at: int) -> bool:
    """Whether the same select list also contains the name of a string without quotes or in backticks.

    Then the string is the text itself, as in ``select "price" as measure, price as value``.
    """
    wanted = tokens[at].name.lower()
    before = _same_select(reversed(tokens[:at]), "select", opens=")")
    after = _same_select(iter(tokens[at + 1 :]), "from", opens="(")
    read = [one.text.strip("`").lower() for one in (*before, *after) if not one.name]
    return wanted in read


def _same_select(tokens: Iterator[_Token], end: str, opens: str) -> Iterator[_Token]:
    """The tokens up to the keyword that begins or ends the select list, including those in parentheses."""
    depth = 0
    for token in tokens:
        if token.word in ("(", ")"):
            depth += 1 if token.word == opens else -1
        if depth < 0 or (depth == 0 and token.word == end):
            return
        yield token


def _tokens(sql: str) -> Iterator[_Token]:
    for kind, text in pieces(sql):
        if kind is Piece.QUOTED:
            yield _Token(text, is_quoted=True)
        elif kind is Piece.CODE:
            yield from (_Token(found) for found in _TOKEN.findall(text))
