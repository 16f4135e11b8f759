"""Queries of one row that consist of several aggregates: one aggregate over the rows of all of them.

``SELECT (SELECT count(*) FROM orders), (SELECT max(at) FROM customers)`` becomes a count and a maximum over
``orders UNION ALL customers``, in which each part has NULL for the values of the others. So its auxiliary
view has one row as well, and a change of orders adds to it without reading customers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from dbt_arctic.keyed.type_categories import TypeCategory
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Join,
    Node,
    Project,
    SubqueryRef,
    UnionAll,
    Values,
)
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.scalars import as_operand, column, columns_of, substitute
from dbt_arctic.planner.delta.count_distinct import counted_once
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import exact, type_text

_CALLS = (exp.Avg, exp.Count, exp.Max, exp.Min, exp.Sum)
_NARROWEST: Mapping[TypeCategory, str] = {"int": "int", "bigint": "bigint", "decimal": "decimal(1,0)"}
"""For a sort of number, a type of which the sum or average with others of the sort has their type."""


@dataclass(frozen=True)
class _Row:
    """A relation of one row.

    :param items: its columns, over the outputs of the aggregates.
    """

    items: Mapping[str, exp.Expression]
    aggregates: tuple[Aggregate, ...] = ()

    def beside(self, other: _Row) -> _Row:
        return _Row({**self.items, **other.items}, (*self.aggregates, *other.aggregates))


def as_one_aggregate(query: Query) -> Query:
    """The same query with one aggregate, if it is a single row of several; otherwise the query itself."""
    row = _row_of(query.node)
    if row is None or len(row.aggregates) < 2:
        return query
    used = columns_of(*(row.items[identifier] for _, identifier in query.columns))
    parts = [(one, [(name, call) for name, call in one.aggregates if name in used]) for one in row.aggregates]
    merged = _merged([(one.child, calls) for one, calls in parts if calls], query.types)
    if merged is None:
        return query
    shown = dict.fromkeys(identifier for _, identifier in query.columns)
    return replace(query, node=Project(merged, tuple((name, row.items[name]) for name in shown)))


def _row_of(node: Node) -> _Row | None:
    """The columns and aggregates of a relation of one row; ``None`` if it is another one."""
    if isinstance(node, Values):
        return _Row({"_one": exp.Literal.number(1)}) if node.output == ("_one",) else None
    if isinstance(node, Aggregate):
        is_one = not node.groups and node.grouping_sets is None
        return _Row({name: column(name) for name in node.output}, (node,)) if is_one else None
    if isinstance(node, Join):
        left, right = _row_of(node.left), _row_of(node.right)
        is_cross = node.kind == "inner" and not node.conditions
        return left.beside(right) if is_cross and left is not None and right is not None else None
    if not isinstance(node, Project):
        return None
    below = _row_of(node.child)
    values: list[exp.Expression] = []
    for one in node.subqueries:
        row = _row_of(one.plan) if one.kind == "scalar" and not one.correlation else None
        if below is None or row is None or one.value is None:
            return None
        values.append(substitute(one.value, row.items))
        below = _Row(below.items, (*below.aggregates, *row.aggregates))
    if below is None:
        return None
    items = {name: _with_values(substitute(value, below.items), values) for name, value in node.items}
    return _Row(items, below.aggregates)


def _with_values(value: exp.Expression, values: Sequence[exp.Expression]) -> exp.Expression:
    """An expression with the values of its subqueries."""
    if isinstance(value, SubqueryRef):
        return values[value.number]
    made = value.copy()
    for ref in list(made.find_all(SubqueryRef)):
        ref.replace(as_operand(values[ref.number]))
    return made


def _merged(
    parts: Sequence[tuple[Node, Sequence[tuple[str, exp.Expression]]]], types: Mapping[str, str]
) -> Aggregate | None:
    """One aggregate over the rows of all parts; ``None`` if another aggregate or an unknown type is there."""
    calls: list[tuple[str, exp.Expression]] = []
    values: list[tuple[int, exp.Expression, str]] = []
    for place, (child, own) in enumerate(parts):
        for name, call in own:
            argument = _argument(call)
            type_ = None if argument is None else _type_of(argument, child, types)
            if argument is None or type_ is None:
                return None
            values.append((place, argument, type_))
            calls.append((name, _over(call, f"_value_{len(values)}")))
    if len(parts) < 2:
        return None
    columns = tuple(f"_value_{number}" for number, _ in enumerate(values, 1))
    children = tuple(
        Project(
            child,
            tuple(
                (f"_of_{place}_{number}", argument if own == place else _null(type_))
                for number, (own, argument, type_) in enumerate(values, 1)
            ),
        )
        for place, (child, _) in enumerate(parts)
    )
    return Aggregate(UnionAll(children, columns), (), tuple(calls))


def _argument(call: exp.Expression) -> exp.Expression | None:
    """The value that a call aggregates, 1 for ``count(*)``; ``None`` for another aggregate."""
    distinct = counted_once(call)
    if distinct is not None:
        return distinct
    if not isinstance(call, _CALLS) or call.args.get("expressions") or isinstance(call.this, exp.Distinct):
        return None
    is_count = isinstance(call, exp.Count) and isinstance(call.this, exp.Star | exp.Literal)
    value = exp.Literal.number(1) if is_count else call.this
    return value if isinstance(value, exp.Expression) else None


def _over(call: exp.Expression, name: str) -> exp.Expression:
    made = call.copy()
    value: exp.Expression = column(name)
    made.set("this", value if counted_once(call) is None else exp.Distinct(expressions=[value]))
    return made


def _type_of(value: exp.Expression, child: Node, types: Mapping[str, str]) -> str | None:
    """The type of a value, or one that a union with the value widens to its type."""
    inferred = Types(child, types)
    found = exact(inferred.of(value))
    return _NARROWEST.get(inferred.category(value)) if found is None else type_text(found)


def _null(type_: str) -> exp.Expression:
    return exp.cast(exp.Null(), type_, dialect="spark")


__all__ = ["as_one_aggregate"]
