"""Which plan follows when Spark ends a statement of an incremental refresh with an error.

Spark tells by an error what a statement has found in the rows: a group that has lost its extreme, a count
that fell below zero. The executor holds it against what the plan declares here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dbt_arctic.auto.plan import BySums, IncrementalPlan, OverState, RefreshPlan
from dbt_arctic.auto.timings import ASKED
from dbt_arctic.errors import StatementError
from dbt_arctic.keyed.sums import BELOW_ZERO, EXTREME_LEFT
from dbt_arctic.planner.reasons import Reason


@dataclass(frozen=True)
class Fallback:
    """What follows when Spark ends a statement of a plan with an error.

    :param when: for people. :param holds: for an error. :param plan: what is carried out instead.
    """

    when: str
    holds: Callable[[StatementError], bool]
    plan: Callable[[StatementError], RefreshPlan]


def fallbacks_of(plan: RefreshPlan) -> tuple[Fallback, ...]:
    """What follows when a statement of an incremental refresh ends with an error: the first that holds."""
    if isinstance(plan, OverState):
        return fallbacks_of(plan.first)
    if not isinstance(plan, IncrementalPlan):
        return ()
    # The affected keys are found with fewer conditions than the query has, so a value that it never computes
    # may have failed. If the query itself fails, the full refresh says so.
    failed = Fallback("a statement fails", lambda error: True, lambda error: plan.full(_failed(error)))
    if isinstance(plan, BySums):
        return (*_fallbacks_of_sums(plan), failed)
    return (failed,)


def _failed(error: StatementError) -> Reason:
    return Reason("failed", f"the incremental statements failed: {error.why or error.what}")


def _fallbacks_of_sums(plan: BySums) -> Iterator[Fallback]:
    sums = plan.sums

    def instead(asked: str) -> RefreshPlan:
        return plan.by_keys(asked) or plan.full(Reason("extreme", EXTREME_LEFT))

    if sums.extremes:
        again = sums.of_left is not None and not plan.extremes_asked
        yield Fallback(
            "a group has lost its least or greatest value",
            lambda error: EXTREME_LEFT in str(error),
            lambda error: plan.asking(ASKED) if again else instead(ASKED),
        )
    if sums.looks_up and plan.incremental is not None:
        # A value that is looked up is computed of more rows than the query computes it of.
        yield Fallback(
            "a statement that looks up different values fails",
            lambda error: BELOW_ZERO not in str(error),
            lambda error: instead(""),
        )


__all__ = ["Fallback", "fallbacks_of"]
