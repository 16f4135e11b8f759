"""Adds to a plan which states of its upstreams the refreshes after it will request.

A build records them in its commit. So the first refresh of another model that reads the same upstreams knows
what this model will request, although this model has not been refreshed yet.
"""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.auto.inputs import ModelInputs, analysed_query
from dbt_arctic.auto.maintained_sums import maintained_sums
from dbt_arctic.auto.plan import Build, Full, OverState, RefreshPlan
from dbt_arctic.auto.requested_states import RecordedRequests, recorded_by
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import FINGERPRINT
from dbt_arctic.planner.delta.plan import plan_incremental
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.reasons import CannotPlan
from dbt_arctic.refresh.config import KeyedConfig


def with_later_requests(plan: RefreshPlan, config: KeyedConfig) -> RefreshPlan:
    """The plan with the requests of later refreshes, if its commit has to record them.

    That is a build, or a full refresh of a query that was not planned before.
    """
    if isinstance(plan, OverState):
        below = with_later_requests(plan.state.plan, plan.state.config)
        first = below if plan.first is plan.state.plan else plan.first
        return replace(plan, state=replace(plan.state, plan=below), first=first)
    is_other_query = plan.last_consumed.get(FINGERPRINT) != plan.consumed[FINGERPRINT]
    if not isinstance(plan, Build) and not (isinstance(plan, Full) and is_other_query):
        return plan
    return replace(plan, header=replace(plan.header, later_requests=later_requests(plan.inputs, config)))


def later_requests(inputs: ModelInputs, config: KeyedConfig) -> dict[Name, RecordedRequests]:
    """The requests that refreshes of a model will make if all upstreams change a little.

    Empty if there is no plan for that. The commits of later refreshes record the actual requests.
    """
    if inputs.tree is None:
        return {}
    facts = Facts(
        {
            source: UpstreamFacts(True, one.key, one.rows, 0, logged=one.is_keyed, has_weights=True)
            for source, one in inputs.upstreams.items()
        }
    )
    try:
        # The recorded time does not matter here.
        query = analysed_query(replace(inputs, last=inputs.now), None)
        sums = maintained_sums(query, inputs, config, facts)
        if sums is not None:
            return recorded_by(sums.nodes, inputs)
        made = plan_incremental(query, config.unique_key, facts, config.accept)
    except CannotPlan:
        return {}
    return recorded_by([node for node in (made.affected, made.rows) if node is not None], inputs)


__all__ = ["later_requests", "with_later_requests"]
