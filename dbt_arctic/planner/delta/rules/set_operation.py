"""INTERSECT and EXCEPT: changed rows of either side, in both states."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.planner.algebra.operators import Node, Project, SetOperation
from dbt_arctic.planner.algebra.scalars import column, substitute
from dbt_arctic.planner.delta.affected_keys import Touched, Wanted, affected_keys_rule
from dbt_arctic.planner.delta.affected_keys import touched as touch
from dbt_arctic.planner.delta.restriction import Pairs, restricted_rule
from dbt_arctic.planner.delta.restriction import restricted as restrict
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _touched(node: SetOperation, wanted: Wanted, facts: Facts) -> Touched:
    found: list[Node] = []
    for child in (node.left, node.right):
        names = dict(zip(node.columns, child.output, strict=True))
        own = tuple(dict.fromkeys(names[name] for name in wanted))
        items = tuple((name, column(names[name])) for name in wanted)
        found.extend(Project(rows, items) for rows in touch(child, own, facts).both())
    return Touched(tuple(found), tuple(found))


@restricted_rule.register
def _restricted(node: SetOperation, pairs: Pairs, keys: Node) -> Node:
    sides = []
    for child in (node.left, node.right):
        names = {name: column(own) for name, own in zip(node.columns, child.output, strict=True)}
        below = tuple((substitute(value, names), name) for value, name in pairs)
        sides.append(restrict(child, below, keys))
    return replace(node, left=sides[0], right=sides[1])
