"""Averages of integers from exact sums, with a check that Spark's average is exact as well.

Spark adds the values as doubles, so the last digits may depend on the order of the rows. While the absolute
values add up to less than 2^53, each partial sum is a whole number that a double holds exactly, and so is
their sum. The sum of absolute values is stored with the others, or computed with them where affected groups
are recomputed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from dbt_arctic.planner.algebra.columns import all_expressions
from dbt_arctic.planner.algebra.operators import (
    Aggregate,
    Filter,
    Node,
    Project,
    Subquery,
    Window,
    map_children,
    walk,
)
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.render import quoted
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.properties.average_types import WRITTEN, added_as_doubles, averaged
from dbt_arctic.planner.spark.dialect import expression, to_sql
from dbt_arctic.planner.spark.functions import function_name
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import is_decimal, is_known

_EXACT_BELOW = 2**53
"""Whole numbers that a double holds exactly."""
_ROWS_OF_INT = 2**32
"""The number of ``INT`` values below which their sum does not leave ``BIGINT``."""
_DISTINCT_INT = 2**22
"""The number of distinct ``INT`` values below which their absolute values add up to less than 2^53."""
_MESSAGE = "the values of an average are so large that its last digits depend on the order of the rows"


def with_exact_averages(query: Query, *, in_any_mode: bool = False) -> Query:
    """The same query without averages of integers. It ends with an error where these would not be exact.

    :param in_any_mode: whether the check must hold without ANSI mode as well, in which integers wrap around:
        then absolute values of ``BIGINT`` are added as decimals.
    """
    types = Types(query.node, query.types)

    def average(call: exp.Expr) -> _Average | None:
        value = averaged(call)
        type_ = None if value is None else added_as_doubles(value, types)
        if value is None or type_ is None or (isinstance(value, exp.Distinct) and type_ == "BIGINT"):
            return None
        return _Average(value, type_, in_any_mode)

    def change(node: Node) -> Node:
        node = map_children(node, change)
        if isinstance(node, Filter | Project):
            return replace(node, subqueries=tuple(map(changed, node.subqueries)))
        if isinstance(node, Window):
            return _over_windows(node, average)
        if not isinstance(node, Aggregate):
            return node
        averages = {name: found for name, call in node.aggregates if (found := average(call)) is not None}
        return _without(node, averages) if averages else node

    def changed(one: Subquery) -> Subquery:
        """A correlated subquery, which is no aggregate of its own in the tree."""
        if one.value is None or not any(map(average, one.value.walk())):
            return one

        def checked(call: exp.Expr) -> exp.Expr:
            found = average(call)
            if found is None:
                return call
            return found.checked({name: to_sql(part) for name, part in found.parts})

        value = one.value.copy().transform(checked)
        assert isinstance(value, exp.Expression)
        return replace(one, value=value)

    made = change(query.node)
    return query if made == query.node else replace(query, node=made)


@dataclass(frozen=True)
class _Average:
    """An average of integers.

    :param value: what it averages. :param type: the type of its values.
    """

    value: exp.Expression
    type: Literal["BIGINT", "INT"]
    in_any_mode: bool

    @property
    def parts(self) -> list[tuple[str, exp.Expression]]:
        """The aggregates from which it is computed, by name."""
        found: list[tuple[str, exp.Expression]] = [
            ("total", exp.Sum(this=self.value.copy())),
            ("count", exp.Count(this=self.value.copy(), big_int=True)),
        ]
        return found if self._size is None else [*found, ("size", exp.Sum(this=self._size))]

    @property
    def _size(self) -> exp.Expression | None:
        """The absolute value; ``None`` for distinct values, of which the number says enough."""
        if isinstance(self.value, exp.Distinct):
            return None
        value = self.value.copy()
        if self.type == "INT":
            # The absolute value of the smallest INT is none.
            return exp.Abs(this=exp.cast(value, "BIGINT", dialect="spark"))
        if self.in_any_mode:
            return exp.Abs(this=exp.cast(value, "DECIMAL(20, 0)", dialect="spark"))
        return exp.Abs(this=exp.Paren(this=value))

    def checked(self, parts: Mapping[str, str]) -> exp.Expression:
        """The average, computed from its parts, or an error.

        :param parts: the SQL of each part.
        """
        total, count = parts["total"], parts["count"]
        if self._size is None:
            inexact = f"{count} >= {_DISTINCT_INT}"
        else:
            inexact = f"{parts['size']} >= {_EXACT_BELOW}"
            if self.type == "INT":
                inexact = f"{inexact} OR {count} >= {_ROWS_OF_INT}"
        return _quotient(inexact, total, count)


def _quotient(inexact: str, total: str, count: str) -> exp.Expression:
    return expression(
        f"CASE WHEN {inexact} THEN raise_error('{_MESSAGE}') "
        f"ELSE try_divide(CAST({total} AS DOUBLE), CAST({count} AS DOUBLE)) END"
    )


def _without(node: Aggregate, averages: Mapping[str, _Average]) -> Project:
    kept = tuple(one for one in node.aggregates if one[0] not in averages)
    added = [(_name(part, name), call) for name, one in averages.items() for part, call in one.parts]
    return Project(replace(node, aggregates=(*kept, *added)), _items(node, averages))


def _over_windows(node: Window, average: Callable[[exp.Expr], _Average | None]) -> Node:
    """The window functions without averages, and the averages computed from what remains."""
    averages: dict[str, _Average] = {}
    items: list[tuple[str, exp.Expression]] = []
    for name, item in node.items:
        call = item.this
        while isinstance(call, exp.Filter):
            call = call.this
        found = average(call)
        if found is None:
            items.append((name, item))
            continue
        averages[name] = found
        for part, made in found.parts:
            copied = item.copy()
            made.meta[WRITTEN] = function_name(call)
            next(one for one in copied.walk() if one == call).replace(made)
            items.append((_name(part, name), copied))
    return Project(replace(node, items=tuple(items)), _items(node, averages)) if averages else node


def _items(
    node: Aggregate | Window, averages: Mapping[str, _Average]
) -> tuple[tuple[str, exp.Expression], ...]:
    def computed(name: str) -> exp.Expression:
        parts = {part: quoted(_name(part, name)) for part, _ in averages[name].parts}
        return averages[name].checked(parts)

    return tuple((name, computed(name) if name in averages else column(name)) for name in node.output)


def _name(part: str, average: str) -> str:
    return f"_{part}_of_{average}"


def has_inexact_averages(query: Query) -> bool:
    """Whether a query has averages of integers that may be inexact."""
    return with_exact_averages(query, in_any_mode=True) is not query


def adds_decimals(query: Query) -> bool:
    """Whether a query adds decimals, or values of an unknown type.

    Without ANSI mode, a sum that overflows is NULL, which a sum of sums would leave out.
    """
    types = Types(query.node, query.types)
    parts = (part for node in walk(query.node) for part in all_expressions(node))
    added = (call.this for part in parts for call in part.find_all(exp.Sum, exp.Avg))
    return any(not is_known(one) or is_decimal(one) for one in map(types.of, added))


__all__ = ["adds_decimals", "has_inexact_averages", "with_exact_averages"]
