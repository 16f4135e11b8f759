"""The query that a view stores. Iceberg views match columns by position, so a query with ``*`` lists them.

A view stores the names and types of its columns, and its query. A reader gets the first column of the query
under the first name, and so on. If a table that ``SELECT *`` reads has been rebuilt with its columns in
another order, the columns of such a view would change places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbt_arctic.engine.lexer import first_word, without_comments, without_end
from dbt_arctic.keyed.names import quote_all

_ALL_COLUMNS = re.compile(r"\*|\|>|\bTABLE\b", re.IGNORECASE)
_NAMES_ITS_COLUMNS = frozenset({"SELECT", "WITH"})


def lists_its_columns(sql: str) -> bool:
    """Whether the text of a query determines its columns and their order.

    >>> [lists_its_columns(sql) for sql in ("SELECT a FROM t", "SELECT * FROM t", "FROM t")]
    [True, False, False]
    """
    text = without_comments(sql)
    return first_word(text) in _NAMES_ITS_COLUMNS and not _ALL_COLUMNS.search(text)


def by_name(sql: str, columns: Sequence[str]) -> str:
    """The query with its columns listed. Repeated names remain for Spark to reject.

    >>> print(by_name("SELECT * FROM t;", ["a", "x-y"]))
    SELECT `a`, `x-y`
    FROM (
    SELECT * FROM t
    ) AS arctic_query
    """
    if len({column.lower() for column in columns}) < len(columns):
        return sql
    return f"SELECT {quote_all(columns)}\nFROM (\n{without_end(sql)}\n) AS arctic_query"
