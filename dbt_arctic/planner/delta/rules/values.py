"""VALUES, and a SELECT without FROM: rows that never change."""

from __future__ import annotations

from dbt_arctic.planner.algebra.operators import Node, Values
from dbt_arctic.planner.delta.affected_keys import NOTHING, AffectedRows, Wanted, affected_keys_rule
from dbt_arctic.planner.delta.restriction import Pairs, joined_with_keys, restricted_rule
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _affected(node: Values, wanted: Wanted, facts: Facts) -> AffectedRows:
    return NOTHING


@restricted_rule.register
def _restricted(node: Values, pairs: Pairs, keys: Node) -> Node:
    return joined_with_keys(node, pairs, keys)
