"""Runs the checks of declared keys before a refresh of all rows."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.auto.key_checks import unproved
from dbt_arctic.auto.plan import PlanT
from dbt_arctic.auto.stage_results import StageResults
from dbt_arctic.auto.stage_trace import Trace
from dbt_arctic.auto.stages import key_checks
from dbt_arctic.store.context import Context


def with_checked_keys(context: Context, plan: PlanT, trace: Trace) -> PlanT:
    """The plan of a build or a full refresh. If a declared key does not hold, its commit records this.

    The rows of the refresh are right all the same. The next refresh is a full one as well, and checks again.
    """
    holds = True
    for stage in key_checks(plan):
        with trace.timed(stage.name):
            ((found,),) = context.query(stage.sql(StageResults()))
        holds = holds and not found
    if holds:
        return plan
    return replace(plan, header=replace(plan.header, consumed=unproved(plan.consumed)))


__all__ = ["with_checked_keys"]
