"""The fallbacks of a plan whose statement fails in Spark.

A statement raises an error in Spark to report what it finds in the rows: a group that lost its MIN or MAX, or
a negative count. The executor compares the error with the fallbacks that the plan declares here. Most of them
contain the plan that follows. The plan without an auxiliary view or without hidden columns depends on what
the catalog holds after the failure, so these fallbacks name what is given up, and ``run_refresh`` has the
model planned again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from dbt_arctic.auto.plan import (
    ByKeys,
    BySummaryDelta,
    HiddenColumns,
    IncrementalPlan,
    Nothing,
    OverState,
    RefreshPlan,
    StatePlan,
)
from dbt_arctic.auto.timings import RECOMPUTED
from dbt_arctic.errors import ArcticError, DuplicateKey, NullKey, StatementError
from dbt_arctic.keyed.group_totals import BELOW_ZERO, SEVERAL_GROUPS
from dbt_arctic.keyed.summary_delta import EXTREME_LOST
from dbt_arctic.planner.reasons import Reason

WITHOUT_STATE = "the state cannot be kept or read"
WITHOUT_HIDDEN = "hidden columns cannot be stored"
"""The conditions of the fallbacks that give something up, for display."""

_NOT_READ = (StatementError, NullKey)
_NOT_KEPT = (*_NOT_READ, DuplicateKey)


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
    if isinstance(plan, BySummaryDelta):
        return (*_fallbacks_of_summary_delta(plan), failed)
    return (failed,)


@dataclass(frozen=True)
class ReplanWithout:
    """The fallback that plans the model again, without its auxiliary view or without its hidden columns.

    :param when: the condition, for display.
    :param what: what the model is planned without.
    :param errors: the kinds of errors that meet the condition.
    """

    when: str
    what: StatePlan | HiddenColumns
    errors: tuple[type[ArcticError], ...]

    def holds(self, error: ArcticError) -> bool:
        """Whether an error meets the condition."""
        return isinstance(error, self.errors)


def replan_without_state(state: StatePlan, *, is_refreshed: bool) -> ReplanWithout:
    """The fallback of a plan over an auxiliary view.

    :param is_refreshed: whether the view's own plan has been executed. Duplicate keys are then found in the
        model's own rows, which are the same without the view.
    """
    return ReplanWithout(WITHOUT_STATE, state, _NOT_READ if is_refreshed else _NOT_KEPT)


def replan_without_hidden(plan: RefreshPlan) -> ReplanWithout | None:
    """The fallback of the plan of a table with hidden columns; ``None`` if it has none, or does nothing."""
    if plan.hidden is None or isinstance(plan, Nothing):
        return None
    return ReplanWithout(WITHOUT_HIDDEN, plan.hidden, (StatementError,))


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
    if not isinstance(plan, ByKeys) or plan.incremental.with_changed_scalars is None:
        return ()
    following = replace(plan, incremental=plan.incremental.with_changed_scalars)
    return (Alternative(" or ".join(f"{guard.what} has changed" for guard in plan.guards), following),)


def plan_after(plan: IncrementalPlan, reason: Reason) -> RefreshPlan:
    """The plan that follows if a decision has ended an incremental plan."""
    alternatives = alternatives_of(plan) if reason.code == "guard" else ()
    return alternatives[0].plan if alternatives else plan.full(reason)


def fallback_conditions(plan: RefreshPlan) -> list[str]:
    """The conditions under which another plan follows, for display, in their order."""
    if isinstance(plan, OverState):
        own = replan_without_state(plan.state, is_refreshed=False).when
        found = [one for one in fallback_conditions(plan.first) if one != own]
        return found if plan.action == "nothing" else [*found, own]
    found = [one.when for one in fallbacks_of(plan)]
    hidden = replan_without_hidden(plan)
    return found if hidden is None else [*found, hidden.when]


def _failed(error: StatementError) -> Reason:
    return Reason("failed", f"the incremental statements failed: {error.why or error.what}")


def _fallbacks_of_summary_delta(plan: BySummaryDelta) -> Iterator[Fallback]:
    sums = plan.summary_delta

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
    "ReplanWithout",
    "alternatives_of",
    "fallback_conditions",
    "fallbacks_of",
    "plan_after",
    "replan_without_hidden",
    "replan_without_state",
]
