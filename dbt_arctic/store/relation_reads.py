"""Finds the relations that generated SQL reads by their full names, to read them by other texts.

A name counts where a relation can be: behind ``FROM``, ``JOIN`` and ``USING``, and in the list of a ``FROM``
clause. Names in strings, comments and expressions do not, and neither does the target of a statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark

from dbt_arctic.keyed.names import Name

_QUOTED = TokenType.IDENTIFIER
_NOT_WORDS = {_QUOTED, TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER}
_AFTER_FROM = frozenset(
    [
        *("WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "WINDOW", "QUALIFY", "LIMIT"),
        *("UNION", "EXCEPT", "INTERSECT", "MINUS", "SELECT", "WHEN", "SET", "VALUES"),
    ]
)
"""Words that end a ``FROM`` clause: a comma behind them does not separate relations."""
_VERSIONS = frozenset(["VERSION", "TIMESTAMP"])
_PARTS = 3


@dataclass
class _Level:
    """What was seen inside the innermost parentheses.

    :param is_clause: whether ``FROM`` begins a clause here. In ``extract(YEAR FROM x)`` it does not.
    """

    is_clause: bool = False
    in_from: bool = False


def with_reads(sql: str, text_of: Callable[[Name], str | None]) -> str:
    """SQL that reads relations by other texts.

    A relation at a version, and a metadata table of one, stay as they are.

    :param text_of: the text for a ``FROM`` clause that reads a relation; ``None`` to read it by its name.
    :raises sqlglot.errors.TokenError: a string, name or comment of the SQL has no end.
    """
    written, end = [], 0
    for name, start, after in _reads(list(Spark().tokenize(sql))):
        text = text_of(name)
        if text is not None:
            written += [sql[end:start], text]
            end = after
    return "".join((*written, sql[end:]))


def _reads(tokens: list[Token]) -> list[tuple[Name, int, int]]:
    """The names of relations that are read, with the positions in the text where each begins and ends."""
    found: list[tuple[Name, int, int]] = []
    levels, expected = [_Level(is_clause=True)], False
    for at, token in enumerate(tokens):
        word = _word(token)
        if token.token_type is TokenType.L_PAREN:
            # Parentheses in place of a relation contain a query, or relations again.
            levels.append(_Level(is_clause=expected, in_from=expected))
            continue
        if expected and (parts := _name_at(tokens, at)) and not _is_at_version(tokens, at):
            found.append((Name(*(part.text for part in parts)), parts[0].start, parts[-1].end + 1))
        level = levels[-1]
        expected = _expects_relation(tokens, at, level)
        if word in ("SELECT", "DELETE"):
            level.is_clause = True
        if word in _AFTER_FROM:
            level.in_from = False
        elif expected:
            level.in_from = True
        if token.token_type is TokenType.R_PAREN and len(levels) > 1:
            levels.pop()
    return found


def _expects_relation(tokens: list[Token], at: int, level: _Level) -> bool:
    """Whether the token is followed by a relation."""
    word, before = _word(tokens[at]), _word(tokens[at - 1]) if at else ""
    if word == "FROM":
        return level.is_clause and before not in ("DELETE", "DISTINCT")
    if tokens[at].token_type is TokenType.COMMA:
        return level.in_from
    return word in ("JOIN", "USING")


def _name_at(tokens: list[Token], at: int) -> list[Token]:
    """The three parts of a quoted name that begins at a token; empty if there is none."""
    parts, dots = tokens[at : at + 2 * _PARTS : 2], tokens[at + 1 : at + 2 * _PARTS : 2]
    is_name = len(parts) == _PARTS and all(part.token_type is _QUOTED for part in parts)
    are_dots = [dot.token_type is TokenType.DOT for dot in dots]
    return parts if is_name and are_dots[:2] == [True, True] and are_dots[2:] != [True] else []


def _is_at_version(tokens: list[Token], at: int) -> bool:
    words = [_word(token) for token in tokens[at + 2 * _PARTS - 1 :][:4]]
    if words[:1] == ["FOR"]:
        del words[0]
    return len(words) > 2 and words[0] in _VERSIONS and words[1:3] == ["AS", "OF"]


def _word(token: Token) -> str:
    """The first word of a keyword in capitals; empty for a quoted name, a string or a number."""
    if token.token_type in _NOT_WORDS:
        return ""
    return token.text.upper().partition(" ")[0]
