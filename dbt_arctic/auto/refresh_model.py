"""Refreshes an automatic model: its auxiliary view, then its own table. Plans and executions take turns.

How the query over a state is refreshed depends on what the state's refresh commits. So that has two plans,
each a value: that of the state is executed, then that of the query over it is made and executed. A plan that
turns out to be of no use is replaced by another one in the same way. What executes a plan (``execute``,
``execute_table``) makes none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dbt_arctic.auto import select_list_subqueries
from dbt_arctic.auto.auxiliary_tables import drop_states, owner_of_state
from dbt_arctic.auto.execute import TableToRefresh, execute_plan
from dbt_arctic.auto.execute_table import require_incremental
from dbt_arctic.auto.plan import (
    OTHER_COLUMNS,
    OTHER_STATE,
    Build,
    Nothing,
    NotOver,
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
from dbt_arctic.auto.stages import Found, size_stage
from dbt_arctic.errors import ArcticError, DuplicateKey, NullKey, SchemaChanged, SparkEnded, StatementError
from dbt_arctic.keyed.names import Name
from dbt_arctic.planner.reasons import Reason
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.context import Choice, Context, Outcome
from dbt_arctic.store.state import find_keyed, total

_OF_ROWS = frozenset(["small", "limit", "many-changes", "many-keys", "slower", "found-late"])
"""Why a query over a state is asked for all its rows though nothing is wrong with any: the refresh is called
as that of its state was, which has read the changes."""

_LITTLE = 0.1

WITHOUT_STATE = "the state cannot be kept or read"
WITHOUT_HIDDEN = "hidden columns cannot be stored"
"""Why another plan has followed, as users read it."""


@dataclass(frozen=True)
class _Refresh:
    """One model's refresh: what is needed for its own table, and for that of its state."""

    context: Context
    name: Name
    config: KeyedConfig
    owner: str
    comment: str
    column_comments: Mapping[str, str] | None


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
    """Carry a plan out: a build, a full refresh, an incremental one, or nothing.

    :raises SchemaChanged: ``on_schema_change: fail``, and the model has other columns than its table.
    :raises ConfigError: ``auto: strict``, and the plan is a full refresh of a table that is there.
    """
    _require_wanted(config, plan)
    # The plan of a model over a state is the state's, and may read less than the query over it.
    reading = plan.state.reading if isinstance(plan, OverState) else plan.reading
    refresh = _Refresh(context, name, config, owner, comment, column_comments)
    with select_list_subqueries.over(context, (reading.tree, *reading.trees.values())):
        return _run(refresh, plan)


def _run(refresh: _Refresh, plan: RefreshPlan) -> Outcome:
    context = refresh.context
    if isinstance(plan, OverState) and plan.action == "build" and not _is_of_few(context, plan.state):
        instead = plan_with_other_state(context.catalog, plan.state, context.query_schema)
        plan = instead.because(plan.reason)
    if isinstance(plan, OverState):
        return _over_state(refresh, plan)
    outcome = _of_table(refresh, refresh.name, refresh.config, plan)
    _drop_unused(context, refresh.name, plan, 1)
    return outcome


def _drop_unused(context: Context, name: Name, plan: RefreshPlan, first: int) -> None:
    """Drop the states from the ``first`` on, where a model is of another query than before and has no use for
    them.

    :param plan: of the model's own table.
    """
    if isinstance(plan, Build) or (plan.reason is not None and plan.reason.code == "changed-sql"):
        drop_states(context, name, first)


def _is_of_few(context: Context, state: StatePlan) -> bool:
    """Whether a state has few rows beside what it spares reading. Where data tell, Spark is asked."""
    stage, size = size_stage(state), state.split.size
    if stage is None or size is None:
        return True
    ((rows,),) = context.query(stage.sql(Found()))
    of_source = state.plan.reading.upstreams[size.source].rows
    return rows is not None and of_source is not None and bool(rows <= size.share * of_source)


