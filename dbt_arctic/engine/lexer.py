"""Splits SQL into code, strings and comments by Spark's lexical rules, without a grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum


class Piece(Enum):
    """The kind of a piece of a statement's text."""

    CODE = "code"
    QUOTED = "quoted"
    COMMENT = "comment"
    PLACEHOLDER = "placeholder"


PLACEHOLDER = Piece.PLACEHOLDER

_SPECIAL = re.compile(
    r"""
      (?P<raw>\b[rR](?:'[^']*'|"[^"]*"))
    | (?P<quoted>'(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | `(?:``|[^`])*`)
    | (?P<line>--(?:\\\n|[^\r\n])*)
    | (?P<block>/\*)
    | (?P<placeholder>%s)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLOCK_EDGE = re.compile(r"/\*|\*/")
_INNER_END = re.compile(r";(?=[\s;]*\))")
_WORD = re.compile(r"[A-Za-z_]\w*")


def pieces(sql: str, *, placeholders: bool = False) -> Iterator[tuple[Piece, str]]:
    """Split a text into pieces, whose concatenation is the text.

    >>> [(kind.value, text) for kind, text in pieces("a -- b")]
    [('code', 'a '), ('comment', '-- b')]
    """
    at = code_from = 0
    while (found := _SPECIAL.search(sql, at)) is not None:
        if found.lastgroup == "placeholder" and not placeholders:
            at = found.end()
            continue
        end = _block_end(sql, found.end()) if found.lastgroup == "block" else found.end()
        if found.start() > code_from:
            yield Piece.CODE, sql[code_from : found.start()]
        if found.lastgroup == "placeholder":
            yield Piece.PLACEHOLDER, found.group()
        elif found.lastgroup in ("line", "block"):
            yield Piece.COMMENT, sql[found.start() : end]
        else:
            yield Piece.QUOTED, sql[found.start() : end]
        at = code_from = end
    if code_from < len(sql):
        yield Piece.CODE, sql[code_from:]


def without_comments(sql: str) -> str:
    """The statement with each comment replaced by a space.

    >>> without_comments("/* a /* b */ c */ SELECT '--x' -- y").strip()
    "SELECT '--x'"
    """
    return "".join(" " if kind is Piece.COMMENT else text for kind, text in pieces(sql))


def without_leading_comments(sql: str) -> str:
    """The statement without comments before its first word; hints, which look like comments, are kept.

    >>> without_leading_comments("/* -- */ -- x\\nSELECT /*+ COALESCE(1) */ 1")
    'SELECT /*+ COALESCE(1) */ 1'
    """
    at = 0
    for kind, text in pieces(sql):
        if kind is not Piece.COMMENT and text.strip():
            return sql[at:].lstrip()
        at += len(text)
    return sql


def without_end(sql: str) -> str:
    """The statement without a semicolon at its end and comments after it.

    >>> without_end("SELECT ';' ; -- the end;")
    "SELECT ';'"
    """
    end = at = 0
    for kind, text in pieces(sql):
        at += len(text)
        if kind is Piece.CODE and (code := text.rstrip().rstrip("; \t\r\n")):
            end = at - len(text) + len(code)
        elif kind is not Piece.CODE and kind is not Piece.COMMENT:
            end = at
    return without_inner_ends(sql[:end] if ";" in _code(sql[end:]) else sql)


def without_inner_ends(sql: str) -> str:
    """The statement without semicolons before a closing parenthesis.

    dbt inserts the SQL of an ephemeral model unchanged, including its final semicolon.

    >>> without_inner_ends("with a as (select ';' ; -- the end)\\n) select ')' from a;")
    "with a as (select ';'   -- the end)\\n) select ')' from a;"
    """
    if ";" not in sql:
        return sql
    code = "".join(
        text if kind is Piece.CODE else (" " if kind is Piece.COMMENT else "x") * len(text)
        for kind, text in pieces(sql)
    )
    characters = list(sql)
    for end in _INNER_END.finditer(code):
        characters[end.start()] = " "
    return "".join(characters)


def split_statements(text: str) -> list[str]:
    """Split a text into statements, of which the last need not end with a semicolon.

    Comments are not statements.

    >>> split_statements("DELETE FROM a; INSERT INTO b VALUES (';'); -- done; really")
    ['DELETE FROM a', "INSERT INTO b VALUES (';')"]

    A script is a single statement for Spark.

    >>> split_statements("BEGIN SELECT 1; SELECT 2; END")
    ['BEGIN SELECT 1; SELECT 2; END']
    """
    if first_word(text) == "BEGIN":
        return [text]
    statements, rest = split_header(text)
    return [one for one in (*statements, rest) if without_comments(one).strip()]


def split_header(header: str | None) -> tuple[list[str], str]:
    """The statements of a ``sql_header``, and the remaining text that precedes the main statement.

    >>> split_header("SET a = ';'; /* note */")
    (["SET a = ';'"], '/* note */')
    """
    parts = [""]
    for kind, text in pieces(header or ""):
        first, *more = text.split(";") if kind is Piece.CODE else [text]
        parts[-1] += first
        parts.extend(more)
    return [part.strip() for part in parts[:-1] if part.strip()], parts[-1].strip()


def _code(sql: str) -> str:
    return "".join(text for kind, text in pieces(sql) if kind is Piece.CODE)


def first_word(sql: str) -> str:
    """The first keyword of a statement, in capitals; empty if there is none.

    >>> first_word("/* {} */ -- x\\n( merge into t")
    'MERGE'
    """
    found = _WORD.search(without_comments(sql))
    return found.group().upper() if found else ""


def _block_end(sql: str, at: int) -> int:
    # Spark's bracketed comments nest.
    depth = 1
    while depth and (edge := _BLOCK_EDGE.search(sql, at)) is not None:
        depth += 1 if edge.group() == "/*" else -1
        at = edge.end()
    return len(sql) if depth else at
