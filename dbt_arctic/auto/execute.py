"""Executes the plan of one table of an automatic model: a build, or the stages of a refresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dbt_arctic.auto.execute_table import execute_stages
from dbt_arctic.auto.plan import Build, RefreshPlan, has_other_columns
from dbt_arctic.auto.requested_states import record_requests
from dbt_arctic.auto.run_key_checks import with_checked_keys
from dbt_arctic.auto.stage_results import StageResults
from dbt_arctic.auto.stage_trace import Trace
from dbt_arctic.auto.stages import stages_of
from dbt_arctic.auto.timings import note
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Choice, Outcome
from dbt_arctic.store.state import load_keyed, stored_rows, total


@dataclass(frozen=True)
class TableToRefresh:
    """A model's own table, or its auxiliary view."""

    name: Name
    config: KeyedConfig
    owner: str
    comment: str
    column_comments: Mapping[str, str] | None


def execute_plan(context: Context, target: TableToRefresh, plan: RefreshPlan, trace: Trace) -> Outcome:
    """Execute the plan of one table.

    :param trace: records the stages, also those before a failure.

    :raises ConfigError: the model has ``auto: strict``, and the refresh would be full.
    """
    name, config = target.name, target.config
    if not isinstance(plan, Build):
        table = load_keyed(context.catalog, name)
        return execute_stages(context, name, table, config, plan, _rows(context, plan, table), trace)
    began_ms = context.now_ms()
    plan = with_checked_keys(context, plan, trace)
    stage = stages_of(plan)[-1]
    with trace.timed(stage.name):
        _, outcome = build_generation(
            context,
            name,
            config,
            stage.sql(StageResults()),
            plan.consumed,
            owner=target.owner,
            comment=target.comment,
            column_comments=target.column_comments,
            hidden=plan.hidden.names if plan.hidden else (),
            notes={**note("full", began_ms), **record_requests(plan.header.later_requests)},
        )
    trace.found(stage.name, outcome.rows)
    code = plan.reason.code if plan.reason and has_other_columns(plan) else "build"
    choice, built = Choice("full", code), outcome.message.removeprefix("BUILD").lstrip(", ")
    return replace(outcome, message=f"{choice}, {built}" if built else str(choice), choice=choice)


def _rows(context: Context, plan: RefreshPlan, table: KeyedTable) -> int | None:
    """The most rows that a refresh's statements can read; ``None`` if unknown, or for the user's query."""
    has_small_state = plan.reason is not None and plan.reason.code == "small"
    if not (plan.action == "incremental" or has_small_state):
        return None
    return total([plan.stored_rows, stored_rows(context.catalog, table)])


__all__ = ["TableToRefresh", "execute_plan"]
