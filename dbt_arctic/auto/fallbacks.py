"""The fallback of an incremental refresh whose statement fails in Spark.

A statement raises an error in Spark to report what it finds in the rows: a group that lost its MIN or MAX, or
a negative count. The executor compares the error with the fallbacks that the plan declares here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dbt_arctic.auto.plan import ByKeys, BySums, IncrementalPlan, Nothing, OverState, RefreshPlan
from dbt_arctic.auto.timings import RECOMPUTED
from dbt_arctic.errors import StatementError
from dbt_arctic.keyed.group_totals import BELOW_ZERO, SEVERAL_GROUPS
from dbt_arctic.keyed.sums import EXTREME_LOST
from dbt_arctic.planner.reasons import Reason

WITHOUT_STATE = "the state cannot be kept or read"
WITHOUT_HIDDEN = "hidden columns cannot be stored"
"""The conditions for the fallbacks that plan the model again, for display."""


@dataclass(frozen=True)
class Fallback:
    """The plan that follows if a statement fails.

    :param when: the condition, for display.
    :param holds: whether an error meets the condition.
    :param plan: the plan that runs instead.
    """

    when: str
    holds: Callable[[StatementError], bool]
    plan: Callable[[StatementError], RefreshPlan]


def fallbacks_of(plan: RefreshPlan) -> tuple[Fallback, ...]:
    """The fallbacks of a plan. The first one whose condition holds is used."""
    if isinstance(plan, OverState):
        return fallbacks_of(plan.first)
    if not isinstance(plan, IncrementalPlan):
        return ()
    # The affected keys are computed with fewer conditions than the query has, so an expression may fail for a
    # row that the query does not compute. If the query itself fails, the full refresh reports the error.
    failed = Fallback("a statement fails", lambda error: True, lambda error: plan.full(_failed(error)))
    if isinstance(plan, BySums):
        return (*_fallbacks_of_sums(plan), failed)
    return (failed,)


@dataclass(frozen=True)
class Alternative:
    """Another incremental plan, whose statements are known before the refresh.

    :param when: the condition under which it follows, for display.
    """

    when: str
    plan: IncrementalPlan


def alternatives_of(plan: RefreshPlan) -> tuple[Alternative, ...]:
    """The incremental plans that follow if a guard differs.

    It may be possible to find the rows that depend on its value. They are found with the old and new value.
    """
    if isinstance(plan, OverState):
        return alternatives_of(plan.first)
    if not isinstance(plan, ByKeys) or plan.incremental.moved is None:
        return ()
    moved = replace(plan, incremental=plan.incremental.moved)
    return (Alternative(" or ".join(f"{guard.what} has changed" for guard in plan.guards), moved),)


def after(plan: IncrementalPlan, reason: Reason) -> RefreshPlan:
    """The plan that follows if a decision has ended an incremental plan."""
    alternatives = alternatives_of(plan) if reason.code == "guard" else ()
    return alternatives[0].plan if alternatives else plan.full(reason)


def fallback_conditions(plan: RefreshPlan) -> list[str]:
    """The conditions under which another plan follows, for display, in their order."""
    if isinstance(plan, OverState):
        found = [one for one in fallback_conditions(plan.first) if one != WITHOUT_STATE]
        return found if plan.action == "nothing" else [*found, WITHOUT_STATE]
    found = [one.when for one in fallbacks_of(plan)]
    return [*found, WITHOUT_HIDDEN] if plan.hidden is not None and not isinstance(plan, Nothing) else found


def _failed(error: StatementError) -> Reason:
    return Reason("failed", f"the incremental statements failed: {error.why or error.what}")


def _fallbacks_of_sums(plan: BySums) -> Iterator[Fallback]:
    sums = plan.sums

    def instead(reason: str) -> RefreshPlan:
        return plan.by_keys(reason) or plan.full(Reason("extreme", EXTREME_LOST))

    if sums.extremes:
        again = sums.new_extremes is not None and not plan.recompute_reason
        yield Fallback(
            "a group has lost its MIN or MAX",
            lambda error: EXTREME_LOST in str(error),
            lambda error: plan.recomputing(RECOMPUTED) if again else instead(RECOMPUTED),
        )
    if sums.carried:
        # The key of a group that has disappeared may be that of a new one. Otherwise the key is not unique.
        yield Fallback(
            "two groups have the same key",
            lambda error: SEVERAL_GROUPS in str(error),
            lambda error: plan.by_keys("") or plan.full(_failed(error)),
        )
    if sums.looks_up and plan.incremental is not None:
        # A looked-up value is computed for more rows than in the query.
        yield Fallback(
            "a statement that looks up different values fails",
            lambda error: BELOW_ZERO not in str(error),
            lambda error: instead(""),
        )


__all__ = [
    "WITHOUT_HIDDEN",
    "WITHOUT_STATE",
    "Alternative",
    "Fallback",
    "after",
    "alternatives_of",
    "fallback_conditions",
    "fallbacks_of",
]
