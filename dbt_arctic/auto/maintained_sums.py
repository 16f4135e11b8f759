"""Whether the stored sums of a query can be maintained in the session that refreshes it."""

from __future__ import annotations

from collections.abc import Collection

from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.aggregate_maintenance import SummaryDelta, plan_summary_delta
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.refresh.config import KeyedConfig


def maintained_sums(
    query: Query, inputs: ModelInputs, config: KeyedConfig, facts: Facts, hidden: Collection[str] = ()
) -> SummaryDelta | None:
    """The plan that adds changes to stored sums; ``None`` if there is none.

    Without ANSI mode, overflows wrap around or become NULL, so stored sums cannot be maintained.

    :param hidden: the hidden columns of the model's table.
    """
    if inputs.wrap_on_overflow:
        return None
    return plan_summary_delta(query, config.unique_key, facts, config.accept, hidden)


__all__ = ["maintained_sums"]
