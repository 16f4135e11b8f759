"""What a statement in MariaDB's log means for a table. Pure.

With ``binlog_format=ROW``, the log has the rows of ``INSERT``, ``UPDATE`` and ``DELETE``, and the text of
other statements.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from dbt_arctic.databases.api import TableName

Effect = Literal["none", "alter", "replace"]
"""``alter`` changes columns; ``replace`` changes rows in a way that the log has no rows of."""

_TOKEN = r"""
    /\*M?!\d* | \*/                           # the limits of a comment that is executed
    | /\*.*?\*/ | (?:--(?=\s|$)|\#)[^\n]*      # a comment
    | (?P<text>{texts})
    | `(?P<name>(?:[^`]|``)+)` | "(?P<other>(?:[^"]|"")+)"
    | (?P<word>[\w$]+) | (?P<sign>\S)
"""
_ESCAPED, _PLAIN = r"(?:[^{0}\\]|\\.|{0}{0})*", r"(?:[^{0}]|{0}{0})*"
_NAME = "`"
"""The first character of a token that is a name in quotes: it is no keyword."""


class SqlMode(NamedTuple):
    """What the ``sql_mode`` of a statement's session says about quotes.

    :param has_names: whether a text in double quotes is a name (``ANSI_QUOTES``).
    :param has_escapes: whether ``\\`` escapes a quote (not ``NO_BACKSLASH_ESCAPES``).
    """

    has_names: bool = False
    has_escapes: bool = True


_DEFAULT = SqlMode()


_NO_ROWS = (
    *("begin", "commit", "rollback", "savepoint", "release", "xa", "set", "flush", "grant", "revoke", "use"),
)
_MAINTENANCE = ("analyze", "optimize", "repair", "check")
_OF_ROWS = {
    *("partition", "partitions", "partitioning", "ignore", "exchange", "truncate", "import", "discard"),
    "versioning",
}
"""Words of an ``ALTER TABLE`` that may change which rows a table has."""
_RENAMED_PARTS = ("column", "index", "key")
_OF_TABLE = (
    *("comment", "engine", "auto_increment", "row_format", "algorithm", "lock", "enable", "disable", "force"),
)
_KINDS = (
    *("table", "database", "schema", "index", "view", "trigger", "procedure", "function", "event", "user"),
    *("role", "sequence", "server", "package", "tablespace"),
)
_CHANGES = (["add"], ["drop"], ["rename"])
_CONSTRAINTS = (
    *("index", "key", "constraint", "unique", "foreign", "fulltext", "spatial", "primary", "check"),
)


def words_of(statement: str, mode: SqlMode = _DEFAULT) -> list[str]:
    """The words and names of a statement in lower case, without its texts and comments.

    >>> words_of("ALTER TABLE `Orders` /* x */ ADD note text DEFAULT 'a b'")
    ['alter', 'table', 'orders', 'add', 'note', 'text', 'default']
    """
    return [
        token.removeprefix(_NAME)
        for token in _tokens(statement, mode)
        if token[0].isalnum() or token[0] in "_$" or len(token) > 1
    ]


def effect_on(statement: str, database: str, table: TableName, mode: SqlMode = _DEFAULT) -> Effect:
    """What a statement means for a table. What is not known to leave its rows alone replaces them.

    :param database: the default database of the statement.

    >>> effect_on("ALTER TABLE t ADD x int", "shop", TableName("shop", "t"))
    'alter'
    >>> effect_on("ALTER TABLE t ADD x int", "other", TableName("shop", "t"))
    'none'
    >>> effect_on("TRUNCATE shop.t", "other", TableName("shop", "t"))
    'replace'
    """
    tokens = _tokens(statement, mode)
    while tokens[:2] == ["set", "statement"] and "for" in tokens:  # .. lock_wait_timeout = 5 FOR ALTER TABLE
        tokens = tokens[tokens.index("for") + 1 :]
    words = [token for token in tokens if token != "."]
    first, rest = (words[0], words[1:]) if words else ("begin", [])
    is_named = _names(tokens, database, table)
    if first in _NO_ROWS or (first in _MAINTENANCE and "table" in rest[:2]):
        return "none"
    if first in ("create", "drop", "alter"):
        return _of_definition(first, rest, tokens, is_named, database, table)
    # The log has a SELECT as text if it calls a function that changes rows.
    return "replace" if is_named or first == "select" else "none"


