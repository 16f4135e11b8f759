"""EXISTS, IN and scalar subqueries: outer rows that match a changed inner row are affected.

Negation makes no difference: a changed inner row can make the condition true or false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Filter, Join, Node, Project, Subquery, SubqueryRef
from dbt_arctic.planner.algebra.scalars import column, columns_of, equalities
from dbt_arctic.planner.delta.affected_keys import (
    NOTHING,
    AffectedRows,
    Wanted,
    affected_rows,
    only,
    union_of,
)
from dbt_arctic.planner.delta.old_or_new import old_or_new
from dbt_arctic.planner.delta.restriction import Pairs, restricted, some_of
from dbt_arctic.planner.delta.static_filters import referenced_columns, static_filters
from dbt_arctic.planner.frontend.point_in_time import time_has_changed
from dbt_arctic.planner.properties.facts import Facts


def linked_rows(outer: Node, subqueries: Sequence[Subquery], wanted: Wanted, facts: Facts) -> AffectedRows:
    """The rows of ``outer`` for which the value of a subquery may have changed."""
    found = NOTHING
    for subquery in subqueries:
        if not facts.changed(subquery.plan) or not subquery.links:
            # Without correlation, the value is the same for all rows: a guard compares it as a whole.
            continue
        inner = tuple(name for name in subquery.plan.output if name in columns_of(*subquery.links))
        changed = affected_rows(subquery.plan, inner, facts).both()
        if not changed:
            continue
        changed_rows = union_of(changed, inner)
        found += _rows(outer, subquery.links, changed_rows, wanted, facts)
    return found


def restricted_subqueries(subqueries: Sequence[Subquery], pairs: Pairs, keys: Node) -> tuple[Subquery, ...]:
    """The same subqueries, restricted to the rows that an outer row with one of the keys can match."""
    found = []
    for subquery in subqueries:
        # If unknown differs from false here, rows with other values matter as well: NOT IN depends on NULLs
        # and on whether the set is empty.
        links = subquery.correlation if subquery.nulls_count else subquery.links
        same = dict(equalities(links))
        inner = tuple(
            (column(same[value.name]), name)
            for value, name in pairs
            if isinstance(value, exp.Column) and same.get(value.name) in subquery.plan.output
        )
        if inner:
            subquery = replace(subquery, plan=restricted(subquery.plan, inner, some_of(keys, inner)))
        found.append(subquery)
    return tuple(found)


def _rows(
    outer: Node, links: tuple[exp.Expression, ...], changed: Node, wanted: Wanted, facts: Facts
) -> AffectedRows:
    same = {mine: theirs for mine, theirs in equalities(links, same_type=True) if theirs in changed.output}
    if wanted and all(name in same for name in wanted):
        # The changed inner row contains all wanted columns of the outer row.
        renamed = Project(changed, tuple((name, column(value)) for name, value in same.items()))
        filtered = only(_filtered_by_available(renamed, outer, facts), wanted)
        return AffectedRows((filtered,), (filtered,))
    used = columns_of(*links) | set(wanted)
    kept = old_or_new(outer, tuple(name for name in outer.output if name in used), facts)
    if kept is not None:
        rows = (Join(kept, changed, "semi", links),)
        return AffectedRows(rows, rows)
    return AffectedRows(
        (Join(facts.before(outer), changed, "semi", links),),
        (Join(outer, changed, "semi", links),),
    )


def _filtered_by_available(rows: Node, outer: Node, facts: Facts) -> Node:
    """Filter rows by the conditions of an outer query that only need the available columns.

    Only conditions with the same meaning in both states are used.
    """
    while isinstance(outer, Filter):
        same = static_filters(outer, facts, rows)
        conditions = tuple(
            part
            for part in outer.conditions
            if part.find(SubqueryRef) is None
            and not time_has_changed(part)
            and columns_of(part) <= set(rows.output)
        )
        if conditions:
            rows = Filter(rows, conditions)
        if same is not None and referenced_columns(same) <= set(rows.output):
            rows = replace(same, child=rows)
        outer = outer.child
    return rows
