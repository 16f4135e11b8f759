"""GROUP BY, ROLLUP, CUBE and DISTINCT: the groups of the rows that changed.

A group is touched in both states, whichever state a changed row is of. One that has no row left is gone.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate, Node, Project, Restrict
from dbt_arctic.planner.algebra.scalars import column, columns_of, plain
from dbt_arctic.planner.delta.affected_keys import NOTHING, Touched, Wanted, affected_keys_rule, union_of
from dbt_arctic.planner.delta.affected_keys import touched as touch
from dbt_arctic.planner.delta.restriction import Pairs, restricted_rule, some_of
from dbt_arctic.planner.delta.restriction import restricted as restrict
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _touched(node: Aggregate, wanted: Wanted, facts: Facts) -> Touched:
    groups = dict(node.groups)
    if groups.keys() >= set(wanted):
        found = tuple(
            Project(rows, tuple((name, _value(name, groups, kept)) for name in wanted))
            for kept in _kept(node)
            for rows in _changed(
                node, [groups[name] for name in wanted if kept is None or name in kept], facts
            )
        )
        return Touched(found, found)
    # The value of an aggregate is asked for: touched groups are computed in both states.
    if node.grouping_sets is not None:
        return Touched((facts.before(node),), (node,))
    if not touch(node.child, (), facts).both():
        return NOTHING
    keys = _keys(node, facts)
    if keys is None:
        return Touched((facts.before(node),), (node,))
    pairs = tuple((value, name) for name, value in node.groups)
    old = facts.before(node)
    assert isinstance(old, Aggregate)
    return Touched(
        (Aggregate(restrict(old.child, pairs, keys), node.groups, node.aggregates),),
        (Aggregate(restrict(node.child, pairs, keys), node.groups, node.aggregates),),
    )


def _kept(node: Aggregate) -> list[frozenset[str] | None]:
    """For each grouping set the groups that it keeps; one ``None`` where there are no sets."""
    if node.grouping_sets is None:
        return [None]
    names = [name for name, _ in node.groups]
    return [frozenset(names[place] for place in places) for places in node.grouping_sets]


def _value(name: str, groups: dict[str, exp.Expression], kept: frozenset[str] | None) -> exp.Expression:
    value = groups[name]
    if kept is None or name in kept:
        return value
    # NULL of the group's type
    return (
        exp.Anonymous(this="nullif", expressions=[exp.Null(), exp.Null()])
        if not columns_of(value)
        else exp.Null()
    )


def _changed(node: Aggregate, values: list[exp.Expression], facts: Facts) -> tuple[Node, ...]:
    used = columns_of(*values)
    return touch(node.child, tuple(name for name in node.child.output if name in used), facts).both()


def _keys(node: Aggregate, facts: Facts) -> Node | None:
    """The touched groups, under the names of the groups."""
    if not node.groups:
        return None
    rows = _changed(node, [value for _, value in node.groups], facts)
    renamed = [Project(part, node.groups) for part in rows]
    names = tuple(name for name, _ in node.groups)
    return Aggregate(union_of(renamed, names), tuple((name, column(name)) for name in names))


@restricted_rule.register
def _restricted(node: Aggregate, pairs: Pairs, keys: Node) -> Node:
    groups = dict(node.groups)
    always = set(groups)
    if node.grouping_sets is not None:
        names = [name for name, _ in node.groups]
        always = {
            name for place, name in enumerate(names) if all(place in places for places in node.grouping_sets)
        }
    down = tuple((groups[str(plain(value))], name) for value, name in pairs if plain(value) in always)
    below = restrict(node.child, down, some_of(keys, down)) if down else node.child
    made = Aggregate(below, node.groups, node.aggregates, node.grouping_sets)
    return made if len(down) == len(pairs) else Restrict(made, some_of(keys, pairs), pairs)
