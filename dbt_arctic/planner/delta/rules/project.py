"""A select list: changed rows of its input, and rows whose value a subquery or the time has changed."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Filter, KeySemiJoin, Node, Project, SubqueryRef
from dbt_arctic.planner.algebra.scalars import columns_of, substitute
from dbt_arctic.planner.delta.affected_keys import AffectedRows, Wanted, affected_keys_rule, affected_rows
from dbt_arctic.planner.delta.changed_scalars import rows_with_changed_values
from dbt_arctic.planner.delta.restriction import Pairs, restricted, restricted_rule, some_of
from dbt_arctic.planner.delta.rules.subquery import linked_rows, restricted_subqueries
from dbt_arctic.planner.frontend.point_in_time import at_last_refresh, differs
from dbt_arctic.planner.properties.facts import Facts


@affected_keys_rule.register
def _affected(node: Project, wanted: Wanted, facts: Facts) -> AffectedRows:
    items = tuple((name, value) for name, value in node.items if name in wanted)
    by_name = dict(items)
    kept = tuple((name, by_name[name]) for name in wanted)
    used = _used(node, items)
    found = affected_rows(node.child, used, facts) + linked_rows(node.child, node.subqueries, used, facts)
    # A row is affected by each of its values, not only by the wanted ones.
    changed = rows_with_changed_values(node, facts) if facts.scalars_changed else None
    if changed is not None:
        found += AffectedRows((changed,), (changed,))
    other = differs([value for _, value in node.items])
    if other is not None:
        found += AffectedRows((Filter(node.child, (other,)),), (Filter(node.child, (other,)),))
    elif not _refers(kept):
        return found.map(lambda rows: Project(rows, kept))
    earlier = tuple((name, at_last_refresh(value)) for name, value in kept)
    now = node.subqueries if _refers(kept) else ()
    then = tuple(replace(subquery, plan=facts.before(subquery.plan)) for subquery in now)
    return AffectedRows(
        tuple(Project(rows, earlier, then) for rows in found.minus),
        tuple(Project(rows, kept, now) for rows in found.plus),
    )


def _used(node: Project, items: tuple[tuple[str, exp.Expression], ...]) -> Wanted:
    used = set(columns_of(*(value for _, value in items)))
    for subquery in node.subqueries:
        used |= columns_of(*subquery.links)
    return tuple(name for name in node.child.output if name in used)


def _refers(items: tuple[tuple[str, exp.Expression], ...]) -> bool:
    return any(value.find(SubqueryRef) is not None for _, value in items)


@restricted_rule.register
def _restricted(node: Project, pairs: Pairs, keys: Node) -> Node:
    items = dict(node.items)
    below = tuple((substitute(value, items), name) for value, name in pairs)
    if node.subqueries and any(_refers((("", value),)) for value, _ in below):
        return KeySemiJoin(node, some_of(keys, pairs), pairs)
    subqueries = restricted_subqueries(node.subqueries, below, keys)
    return Project(restricted(node.child, below, keys), node.items, subqueries)
