"""A query restricted to some keys, by a rule for each operator. The rules are in ``rules``."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate, KeySemiJoin, Node
from dbt_arctic.planner.algebra.scalars import column

Pairs = tuple[tuple[exp.Expression, str], ...]
"""Expressions over a node's columns, each with the column of the keys that it must equal."""


def restricted(node: Node, pairs: Pairs, keys: Node) -> Node:
    """The rows of ``node`` whose expressions match a row of ``keys``."""
    return restricted_rule(node, pairs, keys) if pairs else node


@singledispatch
def restricted_rule(node: Node, pairs: Pairs, keys: Node) -> Node:
    """The rule for an operator. Each module of ``rules`` registers its own."""
    raise NotImplementedError(f"no rule for {type(node).__name__}")


def joined_with_keys(node: Node, pairs: Pairs, keys: Node) -> Node:
    """The operator joined with the keys, which is right for any operator."""
    return KeySemiJoin(node, some_of(keys, pairs), pairs)


def some_of(keys: Node, pairs: Iterable[tuple[exp.Expression, str]]) -> Node:
    """The columns of the keys that the pairs use, without duplicate rows."""
    used = tuple(dict.fromkeys(name for _, name in pairs))
    if used == keys.output:
        return keys
    return Aggregate(keys, tuple((name, column(name)) for name in used))
