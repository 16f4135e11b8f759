"""INTERSECT and EXCEPT: changed rows of either side, in both states."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.planner.algebra.operators import Node, Project, SetOperation
from dbt_arctic.planner.algebra.scalars import column, substitute
from dbt_arctic.planner.delta.affected_keys import AffectedRows, Wanted, affected_keys_rule, affected_rows
from dbt_arctic.planner.delta.restriction import Pairs, restricted, restricted_rule
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _affected(node: SetOperation, wanted: Wanted, facts: Facts) -> AffectedRows:
    found: list[Node] = []
    for child in (node.left, node.right):
        names = dict(zip(node.columns, child.output, strict=True))
        own = tuple(dict.fromkeys(names[name] for name in wanted))
        items = tuple((name, column(names[name])) for name in wanted)
        found.extend(Project(rows, items) for rows in affected_rows(child, own, facts).both())
    return AffectedRows(tuple(found), tuple(found))


@restricted_rule.register
def _restricted(node: SetOperation, pairs: Pairs, keys: Node) -> Node:
    sides = []
    for child in (node.left, node.right):
        names = {name: column(own) for name, own in zip(node.columns, child.output, strict=True)}
        below = tuple((substitute(value, names), name) for value, name in pairs)
        sides.append(restricted(child, below, keys))
    return replace(node, left=sides[0], right=sides[1])
