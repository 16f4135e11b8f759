"""Decides whether comparing guards costs more than it can save, by row counts and columns."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_arctic.planner.algebra.columns import prune_columns
from dbt_arctic.planner.algebra.operators import Node, scans
from dbt_arctic.planner.delta.plan import Guard
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.reasons import Reason

_COSTLY = 0.5
"""The share of the query's reads above which guards cost too much. Guards mostly differ after a change, and
then their comparison was wasted."""
_WORTH = 100_000_000
"""Values that a query reads in a few seconds. For smaller queries, either plan is fast enough."""


def costly_guards(guards: Sequence[Guard], query: Node, facts: Facts) -> Reason | None:
    """The reason to compute a query in full rather than compare its guards.

    ``None`` if the guards cost less, or if the costs are unknown.
    """
    if not guards:
        return None
    whole = _values_read(prune_columns(query), facts)
    compared = sum(_values_read(state, facts) or 0 for guard in guards for state in (guard.old, guard.new))
    if whole is None or whole < _WORTH or compared <= _COSTLY * whole:
        return None
    share = f"{compared / whole:.0%} of what the whole query does"
    return Reason(
        "costly-guard",
        f"to compare {guards[0].what} before and after reads {share}",
        "make the subquery a model of its own",
    ).at(guards[0].line)


def _values_read(node: Node, facts: Facts) -> int | None:
    """Rows times columns, summed over the scans of a tree; ``None`` if the rows of one are unknown."""
    total = 0
    for scan in scans(node):
        rows = facts.of(scan).rows
        if not rows:
            return None
        total += rows * len(scan.columns)
    return total


__all__ = ["costly_guards"]