def _over_state(refresh: _Refresh, plan: OverState) -> Outcome:
    """Refresh the state, and the model from it, which may have another state in between."""
    context, name, config, state = refresh.context, refresh.name, refresh.config, plan.state
    if plan.action == "nothing":
        return _of_table(refresh, name, config, Nothing(plan.header))
    kept: Outcome | None = None
    try:
        kept = _of_table(refresh, state.name, state.config, state.plan)
        outer = plan_over_state(context.catalog, state, context.query_schema)
        if isinstance(outer, NotOver):
            without = _without(refresh, state, outer.why, drops=outer.drops)
            return replace(without, stages=(*kept.stages, *without.stages))
        reads_all = state.is_inside and not _reads_little(outer, state.plan)
        # How a model is refreshed over its state: strictness is about the state.
        own = config if reads_all else replace(config, auto="")
        if isinstance(outer, OverState):
            outcome = _over_state(replace(refresh, config=own), outer)
        else:
            outcome = _of_table(refresh, name, own, outer)
            _drop_unused(context, name, outer, state.place + 1)
    except SparkEnded:
        raise
    except (StatementError, NullKey, DuplicateKey) as error:
        if isinstance(error, DuplicateKey) and kept is not None:
            raise  # they are the model's own rows, with a state or without
        return _without(refresh, state, _why(error), drops=not isinstance(error, StatementError))
    outcome = replace(
        outcome,
        stages=(*kept.stages, *outcome.stages),
        fell_back=(*kept.fell_back, *outcome.fell_back),
    )
    if plan.action == "build":
        return outcome
    # A run that ended between the two has left nothing to do but the second.
    done = kept.choice if kept.choice is not None and kept.choice.strategy != "skip" else None
    choice, own_choice = done or Choice("incremental", how="state"), outcome.choice
    if choice.strategy == "incremental" and own_choice is not None and own_choice.strategy == "full":
        if isinstance(outer, Build):
            choice = Choice("full", OTHER_COLUMNS.code)
        elif reads_all or own_choice.reason not in _OF_ROWS:
            choice = own_choice
    rows = f", {outcome.rows} rows" if outcome.rows >= 0 else ""
    return replace(outcome, message=f"{choice}{rows}", choice=choice)


def _without(refresh: _Refresh, state: StatePlan, why: str, *, drops: bool) -> Outcome:
    """Refresh the model as if it had no state. One that cannot be kept is not tried again."""
    if drops:
        drop_states(refresh.context, refresh.name, state.place)
    alone = plan_without_state(refresh.context.catalog, state, refresh.context.query_schema)
    if alone.reason is not None and alone.reason.code == "changed-sql":
        # Not its SQL has changed, but what it reads by it.
        what = (
            f"it is refreshed without its state, which could not be kept or read{f': {why}' if why else ''}"
        )
        alone = alone.because(Reason("without-state", what))
    outcome = _of_table(refresh, refresh.name, refresh.config, alone)
    return replace(outcome, fell_back=(WITHOUT_STATE, *outcome.fell_back))


def _why(error: Exception) -> str:
    return (error.why or error.what) if isinstance(error, ArcticError) else str(error)


def _reads_little(outer: RefreshPlan, state: RefreshPlan) -> bool:
    """Whether all that a query over a state reads is little beside what the state is computed of."""
    if outer.reason is not None and outer.reason.code == "small":
        return True
    over = outer.state.reading if isinstance(outer, OverState) else outer.reading
    read, instead = (
        total(one.rows for one in reading.upstreams.values()) for reading in (over, state.reading)
    )
    return read is not None and instead is not None and read <= _LITTLE * instead


def _of_table(refresh: _Refresh, name: Name, config: KeyedConfig, plan: RefreshPlan) -> Outcome:
    """Build or refresh one table, or without hidden columns where these cannot be stored."""
    hidden, context = plan.hidden, refresh.context
    target = TableToRefresh(
        name,
        config,
        refresh.owner if name == refresh.name else owner_of_state(refresh.name),
        refresh.comment
        if name == refresh.name
        else f"The state of {refresh.name.identifier}, kept by its refresh",
        refresh.column_comments if name == refresh.name else None,
    )
    if hidden is None:
        return execute_plan(context, target, plan)
    builds_first = isinstance(plan, Build) and find_keyed(context.catalog, name) is None
    small = builds_first and config.buckets is None and hidden.is_small
    try:
        own = replace(target, config=replace(config, buckets=1)) if small else target
        return execute_plan(context, own, plan)
    except SparkEnded:
        raise
    except StatementError:
        without = plan_without_hidden(context.catalog, hidden, context.query_schema)
        if without.sql == plan.sql:
            raise
    outcome = execute_plan(context, target, without)
    return replace(outcome, fell_back=(WITHOUT_HIDDEN, *outcome.fell_back))


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
            why="on_schema_change is 'fail'; without it, such an automatic model is built anew",
            fix=f"dbt run --full-refresh --select {config.model}",
        )
    require_incremental(plan, config)


__all__ = ["run_refresh"]
