"""An upstream: its changed rows, or only their keys if no other column is wanted."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.planner.algebra.operators import Node, Scan
from dbt_arctic.planner.delta.affected_keys import AffectedRows, Wanted, affected_keys_rule, only
from dbt_arctic.planner.delta.restriction import Pairs, joined_with_keys, restricted_rule
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _affected(node: Scan, wanted: Wanted, facts: Facts) -> AffectedRows:
    stored = node.stored
    key = facts.of(node).key
    if key and {stored[name] for name in wanted} <= set(key):
        # The log contains the keys, so no before-images are looked up.
        keys = tuple(one for one in node.columns if one.name in key)
        found = only(replace(node, state="keys", columns=keys), wanted)
        return AffectedRows((found,), (found,))
    return AffectedRows(
        (only(replace(node, state="minus"), wanted),),
        (only(replace(node, state="plus"), wanted),),
    )


@restricted_rule.register
def _restricted(node: Scan, pairs: Pairs, keys: Node) -> Node:
    return joined_with_keys(node, pairs, keys)
