"""``count(DISTINCT x)`` of groups: each group's distinct values are rows that come and go.

A value that has come to a group adds one to its count, one that is gone takes one away. Which of these came
and went is found by looking the touched pairs of group and value up in both states, and nothing else of
their groups.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dbt_arctic.planner.algebra.operators import Aggregate
from dbt_arctic.planner.algebra.scalars import columns_of
from dbt_arctic.planner.frontend.union_types import refuse_mixed
from dbt_arctic.planner.properties.determinism import check_determined
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.reasons import CannotPlan

VALUE = "_arctic_distinct"


def counted_once(call: exp.Expression) -> exp.Expression | None:
    """Of which expression a call counts the different values; ``None`` where it is another call."""
    if not isinstance(call, exp.Count) or not isinstance(call.this, exp.Distinct):
        return None
    values = call.this.expressions
    is_one = len(values) == 1 and not call.args.get("expressions") and not call.this.args.get("on")
    return values[0] if is_one and columns_of(values[0]) and not values[0].find(exp.Star) else None


def values_of_groups(
    node: Aggregate, value: exp.Expression, types: Mapping[str, str], facts: Facts
) -> Aggregate | None:
    """Each group's values of an expression over its rows, once; ``None`` where they cannot be looked up.

    :param types: of the columns of scans.
    """
    made = Aggregate(node.child, (*node.groups, (VALUE, value)))
    try:
        # What counts may have several types in the parts of a union, where what is looked up may not.
        refuse_mixed(made, types)
        # A value that comes out otherwise when it is looked up is not found, and is counted for ever.
        check_determined(made, types, facts)
    except CannotPlan:
        return None
    return made


__all__ = ["VALUE", "counted_once", "values_of_groups"]
