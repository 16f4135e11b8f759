"""Sorts the sets that a query collects, in its text.

The order of ``collect_set()``, and of a list of ``DISTINCT`` values, is that of a hash table. Each order is a
right one, and that of the values is the same in each run.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import Token, exp
from sqlglot.tokenizer_core import TokenType

from dbt_arctic.planner.spark.collected_arrays import COLLECTS
from dbt_arctic.planner.spark.dialect import verbatim
from dbt_arctic.planner.spark.functions import function_name

_SET, _SORTED = "collect_set", "sort_array"


def with_sorted_sets(tree: exp.Query, sql: str) -> str:
    """The text with ``sort_array(collect_set(x))`` for ``collect_set(x)``.

    The same for ``array_agg(DISTINCT x)`` and ``collect_list(DISTINCT x)``. A window function stays as it is.
    So does the text if that would change the name of a column.

    :param tree: of the text as it was parsed.
    """
    if any(_names_its_column(item) for one in tree.find_all(exp.Select) for item in one.expressions):
        return sql
    tokens = verbatim().tokenize(sql)
    edits: list[tuple[int, str]] = []
    for number, token in enumerate(tokens):
        end = _end_of_call(tokens, number) if _is_call(tokens, number) else None
        if end is not None and not _is_sorted(tokens, number):
            edits += [(int(token.start), f"{_SORTED}("), (int(tokens[end].end) + 1, ")")]
    for place, text in sorted(edits, reverse=True):
        sql = f"{sql[:place]}{text}{sql[place:]}"
    return sql


def _names_its_column(item: exp.Expr) -> bool:
    """Whether a column of a select list has no alias, so that its name contains the call."""
    return not isinstance(item, exp.Alias) and any(_collects_a_set(one) for one in item.walk())


def _collects_a_set(call: exp.Expr) -> bool:
    name = function_name(call)
    is_distinct = any(isinstance(one, exp.Distinct) for one in call.iter_expressions())
    return name == _SET or (name in COLLECTS and is_distinct)


def _is_call(tokens: Sequence[Token], number: int) -> bool:
    token = tokens[number]
    name = token.text.lower()
    if name not in COLLECTS or token.token_type == TokenType.IDENTIFIER:
        return False
    following = [one.token_type for one in tokens[number + 1 : number + 3]]
    return following[:1] == [TokenType.L_PAREN] and (name == _SET or following[1:] == [TokenType.DISTINCT])


def _is_sorted(tokens: Sequence[Token], number: int) -> bool:
    before = [token.text.lower() for token in tokens[max(number - 2, 0) : number]]
    return before in ([_SORTED, "("], ["array_sort", "("])


def _end_of_call(tokens: Sequence[Token], number: int) -> int | None:
    """The last token of a call with its FILTER; ``None`` for a window function."""
    end = _closing(tokens, number + 1)
    following = tokens[end + 1 : end + 3]
    if [token.text.upper() for token in following] == ["FILTER", "("]:
        end = _closing(tokens, end + 2)
        following = tokens[end + 1 : end + 2]
    return None if following and following[0].token_type == TokenType.OVER else end


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for number in range(opening, len(tokens)):
        kind = tokens[number].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return number
    return len(tokens) - 1


__all__ = ["with_sorted_sets"]
