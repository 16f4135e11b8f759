"""Where in a text the orders of windows and of LIMITs end, so that columns can be added to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlglot import Token, exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from dbt_arctic.planner.spark.dialect import verbatim

_PLACE, _SHOWN = "place", "shown"
"""In the ``meta`` of a window's order: where it ends in the text, and how columns are called there."""
_OPENING, _CLOSING = (TokenType.L_PAREN, TokenType.L_BRACKET), (TokenType.R_PAREN, TokenType.R_BRACKET)
Names = Mapping[str, exp.Expression]
"""How columns are written, by their identifiers."""
_ENDS = (*_CLOSING, TokenType.LIMIT, TokenType.OFFSET)
_FRAMES = frozenset(["ROWS", "RANGE"])


class LimitPlace(NamedTuple):
    """Where the order of the outermost LIMIT ends, and whether it has one."""

    place: int
    is_ordered: bool


def mark_orders(tree: exp.Query, sql: str) -> None:
    """Note in the order of each window, and of each LATERAL subquery, where it ends in the text.

    The tree is changed.

    :param tree: of the text as it was parsed.
    """
    try:
        tokens = verbatim().tokenize(sql)
    except SqlglotError:
        return
    by_start = {token.start: number for number, token in enumerate(tokens)}
    for order in tree.find_all(exp.Order):
        begin_of = _begin_of_window if isinstance(order.parent, exp.Window) else _begin_of_order
        if begin_of is _begin_of_window or order.find_ancestor(exp.Lateral):
            starts = [by_start[start] for start in _starts(order) if start in by_start]
            begin = begin_of(tokens, min(starts)) if starts else None
            place = None if begin is None else _end_of_order(tokens, begin)
            if place is not None:
                order.meta[_PLACE] = place


def note_names(order: exp.Expr | None, names: Callable[[], Names]) -> None:
    """Note in a marked order how columns are called where it stands, by their identifiers."""
    if order is not None and order.meta and _PLACE in order.meta:
        order.meta[_SHOWN] = names()


def place_of(order: exp.Expr | None) -> tuple[int, Names] | None:
    """Where an order ends in the text, and how columns are called there; ``None`` where that is not known."""
    if order is None or not order.meta or _SHOWN not in order.meta:
        return None
    return order.meta[_PLACE], order.meta[_SHOWN]


def place_of_limit(tree: exp.Query, sql: str) -> LimitPlace | None:
    """Where the order of the outermost LIMIT ends in the text; ``None`` where there is no LIMIT."""
    if tree.args.get("limit") is None and tree.args.get("offset") is None:
        return None
    depth, before = 0, 0
    for token in verbatim().tokenize(sql):
        depth -= token.token_type in _CLOSING
        if depth == 0 and token.token_type in (TokenType.LIMIT, TokenType.OFFSET):
            return LimitPlace(before, tree.args.get("order") is not None)
        depth += token.token_type in _OPENING
        before = token.end + 1
    return None


def _starts(order: exp.Expr) -> list[int]:
    return [int(node.meta["start"]) for node in order.walk() if node.meta and "start" in node.meta]


def _end_of_order(tokens: Sequence[Token], begin: int) -> int | None:
    """The end of an order that begins, or whose window begins, at a token."""
    depth = 0
    for number in range(begin + 1, len(tokens)):
        token = tokens[number]
        if depth == 0 and (token.token_type in _ENDS or token.text.upper() in _FRAMES):
            return int(tokens[number - 1].end) + 1
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
    return None


def _begin_of_order(tokens: Sequence[Token], inside: int) -> int | None:
    """The ORDER BY that a word stands in."""
    return next((n for n in range(inside, 0, -1) if tokens[n].token_type == TokenType.ORDER_BY), None)


def _begin_of_window(tokens: Sequence[Token], inside: int) -> int | None:
    """The parenthesis after OVER, or after a name and AS in the WINDOW clause."""
    depth = 0
    for number in range(inside, 0, -1):
        token = tokens[number]
        if token.token_type in _CLOSING and number != inside:
            depth += 1
        elif token.token_type in _OPENING:
            if depth == 0 and tokens[number - 1].token_type in (TokenType.OVER, TokenType.ALIAS):
                return number
            depth = max(depth - 1, 0)
    return None


__all__ = ["LimitPlace", "mark_orders", "note_names", "place_of", "place_of_limit"]
