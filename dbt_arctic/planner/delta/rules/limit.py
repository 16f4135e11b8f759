"""LIMIT: a row enters when another one leaves, and the changes do not identify it."""

from __future__ import annotations

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import Limit, Node
from dbt_arctic.planner.delta.affected_keys import AffectedRows, Wanted, affected_keys_rule
from dbt_arctic.planner.delta.restriction import Pairs, joined_with_keys, restricted_rule
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.reasons import CannotPlan, first_line


@affected_keys_rule.register
def _affected(node: Limit, wanted: Wanted, facts: Facts) -> AffectedRows:
    raise CannotPlan(
        "limit",
        "a LIMIT: which rows are the first depends on all rows",
        "rank the rows with a window function over a PARTITION BY, or leave the LIMIT to the reader",
        first_line(node.limit, node.offset, *node.order),
    )


@restricted_rule.register
def _restricted(node: Limit, pairs: Pairs, keys: Node) -> Node:
    rows = joined_with_keys(node, pairs, keys)
    return conservative(rows, "with fewer rows, other rows would be the first")
