"""Reports what in a query prevents incremental refreshes, before the model runs.

Only the query matters, not what has changed. This module does not know about dbt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dbt_arctic.auto.inputs import ModelInputs, analysed_query
from dbt_arctic.auto.maintained_sums import maintained_sums
from dbt_arctic.planner.algebra.operators import scans
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.auxiliary_view import find_auxiliary_view
from dbt_arctic.planner.auxiliary.single_rows import as_one_aggregate
from dbt_arctic.planner.delta.exact_averages import adds_decimals, with_exact_averages
from dbt_arctic.planner.delta.plan import Guard, plan_incremental
from dbt_arctic.planner.frontend.point_in_time import DATE, Clock
from dbt_arctic.planner.properties.determinism import require_determinism
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from dbt_arctic.planner.properties.nondeterministic_columns import Nondeterministic, nondeterministic
from dbt_arctic.planner.reasons import CannotPlan, Reason
from dbt_arctic.refresh.config import KeyedConfig

_ONE_DAY, _NEXT_DAY = (Clock(day, f"{day} 00:00:00Z") for day in ("2000-01-01", "2000-01-02"))


@dataclass(frozen=True)
class Advice:
    """A reason why refreshes of a model are, or may be, full.

    :param always: whether each refresh is full; otherwise only those before which a value has changed.
    """

    reason: Reason
    always: bool


def advise(inputs: ModelInputs, config: KeyedConfig) -> list[Advice]:
    """List what in a query prevents incremental refreshes.

    :param inputs: what the query reads. Its versions do not matter.
    """
    if inputs.reason is not None:
        # The upstream may be built before the model runs.
        return [] if inputs.is_missing else [Advice(inputs.reason, True)]
    if not inputs.upstreams:
        return []
    inputs = replace(inputs, now=_NEXT_DAY, last=_ONE_DAY)
    try:
        own = analysed_query(inputs, None)
        query = with_exact_averages(own, in_any_mode=True)
        # A sum that overflows is NULL, which a sum of sums would leave out.
        leaves_out = inputs.wrap_on_overflow and adds_decimals(own)
        if not leaves_out and _has_state(query, inputs, config):
            query = as_one_aggregate(query)
        else:
            reason = _in_the_way(query, inputs, config)
            if reason is not None:
                return [Advice(reason, True)]
        return [Advice(_of_guard(guard), False) for guard in _guards(query, inputs, config)]
    except CannotPlan as error:
        # A date does not change within a day.
        return [Advice(error.reason, error.reason.code != "time" or not inputs.calls <= DATE)]


def nondeterministic_parts(inputs: ModelInputs, columns: Sequence[str]) -> Nondeterministic | None:
    """What may differ between two runs of a query over the same rows, accepted or not.

    :param inputs: at the time of both runs, as far as it is known.
    :param columns: the columns of the result, by stored names.

    :returns: ``None`` if there is no plan for the query.
    """
    if inputs.tree is None:
        return None
    facts = _facts(inputs, [])
    for names in (columns, None):
        try:
            return nondeterministic(analysed_query(inputs, names), facts)
        except CannotPlan as error:
            if error.reason.code != "not-resolved":
                return None
    return None


def _facts(inputs: ModelInputs, changed: Sequence[str]) -> Facts:
    return Facts({name: UpstreamFacts(name in changed, one.key) for name, one in inputs.upstreams.items()})


def _has_state(query: Query, inputs: ModelInputs, config: KeyedConfig) -> bool:
    """Whether the query is refreshed from an auxiliary view."""
    everything = _facts(inputs, list(inputs.upstreams))
    key = query.identifiers(config.unique_key)
    require_determinism(query.node, query.types, everything, config.accept, key)
    keys = {name: one.key for name, one in inputs.upstreams.items()}
    return find_auxiliary_view(query, config.unique_key, keys) is not None


def _in_the_way(query: Query, inputs: ModelInputs, config: KeyedConfig) -> Reason | None:
    """The reason why no change of a single upstream can be propagated; ``None`` if one can."""
    found: Reason | None = None
    for name in inputs.upstreams:
        facts = _facts(inputs, [name])
        try:
            if maintained_sums(query, inputs, config, facts) is None:
                plan_incremental(query, config.unique_key, facts, config.accept)
        except CannotPlan as error:
            found = found or error.reason
        else:
            return None
    return found


def _guards(query: Query, inputs: ModelInputs, config: KeyedConfig) -> tuple[Guard, ...]:
    facts = _facts(inputs, list(inputs.upstreams))
    sums = maintained_sums(query, inputs, config, facts)
    if sums is not None:
        return tuple(sums.guards)
    try:
        plan = plan_incremental(query, config.unique_key, facts, config.accept)
        return (plan.with_changed_scalars or plan).guards
    except CannotPlan:
        # The changes of all upstreams together exceed a limit, but those of a single one do not.
        return ()


def _of_guard(guard: Guard) -> Reason:
    read = sorted({scan.source.rsplit(".", 1)[-1] for scan in scans(guard.new)})
    return Reason(
        "guard",
        f"all rows depend on {guard.what} over {', '.join(read)}: where that changes, everything is computed",
        guard.fix,
    ).at(guard.line)
