"""The query that a view stores. Iceberg views match columns, and fields of structs, by position.

A view stores the names and types of its columns, and its query. A reader gets the first column of the query
under the first name, and so on, and the first field of a struct under its first name. If a table that the
view reads has been rebuilt with its columns or the fields of a struct in another order, values would change
places. So a query with ``*`` lists its columns, and one with structs takes their fields by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbt_arctic.data_type import parse_type
from dbt_arctic.engine.lexer import first_word, without_comments, without_end
from dbt_arctic.keyed.assignment import fields_by_name, has_struct
from dbt_arctic.keyed.names import BY_NAME, literal, quote, quote_all

_ALL_COLUMNS = re.compile(r"\*|\|>|\bTABLE\b", re.IGNORECASE)
_NAMES_ITS_COLUMNS = frozenset({"SELECT", "WITH"})


def lists_its_columns(sql: str) -> bool:
    """Whether the text of a query determines its columns and their order.

    >>> [lists_its_columns(sql) for sql in ("SELECT a FROM t", "SELECT * FROM t", "FROM t")]
    [True, False, False]
    """
    text = without_comments(sql)
    return first_word(text) in _NAMES_ITS_COLUMNS and not _ALL_COLUMNS.search(text)


def stored_query(sql: str, columns: Sequence[tuple[str, str]]) -> str:
    """The query that a view stores. Repeated names remain for Spark to reject.

    :param columns: names and types of the columns of the query.

    >>> print(stored_query("SELECT * FROM t;", [("a", "int"), ("x-y", "int")]))
    SELECT `a`, `x-y`
    FROM (
    SELECT * FROM t
    ) AS arctic_query
    >>> stored_query("SELECT a FROM t", [("a", "int")])
    'SELECT a FROM t'
    """
    names = [name for name, _ in columns]
    if len({name.lower() for name in names}) < len(names):
        return sql
    structs = {name: type_ for name, type_ in columns if has_struct(parse_type(type_))}
    if not structs:
        return sql if lists_its_columns(sql) else _selected(quote_all(names), sql)
    # Other columns of the query must not have these names.
    prefix = BY_NAME
    while any(name.lower().startswith(prefix) for name in names):
        prefix += "_"
    others = {name: quote(f"{prefix}{number}") for number, name in enumerate(structs, 1)}
    inner = [quote(name) for name in names]
    inner += [f"{fields_by_name(quote(name), structs[name])} AS {other}" for name, other in others.items()]
    outer = [
        f"{_chosen(name, structs[name], others[name])} AS {quote(name)}" if name in structs else quote(name)
        for name in names
    ]
    return _selected(", ".join(outer), _selected(", ".join(inner), sql))


def _selected(columns: str, sql: str) -> str:
    return f"SELECT {columns}\nFROM (\n{without_end(sql)}\n) AS arctic_query"


def _chosen(name: str, type_: str, other: str) -> str:
    """The column itself if it still has its type, otherwise the one with the same fields by name.

    Spark evaluates a constant ``IDENTIFIER`` while it analyses the query. The plan has the chosen column
    only, so a scan still reads single fields and gets filters on them. An ``IF`` would need two values of one
    type.
    """
    condition = f"typeof({quote(name)}) = {literal(type_)}"
    return f"IDENTIFIER(IF({condition}, {literal(quote(name))}, {literal(other)}))"
