"""Works around a bug of Spark: subqueries in a select list over a UNION fail.

A keyed table is read as a UNION, as are both states of an upstream. Spark 4.1 moves the select list below the
UNION with the names of one side (SPARK-59042: ``key not found``). Without two of its rules it does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from sqlglot import exp

from dbt_arctic.engine.api import EXCLUDED_RULES
from dbt_arctic.store.context import Context

_OPTIMIZER = "org.apache.spark.sql.catalyst.optimizer"
CONF = {EXCLUDED_RULES: f"{_OPTIMIZER}.PushProjectionThroughUnion,{_OPTIMIZER}.CombineUnions"}


def over(context: Context, queries: Iterable[exp.Query | None]) -> AbstractContextManager[None]:
    """The settings of statements that contain a model's query, and those of the views that it reads."""
    return context.tuned(CONF) if any(map(_has_subquery, queries)) else nullcontext()


def _has_subquery(query: exp.Query | None) -> bool:
    if query is None:
        return False
    # The planner turns a LATERAL subquery with one row into scalar subqueries.
    if any(isinstance(lateral.this, exp.Subquery) for lateral in query.find_all(exp.Lateral)):
        return True
    return any(
        item.find(exp.Query) is not None
        for select in query.find_all(exp.Select)
        for item in select.expressions
    )
