"""Rewrites that preserve the meaning of a tree: predicate pushdown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import (
    Filter,
    Join,
    Node,
    Project,
    Subquery,
    SubqueryRef,
    map_children,
)
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.spark.dialect import TimeFunction


def conjuncts(condition: exp.Expression | None) -> list[exp.Expression]:
    """The conjuncts of a condition. Those that all alternatives of a disjunction share are factored out."""
    if condition is None:
        return []
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    return _factored(condition) if isinstance(condition, exp.Or) else [condition]


def _factored(condition: exp.Or) -> list[exp.Expression]:
    """Rewrite ``a AND b OR a AND c`` as ``a`` and ``b OR c``: an equality outside OR can be a join key."""
    if condition.find(exp.Query) is not None:
        return [condition]
    alternatives = [conjuncts(part) for part in _alternatives(condition)]
    common = [part for part in alternatives[0] if all(part in other for other in alternatives[1:])]
    if not common:
        return [condition]
    rests = [[part for part in parts if part not in common] for parts in alternatives]
    if not all(rests):
        return common  # By absorption: one alternative is the common part alone.
    return [*common, cast(exp.Expression, exp.or_(*(exp.and_(*parts) for parts in rests)))]


def _alternatives(condition: exp.Expression) -> list[exp.Expression]:
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if isinstance(condition, exp.Or):
        return [*_alternatives(condition.this), *_alternatives(condition.expression)]
    return [condition]


def filtered(node: Node, conditions: Iterable[exp.Expression], subqueries: tuple[Subquery, ...] = ()) -> Node:
    """A tree filtered by conditions.

    A condition that is a computed column of a projection is applied below the projection, as the expression
    that computes it. There, the analyses see which columns it constrains.
    """
    parts = list(conditions)
    if isinstance(node, Project) and not node.subqueries:
        values = {name: value for name, value in node.items if not isinstance(value, exp.Column)}
        moved = [part for part in parts if isinstance(part, exp.Column) and part.name in values]
        if moved:
            below = tuple(one.copy() for part in moved for one in conjuncts(values[part.name]))
            node = replace(node, child=Filter(node.child, below))
            parts = [part for part in parts if not any(part is one for one in moved)]
    return Filter(node, tuple(parts), subqueries) if parts else node


def pushed_down(node: Node) -> Node:
    """Push conditions above a join down into one of its inputs, or into the join condition."""
    node = map_children(node, pushed_down)
    if isinstance(node, Filter):
        return _pushed(node)
    return node


def _pushed(node: Filter) -> Node:
    if not isinstance(node.child, Join):
        return node
    join = node.child
    left, right = frozenset(join.left.output), frozenset(join.right.output)
    to_left: list[exp.Expression] = []
    to_right: list[exp.Expression] = []
    to_join: list[exp.Expression] = []
    stays: list[exp.Expression] = []
    for part in node.conditions:
        used = columns_of(part)
        if part.find(SubqueryRef) is not None or not used:
            stays.append(part)
        elif used <= left and join.kind in ("inner", "left"):
            to_left.append(part)
        elif used <= right and join.kind in ("inner", "right"):
            to_right.append(part)
        elif join.kind == "inner" and used <= left | right and part.find(TimeFunction) is None:
            to_join.append(part)
        else:
            stays.append(part)
    made: Node = Join(
        _filtered(join.left, to_left),
        _filtered(join.right, to_right),
        join.kind,
        (*join.conditions, *to_join),
    )
    return Filter(made, tuple(stays), node.subqueries) if stays else made


def _filtered(node: Node, conditions: Iterable[exp.Expression]) -> Node:
    parts = tuple(conditions)
    if not parts:
        return node
    if isinstance(node, Filter):
        return _pushed(Filter(node.child, (*node.conditions, *parts), node.subqueries))
    return _pushed(Filter(node, parts))
