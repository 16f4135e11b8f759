"""Averages of ``BIGINT`` from exact sums, with a check that Spark's average is exact as well.

Spark adds the values as doubles, so the last digits may depend on the order of the rows. While the absolute
values add up to less than 2^53, each partial sum is a whole number that a double holds exactly, and so is
their sum. The sum of absolute values is stored with the others, or computed with them where affected groups
are recomputed.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.columns import all_expressions
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Node,
    Project,
    Subquery,
    map_children,
    walk,
)
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.render import quoted
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.spark.dialect import expression, to_sql
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import BIGINT, is_decimal, is_known, loosened

_EXACT_BELOW = 2**53
"""Whole numbers that a double holds exactly."""
_MESSAGE = "the values of an average are so large that its last digits depend on the order of the rows"


def with_exact_averages(query: Query, *, in_any_mode: bool = False) -> Query:
    """The same query without averages of ``BIGINT``. It ends with an error where these would not be exact.

    :param in_any_mode: whether the check must hold without ANSI mode as well, in which integers wrap around:
        then absolute values are added as decimals.
    """
    types = Types(query.node, query.types)

    def is_average(call: exp.Expr) -> bool:
        if not isinstance(call, exp.Avg) or isinstance(call.this, exp.Distinct):
            return False
        return loosened(types.of(call.this)) == BIGINT

    def change(node: Node) -> Node:
        node = map_children(node, change)
        if isinstance(node, Filter | Project) and in_any_mode:
            return replace(node, subqueries=tuple(map(changed, node.subqueries)))
        if not isinstance(node, Aggregate):
            return node
        averages = {name: call.this for name, call in node.aggregates if is_average(call)}
        return _without(node, averages, in_any_mode) if averages else node

    def changed(one: Subquery) -> Subquery:
        """A correlated subquery, which is no aggregate of its own in the tree."""
        if one.value is None or not any(is_average(call) for call in one.value.walk()):
            return one
        value = one.value.copy().transform(lambda call: _checked(call) if is_average(call) else call)
        assert isinstance(value, exp.Expression)
        return replace(one, value=value)

    made = change(query.node)
    return query if made == query.node else replace(query, node=made)


def has_inexact_averages(query: Query) -> bool:
    """Whether a query has averages of ``BIGINT``."""
    return with_exact_averages(query, in_any_mode=True) is not query


def adds_decimals(query: Query) -> bool:
    """Whether a query adds decimals, or values of an unknown type.

    Without ANSI mode, a sum that overflows is NULL, which a sum of sums would leave out.
    """
    types = Types(query.node, query.types)
    parts = (part for node in walk(query.node) for part in all_expressions(node))
    added = (call.this for part in parts for call in part.find_all(exp.Sum, exp.Avg))
    return any(not is_known(one) or is_decimal(one) for one in map(types.of, added))


def _without(node: Aggregate, averages: dict[str, exp.Expression], in_any_mode: bool) -> Project:
    kept = tuple(one for one in node.aggregates if one[0] not in averages)
    added: list[tuple[str, exp.Expression]] = []
    values: dict[str, exp.Expression] = {}
    for name, value in averages.items():
        total, count, size = (f"_{what}_of_{name}" for what in ("total", "count", "size"))
        absolute = exp.Abs(this=_as_decimal(value) if in_any_mode else exp.Paren(this=value.copy()))
        added += [
            (total, exp.Sum(this=value.copy())),
            (count, exp.Count(this=value.copy(), big_int=True)),
            (size, exp.Sum(this=absolute)),
        ]
        values[name] = _quotient(quoted(size), quoted(total), quoted(count))
    items = tuple((name, values.get(name, column(name))) for name in node.output)
    return Project(replace(node, aggregates=(*kept, *added)), items)


def _checked(average: exp.Expr) -> exp.Expression:
    value = average.this
    size = exp.Sum(this=exp.Abs(this=_as_decimal(value)))
    total, count = exp.Sum(this=value.copy()), exp.Count(this=value.copy(), big_int=True)
    return _quotient(to_sql(size), to_sql(total), to_sql(count))


def _quotient(size: str, total: str, count: str) -> exp.Expression:
    return expression(
        f"CASE WHEN {size} >= {_EXACT_BELOW} THEN raise_error('{_MESSAGE}') "
        f"ELSE try_divide(CAST({total} AS DOUBLE), CAST({count} AS DOUBLE)) END"
    )


def _as_decimal(value: exp.Expression) -> exp.Expression:
    return exp.cast(value.copy(), "DECIMAL(20, 0)", dialect="spark")


__all__ = ["adds_decimals", "has_inexact_averages", "with_exact_averages"]
