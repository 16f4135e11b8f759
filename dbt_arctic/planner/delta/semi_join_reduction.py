"""Semi-join reduction of affected keys by unchanged relations, which filter both states alike.

A line of an order touches the average of its part. Where a query is about the parts of one brand, the values
of all others have no rows before or after, and need not be looked at. A value is kept where each relation
that has not changed, is much smaller than one that has, and has conditions of its own, has a row of it.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Filter, Join, Node, Project, SubqueryRef, scans
from dbt_arctic.planner.algebra.scalars import column, columns_of, equalities
from dbt_arctic.planner.delta.join_order import rows_of
from dbt_arctic.planner.delta.range_pruning import pruned_to_ranges
from dbt_arctic.planner.properties.facts import Facts

_LARGER = 10
"""How many times larger what has changed is than what is looked at for it."""


def semi_join_reduced(values: Node, whole: Node, facts: Facts) -> Node:
    """The values, without some of which ``whole`` has no row in either state.

    :param values: columns of ``whole``, under their names there.
    """
    if facts.time_moved:
        return values  # a condition on the time may have been another one
    conditions, relations = _parts(whole)
    looked_up = max((facts.of(scan).rows or 0 for scan in scans(whole) if facts.changed(scan)), default=0)
    made = values
    for place, relation in enumerate(relations):
        own = tuple(part for part in conditions if _is_own(part, relation))
        if facts.changed(relation) or not (own or isinstance(relation, Filter)):
            continue
        if 0 < looked_up < _LARGER * rows_of(relation, facts):
            continue  # to find the values that have rows costs what to look all of them up does
        pairs = [
            (name, theirs)
            for name, theirs in (*((name, name) for name in values.output), *equalities(conditions))
            if name in values.output and theirs in relation.output
        ]
        if pairs:
            made = _met(
                made, pruned_to_ranges(_filtered(relation, own), made, dict(pairs), facts), pairs, place
            )
    return made


def _parts(node: Node) -> tuple[list[exp.Expression], list[Node]]:
    """The conditions that every row of inner joins has met, and the relations that are joined."""
    if isinstance(node, Filter):
        conditions, relations = _parts(node.child)
        if len(relations) == 1 and relations[0] is node.child and not node.subqueries:
            return [], [node]
        return [*node.conditions, *conditions], relations
    if isinstance(node, Join) and node.kind == "inner":
        left, right = _parts(node.left), _parts(node.right)
        return [*node.conditions, *left[0], *right[0]], [*left[1], *right[1]]
    return [], [node]


def _is_own(condition: exp.Expression, relation: Node) -> bool:
    used = columns_of(condition)
    return bool(used) and used <= set(relation.output) and condition.find(SubqueryRef) is None


def _filtered(relation: Node, conditions: tuple[exp.Expression, ...]) -> Node:
    return Filter(relation, conditions) if conditions else relation


def _met(values: Node, relation: Node, pairs: list[tuple[str, str]], place: int) -> Node:
    # Under other names: the values may have those of the relation.
    renamed = [f"_arctic_met_{place}_{number}" for number in range(len(pairs))]
    items = tuple((name, column(theirs)) for name, (_, theirs) in zip(renamed, pairs, strict=True))
    met = tuple(
        exp.NullSafeEQ(this=column(name), expression=column(other))
        for (name, _), other in zip(pairs, renamed, strict=True)
    )
    return Join(values, Project(relation, items), "semi", met)


__all__ = ["semi_join_reduced"]
