"""EXISTS, IN and correlated values: a row of the outer query is touched where it meets a changed inner row.

Whether the condition is negated does not matter: a changed inner row can make it true or false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra import Join, Node, Project, Subquery
from dbt_arctic.planner.either import either
from dbt_arctic.planner.facts import Facts
from dbt_arctic.planner.restricted import Pairs, restricted, some_of
from dbt_arctic.planner.scalars import column, columns_of, equalities
from dbt_arctic.planner.touched import NOTHING, Touched, Wanted, union_of
from dbt_arctic.planner.touched import touched as touch


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
        renamed = Project(met, tuple((name, column(same[name])) for name in wanted))
        return Touched((renamed,), (renamed,))
    used = columns_of(*links) | set(wanted)
    kept = either(outer, tuple(name for name in outer.output if name in used), facts)
    if kept is not None:
        rows = (Join(kept, met, "semi", links),)
        return Touched(rows, rows)
    return Touched(
        (Join(facts.before(outer), met, "semi", links),),
        (Join(outer, met, "semi", links),),
    )
