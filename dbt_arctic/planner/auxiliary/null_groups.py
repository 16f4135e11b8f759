"""Aggregates without groups that are NULL, where the query around drops them: a keyed table has no NULL keys.

``customer_id = c.id`` is never true for an order without a customer, so the auxiliary view of the orders of
each customer needs no group for these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Generate,
    Join,
    KeySemiJoin,
    Limit,
    Node,
    Project,
    Scan,
    SetOperation,
    UnionAll,
    Values,
    Window,
    map_children,
)
from dbt_arctic.planner.algebra.scalars import plain
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.properties.not_null_columns import compared_columns, not_null_columns

_NONE: frozenset[str] = frozenset()


def without_null_groups(node: Node, keys_of: Mapping[str, Sequence[str]]) -> Node:
    """The same query with conditions below its aggregates that drop groups that are NULL.

    :param keys_of: the keys of upstreams, by stored names.
    """
    facts = Facts({source: UpstreamFacts(True, tuple(key)) for source, key in keys_of.items()})
    return _without(node, _NONE, facts)


def _without(node: Node, names: frozenset[str], facts: Facts) -> Node:
    """The operator without rows in which one of some columns is NULL, as far as aggregates can drop them.

    The query around needs none of these rows, but may get them.
    """
    match node:
        case Project():
            below = frozenset(
                name for shown, value in node.items if shown in names and (name := plain(value))
            )
        case Filter():
            below = names | compared_columns(node.conditions)
        case Join():
            return _joined(node, names, facts)
        case Aggregate() if node.grouping_sets is None:
            return _grouped(node, names, facts)
        case (
            Aggregate()
            | Generate()
            | Limit()
            | KeySemiJoin()
            | Scan()
            | SetOperation()
            | UnionAll()
            | Values()
            | Window()
        ):
            below = conservative(_NONE, "rows may be dropped above it only, or no query has needed it")
    child = getattr(node, "child", None)
    return map_children(node, lambda part: _without(part, below if part is child else _NONE, facts))


def _joined(node: Join, names: frozenset[str], facts: Facts) -> Node:
    compared = compared_columns(node.conditions)
    left, right = {
        "inner": (names | compared, names | compared),
        "left": (names, compared),
        "right": (compared, names),
    }.get(node.kind, (_NONE, _NONE))
    return replace(
        node,
        left=_without(node.left, left & set(node.left.output), facts),
        right=_without(node.right, right & set(node.right.output), facts),
    )


def _grouped(node: Aggregate, names: frozenset[str], facts: Facts) -> Node:
    child = _without(node.child, _NONE, facts)
    known = not_null_columns(node, facts)
    dropped = tuple(
        exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
        for name, value in node.groups
        if name in names and name not in known
    )
    return replace(node, child=Filter(child, dropped) if dropped else child)


__all__ = ["without_null_groups"]
