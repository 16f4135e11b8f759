"""Static filters: subquery conditions over unchanged relations, which remove the same rows in both states.

A query may select the parts with some name, ``part IN (SELECT ...)``. Other affected parts are in its result
neither before nor after the change, as long as the set of selected parts is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Filter, Node, Subquery, SubqueryRef, scans
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.frontend.point_in_time import time_has_changed
from dbt_arctic.planner.properties.facts import Facts


def static_filters(node: Filter, facts: Facts, changed: Node | None = None) -> Filter | None:
    """The filter reduced to its static conditions.

    ``None`` if there are none, or if their subqueries read more than has changed, which would cost more than
    it saves.

    :param changed: the changed relation, if it is not in the filter.
    """
    conditions: list[exp.Expression] = []
    subqueries: list[Subquery] = []
    rows = (facts.of(scan).rows or 0 for scan in scans(changed or node) if facts.changed(scan))
    largest = max(rows, default=0)
    for part in node.conditions:
        used = {ref.number: node.subqueries[ref.number] for ref in part.find_all(SubqueryRef)}
        if (
            not used
            or time_has_changed(part)
            or not all(_is_static(one, largest, facts) for one in used.values())
        ):
            continue
        places = {number: len(subqueries) + place for place, number in enumerate(used)}
        conditions.append(renumbered(part, places))
        subqueries += used.values()
    return replace(node, conditions=tuple(conditions), subqueries=tuple(subqueries)) if conditions else None


def referenced_columns(node: Filter | None) -> frozenset[str]:
    """The columns of its input that a filter refers to, including those of links."""
    if node is None:
        return frozenset()
    linked = (columns_of(*one.links, one.operand) - set(one.plan.output) for one in node.subqueries)
    return columns_of(*node.conditions).union(*linked)


def _is_static(subquery: Subquery, largest: int, facts: Facts) -> bool:
    read = [facts.of(scan).rows or 0 for scan in scans(subquery.plan)]
    few = bool(read) and min(read) > 0 and sum(read) <= largest
    return subquery.kind != "scalar" and few and not facts.changed(subquery.plan)


def renumbered(part: exp.Expression, places: Mapping[int, int]) -> exp.Expression:
    """An expression with other numbers of its subqueries."""

    def swap(node: exp.Expr) -> exp.Expr:
        return SubqueryRef(this=places[node.number]) if isinstance(node, SubqueryRef) else node

    made = part.copy().transform(swap, copy=False)
    assert isinstance(made, exp.Expression)
    return made


__all__ = ["referenced_columns", "renumbered", "static_filters"]
