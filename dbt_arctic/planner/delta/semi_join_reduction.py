"""Semi-join reduction of affected keys by unchanged relations, which filter both states in the same way.

A semi-join reduces a relation before it is joined (Bernstein and Chiu 1981).

A changed line of an order affects the average of its part. If a query selects the parts of one brand, other
parts have no rows in either state, so their values need not be looked up. A value is kept if every unchanged
relation with its own conditions that is much smaller than the changed one has a row for it.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Filter, Join, Node, Project, SubqueryRef, scans
from dbt_arctic.planner.algebra.scalars import column, columns_of, equalities
from dbt_arctic.planner.delta.join_order import rows_of
from dbt_arctic.planner.delta.range_pruning import pruned_to_ranges
from dbt_arctic.planner.properties.facts import Facts

_LARGER = 10
"""How many times larger the changed relation must be than the one that is read to filter its values."""


def semi_join_reduced(values: Node, whole: Node, facts: Facts) -> Node:
    """The values without some for which ``whole`` has no row in either state.

    :param values: columns of ``whole``, by the same names.
    """
    if facts.time_changed:
        return values  # A condition on the time may have been different at the last refresh.
    conditions, relations = _parts(whole)
    looked_up = max((facts.of(scan).rows or 0 for scan in scans(whole) if facts.changed(scan)), default=0)
    made = values
    for place, relation in enumerate(relations):
        own = tuple(part for part in conditions if _is_own(part, relation))
        if facts.changed(relation) or not (own or isinstance(relation, Filter)):
            continue
        if 0 < looked_up < _LARGER * rows_of(relation, facts):
            continue  # Finding the values that have rows would cost as much as looking up all of them.
        pairs = [
            (name, theirs)
            for name, theirs in (*((name, name) for name in values.output), *equalities(conditions))
            if name in values.output and theirs in relation.output
        ]
        if pairs:
            made = _semi_join(
                made, pruned_to_ranges(_filtered(relation, own), made, dict(pairs), facts), pairs, place
            )
    return made


def _parts(node: Node) -> tuple[list[exp.Expression], list[Node]]:
    """The conditions that each row of some inner joins satisfies, and the joined relations."""
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


def _semi_join(values: Node, relation: Node, pairs: list[tuple[str, str]], place: int) -> Node:
    # Renamed: the values may have columns with the names of the relation's.
    renamed = [f"_arctic_lookup_{place}_{number}" for number in range(len(pairs))]
    items = tuple((name, column(theirs)) for name, (_, theirs) in zip(renamed, pairs, strict=True))
    conditions = tuple(
        exp.NullSafeEQ(this=column(name), expression=column(other))
        for (name, _), other in zip(pairs, renamed, strict=True)
    )
    return Join(values, Project(relation, items), "semi", conditions)


__all__ = ["semi_join_reduced"]
