"""The columns of relations from which the values of a query's columns are computed.

Columns that only decide which rows there are (conditions, joins, groups, windows, orders) are not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

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
    Subquery,
    SubqueryRef,
    UnionAll,
    Values,
    Window,
)
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.scalars import columns_of, plain
from dbt_arctic.planner.spark.syntax import has_aggregate


class SourceColumn(NamedTuple):
    """A column of a relation: the name that the query's scans have, and the column's stored name."""

    relation: str
    name: str


class Derivation(IntEnum):
    """How a value follows from another one. Of several steps, the greatest counts."""

    IDENTITY = 0
    TRANSFORMATION = 1
    AGGREGATION = 2


ColumnSources = Mapping[SourceColumn, Derivation]
"""The columns of relations from which a value is computed."""
_Lineage = Mapping[str, ColumnSources]


def column_lineage(query: Query) -> dict[str, ColumnSources]:
    """By output column, the columns of relations from which it is computed. Constants have none."""
    found = _lineage(query.node)
    return {name: found[identifier] for name, identifier in query.columns}


def _lineage(node: Node) -> _Lineage:
    match node:
        case Scan():
            return {
                identifier: {SourceColumn(node.source, name): Derivation.IDENTITY}
                for identifier, name in node.columns
            }
        case Values():
            return {name: {} for name in node.output}
        case Project():
            below = _lineage(node.child)
            return {name: _of(value, below, node.subqueries) for name, value in node.items}
        case Aggregate():
            below = _lineage(node.child)
            groups = {name: _of(value, below) for name, value in node.groups}
            values = {
                name: _of(value, below, least=Derivation.AGGREGATION) for name, value in node.aggregates
            }
            return {**groups, **values}
        case Window():
            below = _lineage(node.child)
            return {**below, **{name: _of_window(item, below) for name, item in node.items}}
        case Generate():
            below = _lineage(node.child)
            return {**below, **dict.fromkeys(node.columns, _of(node.function, below))}
        case Join():
            return {**_lineage(node.left), **({} if node.kind == "semi" else _lineage(node.right))}
        case Filter() | KeySemiJoin() | Limit():
            return _lineage(node.child)
        case UnionAll():
            return _by_position(node, node.parts)
        case SetOperation():
            # Rows come from the left side. Those on the right only decide which ones.
            return _by_position(node, (node.left,))


def _by_position(node: UnionAll | SetOperation, parts: Iterable[Node]) -> _Lineage:
    found = [list(zip(part.output, [_lineage(part)] * len(part.output), strict=True)) for part in parts]
    return {
        name: _merged(below[identifier] for identifier, below in at)
        for name, at in zip(node.columns, zip(*found, strict=True), strict=True)
    }


def _of_window(item: exp.Expression, below: _Lineage) -> ColumnSources:
    """The rows of a window are decided by its partition and its order, its value by the function."""
    functions = [one.this for one in item.find_all(exp.Window)]
    outside = item.transform(lambda one: exp.null() if isinstance(one, exp.Window) else one)
    found = _merged([_of(outside, below), *(_of(one, below) for one in functions)])
    return {source: max(Derivation.TRANSFORMATION, step) for source, step in found.items()}


def _of(
    value: exp.Expression,
    below: _Lineage,
    subqueries: tuple[Subquery, ...] = (),
    *,
    least: Derivation | None = None,
) -> ColumnSources:
    """The columns from which an expression is computed.

    :param least: how it is computed at least; ``None`` to see from the expression.
    """
    step = _step(value) if least is None else least
    found = [below.get(name, {}) for name in columns_of(value)]
    for reference in value.find_all(SubqueryRef):
        subquery = subqueries[reference.number]
        if subquery.value is not None:
            found.append(_of(subquery.value, _lineage(subquery.plan)))
    return {source: max(step, one) for source, one in _merged(found).items()}


def _step(value: exp.Expression) -> Derivation:
    if plain(value) is not None:
        return Derivation.IDENTITY
    return Derivation.AGGREGATION if has_aggregate(value) else Derivation.TRANSFORMATION


def _merged(parts: Iterable[ColumnSources]) -> dict[SourceColumn, Derivation]:
    made: dict[SourceColumn, Derivation] = {}
    for sources in parts:
        for source, step in sources.items():
            made[source] = max(step, made.get(source, step))
    return made


__all__ = ["ColumnSources", "Derivation", "SourceColumn", "column_lineage"]
