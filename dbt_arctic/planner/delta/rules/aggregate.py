"""GROUP BY, ROLLUP, CUBE and DISTINCT: the groups of the changed rows.

A group is affected in both states, whichever state its changed row is of. A group without remaining rows
disappears. Only affected groups are recomputed, so the aggregate function does not matter (Palpanas et al.
2002).
"""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate, KeySemiJoin, Node, Project
from dbt_arctic.planner.algebra.scalars import column, columns_of, plain
from dbt_arctic.planner.delta.affected_keys import (
    NOTHING,
    AffectedRows,
    Wanted,
    affected_keys_rule,
    affected_rows,
    union_of,
)
from dbt_arctic.planner.delta.restriction import Pairs, restricted, restricted_rule, some_of
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _affected(node: Aggregate, wanted: Wanted, facts: Facts) -> AffectedRows:
    groups = dict(node.groups)
    if groups.keys() >= set(wanted):
        rows = _changed(node, [groups[name] for name in wanted], facts)
        if not rows:
            return NOTHING
        items = tuple((name, groups[name]) for name in wanted)
        found: tuple[Node, ...] = tuple(Project(part, items) for part in rows)
        if node.grouping_sets is not None and wanted:
            found = (_in_each_set(node, wanted, found),)
        return AffectedRows(found, found)
    # The value of an aggregate is wanted: affected groups are computed in both states.
    if node.grouping_sets is not None:
        return AffectedRows((facts.before(node),), (node,))
    if not affected_rows(node.child, (), facts).both():
        return NOTHING
    keys = _keys(node, facts)
    if keys is None:
        return AffectedRows((facts.before(node),), (node,))
    pairs = tuple((value, name) for name, value in node.groups)
    old = facts.before(node)
    assert isinstance(old, Aggregate)
    return AffectedRows(
        (Aggregate(restricted(old.child, pairs, keys), node.groups, node.aggregates),),
        (Aggregate(restricted(node.child, pairs, keys), node.groups, node.aggregates),),
    )


def _in_each_set(node: Aggregate, wanted: Wanted, rows: tuple[Node, ...]) -> Node:
    """The groups of all grouping sets that contain some rows. The rows are computed once for all sets.

    :param rows: the changed rows, with the values of the groups.
    """
    assert node.grouping_sets is not None
    names = [name for name, _ in node.groups]
    sets = (
        [wanted.index(names[place]) for place in places if names[place] in wanted]
        for places in node.grouping_sets
    )
    below = tuple(f"_arctic_grouped_{place}" for place in range(len(wanted)))
    renamed = [
        Project(part, tuple((new, column(old)) for new, old in zip(below, wanted, strict=True)))
        for part in rows
    ]
    items = tuple((name, column(one)) for name, one in zip(wanted, below, strict=True))
    return Aggregate(union_of(renamed, below), items, (), tuple(dict.fromkeys(map(tuple, sets))))


def _changed(node: Aggregate, values: list[exp.Expression], facts: Facts) -> tuple[Node, ...]:
    used = columns_of(*values)
    return affected_rows(node.child, tuple(name for name in node.child.output if name in used), facts).both()


def _keys(node: Aggregate, facts: Facts) -> Node | None:
    """The affected groups, under the names of the groups."""
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
    below = restricted(node.child, down, some_of(keys, down)) if down else node.child
    made = Aggregate(below, node.groups, node.aggregates, node.grouping_sets)
    return made if len(down) == len(pairs) else KeySemiJoin(made, some_of(keys, pairs), pairs)
