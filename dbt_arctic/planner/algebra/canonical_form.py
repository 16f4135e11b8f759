"""Whether two parts of a query compute the same: their SQL with numbered identifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

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
    State,
    Subquery,
    UnionAll,
    Values,
    Window,
    children,
    map_children,
)
from dbt_arctic.planner.algebra.render import Renderer
from dbt_arctic.planner.algebra.scalars import column, substitute


def canonical_sql(node: Node) -> str:
    """The SQL of a tree, the same for two trees that differ in their identifiers only.

    Upstreams have the names that scans have.
    """
    names: dict[str, str] = {}
    _number(node, names)
    return Renderer(_AsNamed()).query(_Renaming(names).node(node))


class _AsNamed:
    def relation(self, source: str, state: State) -> str:
        return f"{source}@{state}"


def _number(node: Node, names: dict[str, str]) -> None:
    for child in children(node):
        _number(child, names)
    # The columns of Values are in its SQL text.
    for name in node.output if not isinstance(node, Values) else ():
        names.setdefault(name, f"_{len(names)}")


@dataclass(frozen=True)
class _Renaming:
    names: Mapping[str, str]

    def node(self, node: Node) -> Node:
        node = map_children(node, self.node)
        if isinstance(node, Project | Filter):
            node = replace(node, subqueries=tuple(map(self._subquery, node.subqueries)))
        match node:
            case Scan():
                columns = tuple(one._replace(identifier=self._name(one.identifier)) for one in node.columns)
                return replace(node, alias="t", columns=columns)
            case Project():
                return replace(node, items=self._items(node.items))
            case Filter() | Join():
                return replace(node, conditions=self._values(node.conditions))
            case Aggregate():
                return replace(node, groups=self._items(node.groups), aggregates=self._items(node.aggregates))
            case Window():
                partition = self._values(node.partition)
                return replace(node, partition=partition, items=self._items(node.items))
            case UnionAll() | SetOperation():
                return replace(node, columns=tuple(map(self._name, node.columns)))
            case Generate():
                columns_ = tuple(map(self._name, node.columns))
                return replace(node, function=self._value(node.function), columns=columns_)
            case Limit():
                return replace(node, order=self._values(node.order))
            case KeySemiJoin():
                pairs = tuple((self._value(one), self._name(key)) for one, key in node.pairs)
                return replace(node, pairs=pairs)
            case Values():
                return node

    def _subquery(self, found: Subquery) -> Subquery:
        return replace(
            found,
            correlation=self._values(found.correlation),
            value=None if found.value is None else self._value(found.value),
            operand=None if found.operand is None else self._value(found.operand),
        )

    def _name(self, one: str) -> str:
        return self.names.get(one, one)

    def _value(self, one: exp.Expression) -> exp.Expression:
        return substitute(one, {name: column(number) for name, number in self.names.items()})

    def _values(self, found: tuple[exp.Expression, ...]) -> tuple[exp.Expression, ...]:
        return tuple(map(self._value, found))

    def _items(self, found: tuple[tuple[str, exp.Expression], ...]) -> tuple[tuple[str, exp.Expression], ...]:
        return tuple((self._name(shown), self._value(one)) for shown, one in found)


__all__ = ["canonical_sql"]
