"""Rewrites ``QUALIFY``, which Spark 4.1 does not support. The rest of the text stays as it is written.

The condition becomes a column of the SELECT. A query around it filters by this column and leaves it out. In
the condition, Spark resolves the columns of FROM before the aliases of the select list, as Databricks does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from dbt_arctic.errors import ConfigError
from dbt_arctic.planner.spark.dialect import verbatim

_HIDDEN = "_qualify"
_FIX = "select the window function in a subquery, and ask for its value in WHERE"
_OPENING, _CLOSING = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
_SETS = frozenset([TokenType.UNION, TokenType.INTERSECT, TokenType.EXCEPT])
_AFTER = _SETS | {
    *(TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY),
    *(TokenType.LIMIT, TokenType.OFFSET, TokenType.SEMICOLON),
}
"""Tokens that end a SELECT which was put into an outer query."""
_OPERATORS = frozenset(
    [
        *(TokenType.EQ, TokenType.NEQ, TokenType.NULLSAFE_EQ, TokenType.GT, TokenType.GTE, TokenType.LT),
        *(TokenType.LTE, TokenType.STAR, TokenType.SLASH, TokenType.PERCENT, TokenType.DPIPE, TokenType.IN),
        *(TokenType.BETWEEN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.IS, TokenType.AND),
        *(TokenType.OR, TokenType.DOT, TokenType.DCOLON, TokenType.ALIAS, TokenType.COMMA, TokenType.ON),
        *(TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.JOIN, TokenType.USING),
    ]
)
_BEFORE_NAME = _OPERATORS | {
    *(TokenType.SELECT, TokenType.DISTINCT, TokenType.FROM, TokenType.ORDER_BY, TokenType.NOT),
    *(TokenType.PLUS, TokenType.DASH, TokenType.CASE, TokenType.WHEN, TokenType.THEN, TokenType.ELSE),
    *_OPENING,
}
"""Tokens after which ``qualify`` is a name."""
_AFTER_NAME = (
    _AFTER
    | _OPERATORS
    | {
        *(TokenType.CROSS, TokenType.INNER, TokenType.FULL, TokenType.LATERAL, TokenType.NATURAL),
        *(TokenType.PIVOT, TokenType.UNPIVOT, TokenType.WINDOW, TokenType.FROM, TokenType.END),
        *_CLOSING,
    }
)
"""Tokens before which ``qualify`` is a name."""


def without_qualify(sql: str) -> str:
    """An equivalent query without ``QUALIFY``.

    >>> print(without_qualify("select * from t qualify row_number() over (partition by a order by b) = 1"))
    SELECT * EXCEPT (`_qualify`) FROM (
    select * , (
    row_number() over (partition by a order by b) = 1
    ) AS `_qualify`
    from t
    ) AS `_qualified`
    WHERE `_qualify`

    :raises ConfigError: the clause cannot be separated from the text around it.
    """
    written = sql.lower()
    if "qualify" not in written:
        return sql
    number = next(number for number in count() if f"{_HIDDEN}{number or ''}" not in written)
    while True:
        try:
            tokens = list(verbatim().tokenize(sql))
        except SqlglotError:
            return sql  # Spark reports the error.
        clause = _clause(tokens)
        if clause is None:
            return sql
        sql = _rewritten(sql, tokens, clause, f"{_HIDDEN}{number or ''}")


def _clause(tokens: Sequence[Token]) -> int | None:
    """The position of the last QUALIFY clause. Its SELECT contains no other one after it."""
    for place in range(len(tokens) - 1, 0, -1):
        if tokens[place].token_type is not TokenType.QUALIFY or place + 1 == len(tokens):
            continue
        before, after = tokens[place - 1].token_type, tokens[place + 1].token_type
        is_join = after in (TokenType.LEFT, TokenType.RIGHT) and not _is_call(tokens, place + 1)
        if not (before in _BEFORE_NAME or after in _AFTER_NAME or is_join):
            return place
    return None


def _is_call(tokens: Sequence[Token], place: int) -> bool:
    return place + 1 < len(tokens) and tokens[place + 1].token_type is TokenType.L_PAREN


def _rewritten(sql: str, tokens: Sequence[Token], clause: int, hidden: str) -> str:
    here = _same_level(tokens, clause)
    start = max(
        (one for one in here[: here.index(clause)] if tokens[one].token_type is TokenType.SELECT), default=-1
    )
    from_ = next((one for one in here if start < one < clause and _is_from(tokens, one)), None)
    if start < 0 or from_ is None:
        raise _refused(tokens[clause], "it has no SELECT with FROM before it")
    named = next((one for one in here if one > clause and _is_window(tokens, one)), None)
    end = next((one for one in here if one > clause and tokens[one].token_type in _AFTER), here[-1] + 1)
    last = end if named is None else named
    if last <= clause + 1:
        raise _refused(tokens[clause], "it has no condition")
    _refuse_what_changes(tokens, here, start, clause, end)

    items = sql[tokens[start].end + 1 : tokens[from_].start]
    distinct = ""
    if tokens[start + 1].token_type is TokenType.DISTINCT:
        # Rows are filtered before duplicates are removed.
        distinct, items = "DISTINCT ", sql[tokens[start + 1].end + 1 : tokens[from_].start]
    condition = sql[tokens[clause].end + 1 : tokens[last - 1].end + 1].strip()
    inner = [
        f"{tokens[start].text}{items}, (\n{condition}\n) AS `{hidden}`",
        sql[tokens[from_].start : tokens[clause].start].rstrip(),
        *([] if named is None else [sql[tokens[named].start : tokens[end - 1].end + 1]]),
    ]
    around = f"SELECT {distinct}* EXCEPT (`{hidden}`) FROM (\n"
    made = around + "\n".join(inner) + f"\n) AS `_qualified`\nWHERE `{hidden}`"
    rest = sql[tokens[end - 1].end + 1 :]
    return sql[: tokens[start].start] + made + rest


def _same_level(tokens: Sequence[Token], clause: int) -> list[int]:
    """The positions of the tokens in the same parentheses as a clause, without nested ones."""

    def walked(places: range, opening: Sequence[TokenType], closing: Sequence[TokenType]) -> list[int]:
        found, depth = [], 0
        for place in places:
            kind = tokens[place].token_type
            if kind in closing and depth == 0:
                break
            depth -= kind in closing
            if depth == 0:
                found.append(place)
            depth += kind in opening
        return found

    before = walked(range(clause - 1, -1, -1), _CLOSING, _OPENING)
    return [*reversed(before), clause, *walked(range(clause + 1, len(tokens)), _OPENING, _CLOSING)]


def _is_from(tokens: Sequence[Token], place: int) -> bool:
    """Whether a token is the FROM of a SELECT, rather than that of ``IS DISTINCT FROM``."""
    if tokens[place].token_type is not TokenType.FROM:
        return False
    before = [token.token_type for token in tokens[max(place - 3, 0) : place]]
    return not (before[-1] is TokenType.DISTINCT and TokenType.IS in before[:-1])


def _is_window(tokens: Sequence[Token], place: int) -> bool:
    """Whether a token begins ``WINDOW name AS (``."""
    following = [token.token_type for token in tokens[place : place + 4]]
    return following[:1] == [TokenType.WINDOW] and following[2:] == [TokenType.ALIAS, TokenType.L_PAREN]


def _refuse_what_changes(
    tokens: Sequence[Token], here: Sequence[int], start: int, clause: int, end: int
) -> None:
    """Refuse constructs whose meaning an additional column or an outer query would change.

    :raises ConfigError: the query has such a construct.
    """
    by_all = any(
        tokens[one].token_type is TokenType.GROUP_BY and tokens[one + 1].token_type is TokenType.ALL
        for one in here
        if start < one < clause
    )
    if by_all:
        raise _refused(tokens[clause], "GROUP BY ALL would group by its condition, too", "list the groups")
    order = end < len(tokens) and end in here and tokens[end].token_type not in _SETS
    outside = [one for one in here if one >= end] if order else []
    qualified = next((one for one in outside if tokens[one].token_type is TokenType.DOT), None)
    if qualified is not None:
        column = "".join(token.text for token in tokens[qualified - 1 : qualified + 2])
        fix = "order by a name or a number of the select list"
        raise _refused(tokens[clause], f"{column} in ORDER BY is not seen outside of the SELECT", fix)


def _refused(where: Token, why: str, fix: str = _FIX) -> ConfigError:
    return ConfigError(
        "QUALIFY cannot be rewritten for Spark here",
        where=f"line {where.line} of the compiled SQL",
        why=why,
        fix=fix,
    )


__all__ = ["without_qualify"]
