"""A restriction to some keys. Only other rules create this operator; no query contains it."""

from __future__ import annotations

from dbt_arctic.planner.algebra.analysis import conservative
from dbt_arctic.planner.algebra.operators import KeySemiJoin, Node
from dbt_arctic.planner.delta.affected_keys import AffectedRows, Wanted, affected_keys_rule, only
from dbt_arctic.planner.delta.restriction import Pairs, joined_with_keys, restricted_rule
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _affected(node: KeySemiJoin, wanted: Wanted, facts: Facts) -> AffectedRows:
    found = AffectedRows((only(facts.before(node), wanted),), (only(node, wanted),))
    return conservative(found, "rows can enter and leave because the keys have changed")


@restricted_rule.register
def _restricted(node: KeySemiJoin, pairs: Pairs, keys: Node) -> Node:
    return conservative(
        joined_with_keys(node, pairs, keys), "no rule restricts what another one has restricted"
    )
