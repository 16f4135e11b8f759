"""Union branch pruning: drops parts of a UNION ALL whose constants contradict the conditions above it.

A query may unite channels, each with a constant as its name, and select one of them by a condition. The other
parts have no rows there, but each rule would expand them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    walk,
)
from dbt_arctic.planner.algebra.scalars import column, plain
from dbt_arctic.planner.frontend.union_types import columns_of_several_types
from dbt_arctic.planner.properties.constant_columns import Constant, constant, constant_of

_Allowed = Mapping[str, frozenset[Constant]]
"""For some columns, the only values that a row may have to be in the result."""

_ANY: _Allowed = {}


def without_excluded_parts(node: Node, types: Mapping[str, str]) -> Node:
    """The same query without parts of a UNION ALL whose rows all fail its conditions.

    :param types: the types of the columns of scans.
    """
    if not any(isinstance(part, UnionAll) and _has_constant(part) for part in walk(node)):
        return node
    return _Excluding(columns_of_several_types(node, types)).within(node)


def _has_constant(node: UnionAll) -> bool:
    return any(constant_of(part, name) is not None for part in node.children for name in part.output)


class _Excluding:
    def __init__(self, mixed: frozenset[str]) -> None:
        self._mixed = mixed

    def within(self, node: Node, allowed: _Allowed = _ANY) -> Node:
        return self.kept(node, allowed) or node

    def kept(self, node: Node, allowed: _Allowed) -> Node | None:
        """The operator without excluded parts; ``None`` if no part of it is left."""
        match node:
            case Filter():
                known = _and(allowed, _allowed_by(node.conditions))
                return _over(self._subqueries(node), self.kept(node.child, known))
            case Project():
                known = _below(allowed, dict(node.items))
                return _over(self._subqueries(node), self.kept(node.child, known))
            case Aggregate():
                by_all = bool(node.groups) and node.grouping_sets is None
                below = self.kept(node.child, _below(allowed, dict(node.groups)) if by_all else _ANY)
                # An aggregate without groups has a row even if its input is empty.
                return _over(node, below if by_all else below or node.child)
            case Window():
                whole = {plain(part) for part in node.partition}
                known = {name: values for name, values in allowed.items() if name in whole}
                return _over(node, self.kept(node.child, known))
            case Join():
                # A row that loses its partner has NULLs there, which the condition above rejects.
                known = _and(allowed, _allowed_by(node.conditions) if node.kind == "inner" else _ANY)
                return replace(node, left=self.within(node.left, known), right=self.within(node.right, known))
            case UnionAll():
                return self._union(node, allowed)
            case SetOperation() | Generate() | Limit() | KeySemiJoin():
                made = map_children(node, self.within)
                return conservative(made, "conditions above them refer to computed rows")
            case Scan() | Values():
                return node  # There are no parts.

    def _subqueries(self, node: Project | Filter) -> Project | Filter:
        plans = tuple(replace(one, plan=self.within(one.plan)) for one in node.subqueries)
        return replace(node, subqueries=plans)

    def _union(self, node: UnionAll, allowed: _Allowed) -> Node | None:
        if not allowed or self._mixed & set(node.columns):
            # Without a part, the column might get another type.
            return map_children(node, self.within)
        left = []
        for child in node.children:
            names = dict(zip(node.columns, child.output, strict=True))
            known = {names[name]: values for name, values in allowed.items() if name in names}
            found = {name: constant_of(child, name) for name in known}
            if any(_contradicts(found[name], values) for name, values in known.items()):
                continue
            part = self.kept(child, known)
            if part is not None:
                left.append(part)
        if len(left) == 1:
            own = zip(node.columns, left[0].output, strict=True)
            return Project(left[0], tuple((name, column(below)) for name, below in own))
        return UnionAll(tuple(left), node.columns) if left else None


def _over(node: Project | Filter | Aggregate | Window, child: Node | None) -> Node | None:
    return None if child is None else replace(node, child=child)


def _below(allowed: _Allowed, items: Mapping[str, exp.Expression]) -> _Allowed:
    """The same for columns that are output under other names."""
    shown = ((plain(items[name]), values) for name, values in allowed.items() if name in items)
    return {name: values for name, values in shown if name is not None}


def _and(one: _Allowed, other: _Allowed) -> _Allowed:
    return {
        name: one[name] & other[name] if name in one and name in other else {**one, **other}[name]
        for name in {**one, **other}
    }


def _allowed_by(conditions: Iterable[exp.Expression]) -> _Allowed:
    found: _Allowed = {}
    for condition in conditions:
        bare = condition.unnest()
        if isinstance(bare, exp.EQ):
            sides = [bare.this.unnest(), bare.expression.unnest()]
            sides.sort(key=lambda side: not isinstance(side, exp.Column))
            name, values = plain(sides[0]), [constant(sides[1])]
        elif isinstance(bare, exp.In) and bare.expressions:
            name, values = plain(bare.this.unnest()), [constant(one.unnest()) for one in bare.expressions]
        else:
            continue
        constants = frozenset(value for value in values if value is not None)
        if name is not None and len(constants) == len(set(values)):
            found = _and(found, {name: constants})
    return found


def _contradicts(constant: Constant | None, values: frozenset[Constant]) -> bool:
    """Whether a constant differs from all values, which have its type."""
    return constant is not None and all(type(one) is type(constant) and one != constant for one in values)


__all__ = ["without_excluded_parts"]
