"""UNION ALL: the changed rows of each part."""

from __future__ import annotations

from dbt_arctic.planner.algebra.operators import Node, Project, UnionAll
from dbt_arctic.planner.algebra.scalars import column, substitute
from dbt_arctic.planner.delta.affected_keys import (
    NOTHING,
    AffectedRows,
    Wanted,
    affected_keys_rule,
    affected_rows,
)
from dbt_arctic.planner.delta.restriction import Pairs, restricted, restricted_rule
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _affected(node: UnionAll, wanted: Wanted, facts: Facts) -> AffectedRows:
    found = NOTHING
    for child in node.children:
        names = dict(zip(node.columns, child.output, strict=True))
        own = tuple(dict.fromkeys(names[name] for name in wanted))
        items = tuple((name, column(names[name])) for name in wanted)
        found += affected_rows(child, own, facts).map(lambda rows, items=items: Project(rows, items))  # type: ignore[misc]
    return found


@restricted_rule.register
def _restricted(node: UnionAll, pairs: Pairs, keys: Node) -> Node:
    parts = []
    for child in node.children:
        names = {name: column(own) for name, own in zip(node.columns, child.output, strict=True)}
        below = tuple((substitute(value, names), name) for value, name in pairs)
        parts.append(restricted(child, below, keys))
    return UnionAll(tuple(parts), node.columns)
