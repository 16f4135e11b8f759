"""Deltas of ``count(DISTINCT x)``: the distinct values of each group are rows that appear and disappear.

A value that appears in a group adds one to its count, and one that disappears subtracts one. To find them,
the affected pairs of group and value are looked up in both states, and no other rows of their groups.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.frontend.union_types import refuse_mixed
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.reasons import CannotPlan

VALUE = "_arctic_distinct"


def counted_once(call: exp.Expression) -> exp.Expression | None:
    """The expression whose distinct values a call counts; ``None`` if it is another call."""
    if not isinstance(call, exp.Count) or not isinstance(call.this, exp.Distinct):
        return None
    values = call.this.expressions
    is_one = len(values) == 1 and not call.args.get("expressions") and not call.this.args.get("on")
    return values[0] if is_one and columns_of(values[0]) and not values[0].find(exp.Star) else None


def values_of_groups(
    node: Aggregate, value: exp.Expression, types: Mapping[str, str], facts: Facts
) -> Aggregate | None:
    """The distinct values of an expression in each group; ``None`` if they cannot be looked up.

    :param types: the types of the columns of scans.
    """
    made = Aggregate(node.child, (*node.groups, (VALUE, value)))
    try:
        # The types in the parts of a union may differ for counting, but not for a lookup.
        refuse_mixed(made, types)
        # A value that is computed differently in the lookup would not be found, and would stay in the count.
        require_determinism(made, types, facts)
    except CannotPlan:
        return None
    return made


__all__ = ["VALUE", "counted_once", "values_of_groups"]