def _of_definition(
    first: str, rest: Sequence[str], tokens: Sequence[str], is_named: bool, database: str, table: TableName
) -> Effect:
    kind = next((word for word in rest[:5] if word in _KINDS), "")
    # A new table is empty, and one that exists stays, unless it is replaced.
    is_replaced = list(rest[:2]) == ["or", "replace"]
    if kind in ("database", "schema"):
        drops = first == "drop" or (first == "create" and is_replaced)
        return "replace" if drops and table.schema.lower() in map(_named, rest) else "none"
    if kind != "table" or "temporary" in rest[: rest.index("table")]:
        return "none"
    if first == "create":
        return "replace" if is_replaced and _is_subject(tokens, database, table) else "none"
    if first == "drop":
        return "replace" if is_named else "none"
    renames = any(
        word == "rename" and (list(rest[at + 1 : at + 2]) or [""])[0] not in _RENAMED_PARTS
        for at, word in enumerate(rest)
    )
    if renames or "exchange" in rest:
        return "replace" if is_named else "none"
    if not _is_subject(tokens, database, table):
        return "none"
    clauses = _clauses(tokens)
    if _OF_ROWS & set(rest) or any(map(_changes_rows_unlogged, clauses)):
        return "replace"
    return "none" if all(map(_keeps_columns, clauses)) else "alter"


def _clauses(tokens: Sequence[str]) -> list[list[str]]:
    """The parts of an ``ALTER TABLE`` after the name, apart from what is in parentheses."""
    clauses, depth = [list[str]()], 0
    for token in tokens[_subject(tokens).end :]:
        depth += (token == "(") - (token == ")")
        if token == "," and not depth:
            clauses.append([])
        elif not depth and token != ")":
            clauses[-1].append(token)
    return clauses


def _changes_rows_unlogged(clause: Sequence[str]) -> bool:
    """Whether a part of an ``ALTER TABLE`` adds a foreign key that changes rows: the log lacks them."""
    return "references" in clause and ("cascade" in clause or {"set", "null"} <= set(clause))


def _keeps_columns(clause: Sequence[str]) -> bool:
    """Whether a part of an ``ALTER TABLE`` leaves the columns and values of the table as they are."""
    if clause[:1] and clause[0] in _OF_TABLE:
        return True
    of_default = clause[:1] == ["alter"] and "default" in clause
    return of_default or (clause[:1] in _CHANGES and "".join(clause[1:2]) in _CONSTRAINTS)


@functools.cache
def _pattern(mode: SqlMode) -> re.Pattern[str]:
    form = _ESCAPED if mode.has_escapes else _PLAIN
    texts = [form.format(quote).join((quote, quote)) for quote in ("'" if mode.has_names else "'\"")]
    return re.compile(_TOKEN.format(texts="|".join(texts)), re.DOTALL | re.VERBOSE)


def _tokens(statement: str, mode: SqlMode) -> list[str]:
    """Words, signs, and names in quotes, in lower case. Texts and comments are left out."""
    found = []
    for one in _pattern(mode).finditer(statement):
        kind, token = one.lastgroup, one.group()
        if kind in ("name", "other"):
            quote = token[0]
            found.append(_NAME + one[kind].replace(quote * 2, quote).lower())
        elif kind in ("word", "sign"):
            found.append(token.lower())
    return found


def _named(token: str) -> str:
    """A token as a name."""
    return token.removeprefix(_NAME)


def _names(tokens: Sequence[str], database: str, table: TableName) -> bool:
    """Whether a statement names the table, or possibly does."""
    names = set(map(_named, tokens))
    is_default = database.lower() == table.schema.lower()
    return table.name.lower() in names and (is_default or table.schema.lower() in names)


def _is_subject(tokens: Sequence[str], database: str, table: TableName) -> bool:
    """Whether the name after ``TABLE`` is that of the table."""
    found = _subject(tokens)
    schema = found.schema or database.lower()
    return (schema, found.name) == (table.schema.lower(), table.name.lower())


class _Subject(NamedTuple):
    """The table that a statement defines.

    :param schema: empty for the default database.
    :param end: the place of the token after its name.
    """

    schema: str
    name: str
    end: int


def _subject(tokens: Sequence[str]) -> _Subject:
    at = tokens.index("table") + 1
    while tokens[at : at + 1] and tokens[at] in ("if", "not", "exists"):
        at += 1
    if "".join(tokens[at + 1 : at + 2]) == ".":
        return _Subject(_named(tokens[at]), _named("".join(tokens[at + 2 : at + 3])), at + 3)
    return _Subject("", _named("".join(tokens[at : at + 1])), at + 1)


__all__ = ["Effect", "SqlMode", "effect_on", "words_of"]
