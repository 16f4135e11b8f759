"""LIMIT: a row enters when another leaves, and nothing in the changes names it."""

from __future__ import annotations

from dbt_arctic.planner.algebra import Limit
from dbt_arctic.planner.facts import Facts
from dbt_arctic.planner.reasons import CannotPlan, first_line
from dbt_arctic.planner.touched import Touched, Wanted, touched_rule


@touched_rule.register
def _touched(node: Limit, wanted: Wanted, facts: Facts) -> Touched:
    raise CannotPlan(
        "limit",
        "a LIMIT: which rows are the first depends on all rows",
        "rank the rows with a window function over a PARTITION BY, or leave the LIMIT to the reader",
        first_line(node.limit, node.offset, *node.order),
    )
