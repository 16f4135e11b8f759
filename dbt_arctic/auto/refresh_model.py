"""Refreshes an automatic model: its auxiliary view, then its own table. Plans and executions alternate.

How the query over an auxiliary view is refreshed depends on what the view's refresh commits. So the refresh
has two plans, each a value: the plan of the view is executed, and then that of the query over it is created
and executed. If a step fails, the error is a value too, and the plan's declared fallback determines what is
planned and executed next. The modules that execute plans (``execute``, ``execute_table``) create none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from dbt_arctic.auto import select_list_subqueries
from dbt_arctic.auto.auxiliary_tables import drop_states, owner_of_state
from dbt_arctic.auto.execute import TableToRefresh, execute_plan
from dbt_arctic.auto.execute_table import require_incremental
from dbt_arctic.auto.fallbacks import ReplanWithout, replan_without_hidden, replan_without_state
from dbt_arctic.auto.plan import (
    OTHER_COLUMNS,
    OTHER_STATE,
    Build,
    CannotUseView,
    HiddenColumns,
    Nothing,
    OverState,
    RefreshPlan,
    StatePlan,
    has_other_columns,
)
from dbt_arctic.auto.plan_model import (
    plan_over_state,
    plan_with_other_state,
    plan_without_hidden,
    plan_without_state,
)
from dbt_arctic.auto.stage_results import StageResults
from dbt_arctic.auto.stage_trace import Trace
from dbt_arctic.auto.stages import size_stage
from dbt_arctic.errors import ArcticError, DuplicateKey, NullKey, SchemaChanged, SparkEnded, StatementError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name
from dbt_arctic.planner.reasons import Reason
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Choice, Outcome
from dbt_arctic.store.state import find_keyed, total

_OF_ROWS = frozenset(["small", "few-rows", "limit", "many-changes", "many-keys", "slower", "found-late"])
"""Reasons why all rows of a query over an auxiliary view are read although none of them is wrong. The refresh
is then reported like that of the view, which has read the changes."""

_LITTLE = 0.1


_T = TypeVar("_T")


@dataclass(frozen=True)
class _Failure:
    """The error that has ended a step. The fallbacks of the plan are compared with it."""

    error: ArcticError

    @property
    def why(self) -> str:
        return self.error.why or self.error.what


@dataclass(frozen=True)
class _Refresh:
    """The refresh of one model: what its own table and its auxiliary view have in common."""

    context: Context
    name: Name
    config: KeyedConfig
    owner: str
    comment: str
    column_comments: Mapping[str, str] | None
    trace: Trace


def run_refresh(
    context: Context,
    name: Name,
    config: KeyedConfig,
    plan: RefreshPlan,
    *,
    owner: str,
    comment: str = "",
    column_comments: Mapping[str, str] | None = None,
) -> Outcome:
    """Execute a plan: a build, a full refresh, an incremental one, or nothing.

    :raises SchemaChanged: the model has ``on_schema_change: fail``, and other columns than its table.
    :raises ConfigError: the model has ``auto: strict``, and the plan is a full refresh of an existing table.
    """
    _require_wanted(config, plan)
    # The plan of a model over an auxiliary view is that of the view, which may read less than the query over
    # it.
    inputs = plan.state.inputs if isinstance(plan, OverState) else plan.inputs
    trace = Trace(name.identifier)
    refresh = _Refresh(context, name, config, owner, comment, column_comments, trace)
    with select_list_subqueries.over(context, (inputs.tree, *inputs.trees.values())):
        outcome = _run(refresh, plan)
        if isinstance(outcome, _Failure):
            raise outcome.error
        return trace.of(outcome)


def _attempt(step: Callable[[], _T]) -> _T | _Failure:
    """The result of a step, or its error, if a fallback may follow it."""
    try:
        return step()
    except SparkEnded:
        raise  # A new session lacks what hooks and headers have set.
    except (StatementError, NullKey, DuplicateKey) as error:
        return _Failure(error)


def _run(refresh: _Refresh, plan: RefreshPlan) -> Outcome | _Failure:
    context = refresh.context
    if isinstance(plan, OverState) and plan.action == "build" and not _has_few_rows(refresh, plan.state):
        instead = plan_with_other_state(context.catalog, plan.state, context.query_schema)
        plan = instead.because(plan.reason)
    if isinstance(plan, OverState):
        return _over_state(refresh, plan)
    outcome = _of_table(refresh, refresh.name, refresh.config, plan)
    if not isinstance(outcome, _Failure):
        _drop_unused(context, refresh.name, plan, 1)
    return outcome


def _drop_unused(context: Context, name: Name, plan: RefreshPlan, first: int) -> None:
    """Drop the states of a model, from the ``first`` on, that it no longer uses.

    They belong to another query than the present one.

    :param plan: of the model's own table.
    """
    if isinstance(plan, Build) or (plan.reason is not None and plan.reason.code == "changed-sql"):
        drop_states(context, name, first)


def _has_few_rows(refresh: _Refresh, state: StatePlan) -> bool:
    """Whether an auxiliary view has few rows compared to what it replaces.

    If metadata does not suffice, Spark counts.
    """
    stage, size = size_stage(state), state.view.size
    if stage is None or size is None:
        return True
    trace = refresh.trace.of_table(state.name.identifier)
    with trace.timed(stage.name):
        ((rows,),) = refresh.context.query(stage.sql(StageResults()))
    trace.found(stage.name, rows)
    of_source = state.plan.inputs.upstreams[size.source].rows
    return rows is not None and of_source is not None and bool(rows <= size.share * of_source)


def _over_state(refresh: _Refresh, plan: OverState) -> Outcome | _Failure:
    """Refresh the state, and the model from it, which may have another state in between."""
    context, name, config, state = refresh.context, refresh.name, refresh.config, plan.state
    if plan.action == "nothing":
        return _of_table(refresh, name, config, Nothing(plan.header))
    kept = _of_table(refresh, state.name, state.config, state.plan)
    if isinstance(kept, _Failure):
        return _without_state(refresh, replan_without_state(state, is_refreshed=False), kept)
    fallback = replan_without_state(state, is_refreshed=True)
    outer = _attempt(lambda: plan_over_state(context.catalog, state, context.query_schema))
    if isinstance(outer, CannotUseView | _Failure):
        return _without_state(refresh, fallback, outer)
    reads_all = state.is_inside and not _reads_little(outer, state.plan)
    # ``auto: strict`` applies to the auxiliary view, not to the query over it.
    own = config if reads_all else replace(config, auto=None)
    if isinstance(outer, OverState):
        outcome = _over_state(replace(refresh, config=own), outer)
    else:
        outcome = _of_table(refresh, name, own, outer)
    if isinstance(outcome, _Failure):
        return _without_state(refresh, fallback, outcome)
    if not isinstance(outer, OverState):
        _drop_unused(context, name, outer, state.place + 1)
    if plan.action == "build":
        return outcome
    # An earlier run may have refreshed only the auxiliary view.
    done = kept.choice if kept.choice is not None and kept.choice.strategy != "skip" else None
    choice, own_choice = done or Choice("incremental", how="state"), outcome.choice
    if choice.strategy == "incremental" and own_choice is not None and own_choice.strategy == "full":
        if isinstance(outer, Build):
            choice = Choice("full", OTHER_COLUMNS.code)
        elif reads_all or own_choice.reason not in _OF_ROWS:
            choice = own_choice
    rows = f", {counted(outcome.rows, 'row')}" if outcome.rows is not None else ""
    return replace(outcome, message=f"{choice}{rows}", choice=choice)


def _without_state(
    refresh: _Refresh, fallback: ReplanWithout, cause: _Failure | CannotUseView
) -> Outcome | _Failure:
    """Refresh the model as if it had no state. One that cannot be kept is not tried again.

    :param cause: why: a step has failed, or the model's query cannot read the state.
    """
    if isinstance(cause, _Failure) and not fallback.holds(cause.error):
        return cause
    context, state = refresh.context, fallback.what
    assert isinstance(state, StatePlan)
    refresh.trace.falls_back(fallback.when)
    is_lost = cause.drops if isinstance(cause, CannotUseView) else not isinstance(cause.error, StatementError)
    if is_lost:
        drop_states(context, refresh.name, state.place)
    alone = _attempt(lambda: plan_without_state(context.catalog, state, context.query_schema))
    if isinstance(alone, _Failure):
        return alone
    if alone.reason is not None and alone.reason.code == "changed-sql":
        # Its SQL has not changed, but the relations that it reads.
        why = f": {cause.why}" if cause.why else ""
        what = f"it is refreshed without its state, which could not be kept or read{why}"
        alone = alone.because(Reason("without-state", what))
    return _of_table(refresh, refresh.name, refresh.config, alone)


def _reads_little(outer: RefreshPlan, state: RefreshPlan) -> bool:
    """Whether a query over an auxiliary view reads little compared to what the view is computed from."""
    if outer.reason is not None and outer.reason.code == "small":
        return True
    over = outer.state.inputs if isinstance(outer, OverState) else outer.inputs
    read, instead = (total(one.rows for one in inputs.upstreams.values()) for inputs in (over, state.inputs))
    return read is not None and instead is not None and read <= _LITTLE * instead


def _of_table(refresh: _Refresh, name: Name, config: KeyedConfig, plan: RefreshPlan) -> Outcome | _Failure:
    """Build or refresh one table, without hidden columns if these cannot be stored."""
    context = refresh.context
    target = TableToRefresh(
        name,
        config,
        refresh.owner if name == refresh.name else owner_of_state(refresh.name),
        refresh.comment
        if name == refresh.name
        else f"The state of {refresh.name.identifier}, kept by its refresh",
        refresh.column_comments if name == refresh.name else None,
    )
    starts_small = _starts_small(context, target, plan)
    own = replace(target, config=replace(config, buckets=1)) if starts_small else target
    outcome = _execute(refresh, own, plan)
    fallback = replan_without_hidden(plan)
    if not isinstance(outcome, _Failure) or fallback is None or not fallback.holds(outcome.error):
        return outcome
    hidden = fallback.what
    assert isinstance(hidden, HiddenColumns)
    without = _attempt(lambda: plan_without_hidden(context.catalog, hidden, context.query_schema))
    if isinstance(without, _Failure):
        return without
    if without.sql == plan.sql:
        return outcome
    refresh.trace.falls_back(fallback.when)
    return _execute(refresh, target, without)


def _execute(refresh: _Refresh, target: TableToRefresh, plan: RefreshPlan) -> Outcome | _Failure:
    trace = refresh.trace.of_table(target.name.identifier)
    return _attempt(lambda: execute_plan(refresh.context, target, plan, trace))


def _starts_small(context: Context, target: TableToRefresh, plan: RefreshPlan) -> bool:
    """Whether a new table with hidden columns begins with one bucket."""
    hidden = plan.hidden
    if hidden is None or not isinstance(plan, Build) or find_keyed(context.catalog, target.name) is not None:
        return False
    return target.config.buckets is None and hidden.has_few_rows


def _require_wanted(config: KeyedConfig, plan: RefreshPlan) -> None:
    if plan.reason is OTHER_STATE:
        require_incremental(plan, config)
    if not has_other_columns(plan):
        return
    if config.on_schema_change == "fail":
        assert plan.reason is not None
        raise SchemaChanged(
            plan.reason.what,
            where=config.model,
            why="on_schema_change is 'fail'; without it, the automatic model would be rebuilt",
            fix=f"dbt run --full-refresh --select {config.model}",
        )
    require_incremental(plan, config)


__all__ = ["run_refresh"]
