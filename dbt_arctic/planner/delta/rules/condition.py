"""WHERE and HAVING."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Filter, Node, SubqueryRef
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.delta.affected_keys import (
    AffectedRows,
    Wanted,
    affected_keys_rule,
    affected_rows,
    only,
)
from dbt_arctic.planner.delta.changed_scalars import leaving_and_entering_rows
from dbt_arctic.planner.delta.old_or_new import old_or_new
from dbt_arctic.planner.delta.restriction import Pairs, restricted, restricted_rule
from dbt_arctic.planner.delta.rules.subquery import linked_rows, restricted_subqueries
from dbt_arctic.planner.delta.static_filters import referenced_columns, static_filters
from dbt_arctic.planner.frontend.point_in_time import at_last_refresh, not_true, time_has_changed
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _affected(node: Filter, wanted: Wanted, facts: Facts) -> AffectedRows:
    # Conditions with a subquery or a function of time may hold in one state only. Without them, more rows are
    # affected, which is right.
    simple = tuple(
        part
        for part in node.conditions
        if part.find(SubqueryRef) is None
        and not time_has_changed(part)
        and _is_cheap(part, node.child, facts)
    )
    same = static_filters(node, facts)
    if same is not None and not _is_available(node.child, referenced_columns(same), facts):
        same = None
    used = columns_of(*simple) | referenced_columns(same) | set(wanted)
    below = tuple(name for name in node.child.output if name in used)

    def filtered(rows: Node) -> Node:
        rows = Filter(rows, simple) if simple else rows
        return rows if same is None else replace(same, child=rows)

    found = affected_rows(node.child, below, facts).map(filtered)
    found += linked_rows(filtered(node.child), node.subqueries, wanted, facts)
    timed = tuple(
        part for part in node.conditions if part.find(SubqueryRef) is None or time_has_changed(part)
    )
    of_values = leaving_and_entering_rows(node, facts) if facts.scalars_changed else None
    for rows in (rows_changed_by_time(replace(node, conditions=timed)), of_values):
        if rows is not None:
            leaving, entering = rows
            found += AffectedRows((only(leaving, wanted),), (only(entering, wanted),))
    return found


def rows_changed_by_time(node: Filter) -> tuple[Filter, Filter] | None:
    """The unchanged rows that leave the filter only because time passes, and those that enter it.

    Changed rows are found by the rule itself.
    """
    timed = tuple(part for part in node.conditions if time_has_changed(part))
    if not timed:
        return None
    earlier = tuple(at_last_refresh(part) for part in timed)
    others = tuple(part for part in node.conditions if not time_has_changed(part))
    return (
        replace(node, conditions=(*others, *earlier, not_true(timed))),
        replace(node, conditions=(*others, *timed, not_true(earlier))),
    )


def _is_cheap(part: exp.Expression, child: Node, facts: Facts) -> bool:
    """Whether a condition can be evaluated on changed rows.

    An aggregate's value, for example, is not known there.
    """
    return _is_available(child, columns_of(part), facts)


def _is_available(child: Node, columns: frozenset[str], facts: Facts) -> bool:
    return old_or_new(child, tuple(name for name in child.output if name in columns), facts) is not None


@restricted_rule.register
def _restricted(node: Filter, pairs: Pairs, keys: Node) -> Node:
    subqueries = restricted_subqueries(node.subqueries, pairs, keys)
    return Filter(restricted(node.child, pairs, keys), node.conditions, subqueries)
