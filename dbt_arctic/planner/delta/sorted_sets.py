"""Sorts the sets of a query, if the rows that it reads then determine them.

No order of a set is more right than another. A model whose sets come in the order of a hash table differs
from run to run, so it could never be refreshed incrementally.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.frontend.collected_sets import with_sorted_sets
from dbt_arctic.planner.frontend.parse import parse
from dbt_arctic.planner.properties.determinism import depends_on_order
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.reasons import CannotPlan


def sort_sets(sql: str, facts: Facts, understood: Callable[[exp.Query], Query]) -> str:
    """The text with its sets sorted, where their order matters and nothing else depends on an order.

    :param understood: what a parsed text means.
    :returns: the same text where it is not understood, or where sorting does not suffice.
    """
    try:
        made = with_sorted_sets(parse(sql), sql)
        if made == sql or not _depends_on_order(understood(parse(sql)), facts):
            return sql
        return sql if _depends_on_order(understood(parse(made)), facts) else made
    except CannotPlan:
        return sql


def _depends_on_order(query: Query, facts: Facts) -> bool:
    return depends_on_order(query.node, query.types, facts)


__all__ = ["sort_sets"]
