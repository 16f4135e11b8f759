"""Averages of ``BIGINT`` from exact sums, with a check that Spark's average is exact as well.

Spark adds the values as doubles, so the last digits may depend on the order of the rows. While the absolute
values add up to less than 2^53, each partial sum is a whole number that a double holds exactly, and so is
their sum. The sum of absolute values is stored with the others.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate, Node, Project, map_children
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.algebra.render import quoted
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.spark.dialect import expression
from dbt_arctic.planner.typing.inference import Types
from dbt_arctic.planner.typing.inferred_type import BIGINT, loosened

_EXACT_BELOW = 2**53
"""Whole numbers that a double holds exactly."""
_MESSAGE = "the values of an average are so large that its last digits depend on the order of the rows"


def with_exact_averages(query: Query) -> Query:
    """The same query without averages of ``BIGINT``. It ends with an error where these would not be exact."""
    types = Types(query.node, query.types)

    def change(node: Node) -> Node:
        node = map_children(node, change)
        if not isinstance(node, Aggregate):
            return node
        averages = {
            name: call.this
            for name, call in node.aggregates
            if isinstance(call, exp.Avg)
            and not isinstance(call.this, exp.Distinct)
            and loosened(types.of(call.this)) == BIGINT
        }
        return _without(node, averages) if averages else node

    made = change(query.node)
    return query if made == query.node else replace(query, node=made)


def _without(node: Aggregate, averages: dict[str, exp.Expression]) -> Project:
    kept = tuple(one for one in node.aggregates if one[0] not in averages)
    added: list[tuple[str, exp.Expression]] = []
    values: dict[str, exp.Expression] = {}
    for name, value in averages.items():
        total, count, size = (f"_{what}_of_{name}" for what in ("total", "count", "size"))
        absolute = exp.Abs(this=exp.Paren(this=value.copy()))
        added += [
            (total, exp.Sum(this=value.copy())),
            (count, exp.Count(this=value.copy(), big_int=True)),
            (size, exp.Sum(this=absolute)),
        ]
        values[name] = expression(
            f"CASE WHEN {quoted(size)} >= {_EXACT_BELOW} THEN raise_error('{_MESSAGE}') "
            f"ELSE try_divide(CAST({quoted(total)} AS DOUBLE), CAST({quoted(count)} AS DOUBLE)) END"
        )
    items = tuple((name, values.get(name, column(name))) for name in node.output)
    return Project(replace(node, aggregates=(*kept, *added)), items)


__all__ = ["with_exact_averages"]
