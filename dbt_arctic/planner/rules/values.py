"""VALUES, and a SELECT without FROM: rows that never change."""

from __future__ import annotations

from dbt_arctic.planner.algebra import Node, Values
from dbt_arctic.planner.facts import Facts
from dbt_arctic.planner.restricted import Pairs, joined_with_keys, restricted_rule
from dbt_arctic.planner.touched import NOTHING, Touched, Wanted, touched_rule


@touched_rule.register
def _touched(node: Values, wanted: Wanted, facts: Facts) -> Touched:
    return NOTHING


@restricted_rule.register
def _restricted(node: Values, pairs: Pairs, keys: Node) -> Node:
    return joined_with_keys(node, pairs, keys)
