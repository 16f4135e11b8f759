"""LATERAL VIEW: all rows that are generated from a changed row, in either state."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.planner.algebra.operators import Generate, KeySemiJoin, Node
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.delta.affected_keys import AffectedRows, Wanted, affected_keys_rule, affected_rows
from dbt_arctic.planner.delta.restriction import Pairs, restricted, restricted_rule, some_of
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _affected(node: Generate, wanted: Wanted, facts: Facts) -> AffectedRows:
    own = frozenset(node.child.output)
    if wanted and own.issuperset(wanted):
        return affected_rows(node.child, wanted, facts)
    used = columns_of(node.function) | set(wanted)
    below = tuple(name for name in node.child.output if name in used)
    return affected_rows(node.child, below, facts).map(lambda rows: replace(node, child=rows))


@restricted_rule.register
def _restricted(node: Generate, pairs: Pairs, keys: Node) -> Node:
    own = frozenset(node.child.output)
    down = tuple((value, name) for value, name in pairs if columns_of(value) and columns_of(value) <= own)
    below = restricted(node.child, down, some_of(keys, down)) if down else node.child
    made = replace(node, child=below)
    return made if len(down) == len(pairs) else KeySemiJoin(made, some_of(keys, pairs), pairs)
