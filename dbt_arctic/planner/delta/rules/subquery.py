"""EXISTS, IN and correlated values: a row of the outer query is touched where it meets a changed inner row.

Whether the condition is negated does not matter: a changed inner row can make it true or false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Filter, Join, Node, Project, Subquery, SubqueryRef
from dbt_arctic.planner.algebra.scalars import column, columns_of, equalities
from dbt_arctic.planner.delta.affected_keys import NOTHING, Touched, Wanted, only, union_of
from dbt_arctic.planner.delta.affected_keys import touched as touch
from dbt_arctic.planner.delta.old_or_new import old_or_new
from dbt_arctic.planner.delta.restriction import Pairs, restricted, some_of
from dbt_arctic.planner.delta.static_filters import columns_asked, static_filters
from dbt_arctic.planner.frontend.point_in_time import moves
from dbt_arctic.planner.properties.facts import Facts


def linked_rows(outer: Node, subqueries: Sequence[Subquery], wanted: Wanted, facts: Facts) -> Touched:
    """The rows of ``outer`` for which a subquery can have changed."""
    found = NOTHING
    for subquery in subqueries:
        if not facts.changed(subquery.plan) or not subquery.links:
            # Without a link, the value is the same for all rows: compared as a whole, see guards.
            continue
        inner = tuple(name for name in subquery.plan.output if name in columns_of(*subquery.links))
        changed = touch(subquery.plan, inner, facts).both()
        if not changed:
            continue
        met = union_of(changed, inner)
        found += _rows(outer, subquery.links, met, wanted, facts)
    return found


def restricted_subqueries(subqueries: Sequence[Subquery], pairs: Pairs, keys: Node) -> tuple[Subquery, ...]:
    """The same subqueries over those rows only that an outer row with one of the keys can meet."""
    found = []
    for subquery in subqueries:
        # Where unknown is not as good as false, rows of other values count: NULL is certainly not in none.
        links = subquery.correlation if subquery.nulls_count else subquery.links
        same = dict(equalities(links))
        met = tuple(
            (column(same[value.name]), name)
            for value, name in pairs
            if isinstance(value, exp.Column) and same.get(value.name) in subquery.plan.output
        )
        if met:
            subquery = replace(subquery, plan=restricted(subquery.plan, met, some_of(keys, met)))
        found.append(subquery)
    return tuple(found)


def _rows(outer: Node, links: tuple[exp.Expression, ...], met: Node, wanted: Wanted, facts: Facts) -> Touched:
    same = {mine: theirs for mine, theirs in equalities(links, same_type=True) if theirs in met.output}
    if wanted and all(name in same for name in wanted):
        # What identifies the outer row is in the changed inner row already.
        renamed = Project(met, tuple((name, column(value)) for name, value in same.items()))
        told = only(_where_told(renamed, outer, facts), wanted)
        return Touched((told,), (told,))
    used = columns_of(*links) | set(wanted)
    kept = old_or_new(outer, tuple(name for name in outer.output if name in used), facts)
    if kept is not None:
        rows = (Join(kept, met, "semi", links),)
        return Touched(rows, rows)
    return Touched(
        (Join(facts.before(outer), met, "semi", links),),
        (Join(outer, met, "semi", links),),
    )


def _where_told(rows: Node, outer: Node, facts: Facts) -> Node:
    """Rows with some columns of an outer query, by those of its conditions that ask for nothing else, and
    mean the same in both states.
    """
    while isinstance(outer, Filter):
        same = static_filters(outer, facts, rows)
        told = tuple(
            part
            for part in outer.conditions
            if part.find(SubqueryRef) is None and not moves(part) and columns_of(part) <= set(rows.output)
        )
        if told:
            rows = Filter(rows, told)
        if same is not None and columns_asked(same) <= set(rows.output):
            rows = replace(same, child=rows)
        outer = outer.child
    return rows
