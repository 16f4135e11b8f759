"""Differences from Spark that sqlglot's trees no longer show. They are found among the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from dbt_arctic.planner.reasons import CannotPlan, Line

_TIMES = frozenset(["DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
_BEHIND = (TokenType.DCOLON, TokenType.L_BRACKET, TokenType.DOT)


def refuse_words(sql: str, tokens: Sequence[Token]) -> None:
    """Refuse tokens that sqlglot reads with another meaning than Spark.

    :raises CannotPlan: the text contains such a token.
    """
    for at, token in enumerate(tokens):
        following = tokens[at + 1 : at + 4]
        if token.token_type == TokenType.PIPE_GT:
            raise _refused("|>", "write SELECT, in a subquery for each step", token)
        word = token.text.upper()
        if word not in _TIMES or token.token_type == TokenType.STRING:
            continue
        is_literal = len(following) > 1 and following[0].token_type == TokenType.STRING
        if is_literal and following[1].token_type in _BEHIND:
            # sqlglot would apply the type to the whole expression.
            what = f"{word} {following[0].text!r} with {following[1].text} behind it"
            raise _refused(what, "put parentheses around the literal", token)
        if word == "TIMESTAMP" and [one.text.upper() for one in following] == ["WITHOUT", "TIME", "ZONE"]:
            raise _refused("TIMESTAMP WITHOUT TIME ZONE", "write TIMESTAMP_NTZ", token)
    if tokens:
        gaps = [(tokens[0], sql[: tokens[0].start])]
        gaps += [(one, sql[one.end + 1 : other.start]) for one, other in pairwise(tokens)]
        for token, between in gaps:
            if "--" in between and "\\\n" in between:
                what = "\\ at the end of a comment, which continues on the next line"
                raise _refused(what, "remove it", token)


def _refused(what: str, fix: str, token: Token) -> CannotPlan:
    return CannotPlan("unsupported", what, fix, Line(token.line))
