"""Executes the refresh of one table: the stages of its plan, and one commit with the consumed versions.

``stages`` and ``fallbacks`` define what runs in which order, and what follows if a condition of the plan does
not hold. Nothing is planned here. Every plan has the result of the model's SQL over the consumed versions.
Only rows that differ are written, so that downstream models see the real changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace

from dbt_arctic.auto import fast_path
from dbt_arctic.auto.affected_keys import kept_rows, staged_values
from dbt_arctic.auto.aggregate_delta import affected_groups, stored_name
from dbt_arctic.auto.fallbacks import fallbacks_of, plan_after
from dbt_arctic.auto.plan import ByKeys, BySummaryDelta, Full, IncrementalPlan, Nothing, RefreshPlan
from dbt_arctic.auto.recorded_values import literal_of, note_values
from dbt_arctic.auto.requested_states import record_requests, recorded_by, recorded_in
from dbt_arctic.auto.run_key_checks import with_checked_keys
from dbt_arctic.auto.shared_reads import with_shared_rows
from dbt_arctic.auto.stage_results import StagedValues, StageResults
from dbt_arctic.auto.stage_trace import Trace
from dbt_arctic.auto.stages import KEYS, Stage, stages_of
from dbt_arctic.auto.timings import Strategy, note
from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.errors import ConfigError, SparkEnded, StatementError
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed import write
from dbt_arctic.keyed.batch import ROWS_OF_KEY, Batch
from dbt_arctic.keyed.log import PROPERTY_IMAGES, PROPERTY_RUN, is_written_to
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.read import Logged
from dbt_arctic.keyed.table import ACTION, KeyedTable
from dbt_arctic.keyed.upserts_from_difference import difference_from
from dbt_arctic.planner.delta.bounds import is_ordered_as
from dbt_arctic.planner.reasons import Reason
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.change_log import logged_at
from dbt_arctic.store.computed_write import Attempt, Purpose, write_with_retries
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Choice, Outcome
from dbt_arctic.store.row_counts import changes_among
from dbt_arctic.store.state import stored_rows, total

_Difference = Callable[[Attempt], str]
"""The SQL of the rows to write, by the version that an attempt adds to."""


@dataclass(frozen=True)
class _Target:
    """The table that is refreshed.

    :param began_ms: when its refresh began.
    :param rows: the most rows that its statements can read; ``None`` if unknown.
    """

    context: Context
    name: Name
    table: KeyedTable
    config: KeyedConfig
    began_ms: int
    trace: Trace
    rows: int | None

    @property
    def keeps_images(self) -> bool:
        """Whether before-images are stored.

        With a sequence they are not: the old row depends on when it is read.
        """
        return bool(self.config.before_images) and not self.table.sequence_by

    def stored(self) -> int | None:
        return stored_rows(self.context.catalog, self.table)

    def logged(self, attempt: Attempt) -> Logged:
        return logged_at(self.context.catalog, self.table, attempt.change, attempt.pinned.change_snapshot)


@dataclass(frozen=True)
class _Computed:
    """The result of the stages, which one commit writes.

    :param values: literals of values that all rows share, by their names.
    :param one_task: whether a single task computes the rows.
    :param stage: the stage whose rows are written; empty if there is none.
    :param inside: a stage that is part of this stage's statement.
    """

    plan: RefreshPlan
    difference: _Difference
    choice: Choice
    values: Mapping[str, str] = field(default_factory=dict)
    images: bool = False
    one_task: bool = False
    stage: str = ""
    inside: str = ""


def execute_stages(
    context: Context,
    name: Name,
    table: KeyedTable,
    config: KeyedConfig,
    plan: RefreshPlan,
    rows: int | None,
    trace: Trace,
) -> Outcome:
    """Run the plan of an existing table.

    :param rows: the most rows that its statements can read; ``None`` if unknown. It is unknown for the user's
        query: a join without a condition multiplies rows.
    :param trace: records the stages, also those before a failure.

    :raises ConfigError: the model has ``auto: strict``, and the plan is a full refresh.
    """
    if isinstance(plan, Nothing):
        choice = Choice("skip", "unchanged", how="no upstream change")
        return Outcome(str(choice), 0, "", choice)
    target = _Target(context, name, table, config, context.now_ms(), trace, rows)
    if isinstance(plan, IncrementalPlan):
        with fast_path.settings_for_rows(context, rows):
            ended = _incrementally(target, plan)
        return ended if isinstance(ended, Outcome) else _full(target, ended)
    assert isinstance(plan, Full)
    has_few_rows = plan.reason is not None and plan.reason.code == "small"
    with fast_path.settings_for_rows(context, rows) if has_few_rows else nullcontext():
        return _full(target, plan)


def _incrementally(target: _Target, plan: IncrementalPlan) -> Outcome | Full:
    """The outcome of a plan or of its fallbacks, or the full refresh that must follow."""
    following: RefreshPlan = plan
    while isinstance(following, IncrementalPlan):
        ended: Outcome | Reason | StatementError
        try:
            ended = _attempt(target, following)
        except SparkEnded:
            raise  # A new session lacks what hooks and headers have set.
        except StatementError as error:
            ended = error
        if isinstance(ended, Outcome):
            return ended
        if isinstance(ended, Reason):
            following = plan_after(following, ended)
            continue
        failure = ended
        fallback = next(one for one in fallbacks_of(following) if one.holds(failure))
        target.trace.falls_back(fallback.when)
        following = fallback.plan(failure)
    assert isinstance(following, Full)
    return following


def _attempt(target: _Target, plan: IncrementalPlan) -> Outcome | Reason:
    """The outcome, or the reason why a full refresh must follow. In this case nothing was written."""
    shared = with_shared_rows(target.context, target.name, plan)
    with _settings(target, plan), ExitStack() as kept:
        computed = _walk(target, shared, kept)
        return computed if isinstance(computed, Reason) else _write(target, computed)


def _settings(target: _Target, plan: IncrementalPlan) -> AbstractContextManager[None]:
    if not isinstance(plan, BySummaryDelta):
        return nullcontext()
    read = total([plan.whole_rows, target.stored()])
    return fast_path.settings_for_changes(target.context, plan.changed_rows, read)


def _walk(target: _Target, plan: IncrementalPlan, kept: ExitStack) -> _Computed | Reason:
    """Run the stages up to the one that writes.

    :param kept: closes caches after the write.
    """
    context, table, found = target.context, target.table, StageResults()
    stages = stages_of(plan)
    choice = (
        Choice("incremental", how="sums")
        if isinstance(plan, BySummaryDelta)
        else Choice("incremental", keys=0)
    )
    computed = _Computed(plan, _nothing(table), choice)
    for stage in stages:
        if stage.reads and found.staged[stage.reads].count == 0:
            continue
        if stage.result == "extremes":
            # It runs while the changes are added, after the groups that lost a MIN or MAX are known.
            continue
        sql = stage.sql(found)
        with target.trace.timed(stage.name):
            match stage.result:
                case "decision":
                    found = found.also(stage.name, StagedValues("", int(bool(context.query(sql)[0][0]))))
                case "keys":
                    values = kept.enter_context(staged_values(context, table, sql, stage.columns))
                    found = found.also(stage.name, values)
                case "log":
                    assert stage.known is not None
                    found = found.also(stage.name, stage.known)
                case "rows":
                    rows = quote(kept.enter_context(kept_rows(context, table, sql, "rows")))
                    found = found.also(stage.name, StagedValues(rows))
                case "value":
                    assert stage.value is not None
                    literal = literal_of(context.query(sql))
                    more = {} if literal is None else {stage.value.name: literal}
                    computed = replace(computed, values={**computed.values, **more})
                case "changes":
                    assert isinstance(plan, BySummaryDelta)
                    computed = _added(target, plan, stage, sql, _extremes(stages), kept)
                case "difference":
                    assert isinstance(plan, ByKeys)
                    computed = _compared(target, plan, stage, sql, found.staged[KEYS])
        if stage.result in ("keys", "log"):
            target.trace.found(stage.name, found.staged[stage.name].count)
        reason = stage.decision and stage.decision.reason(found.staged[stage.name], target.stored)
        if stage.decision and reason:
            target.trace.falls_back(stage.decision.when)
            return reason
    return computed


def _extremes(stages: Sequence[Stage]) -> Stage | None:
    return next((one for one in stages if one.result == "extremes"), None)


def _added(
    target: _Target, plan: BySummaryDelta, stage: Stage, changes: str, extremes: Stage | None, kept: ExitStack
) -> _Computed:
    """Add the delta to the stored sums, by one statement over both."""
    images = target.keeps_images
    one_task = target.table.layout.buckets == 1 and fast_path.fits_one_task(target.rows)
    adding = kept.enter_context(
        affected_groups(
            target.context, target.table, plan, changes, extremes, images=images, one_task=one_task
        )
    )
    plan = plan if adding.has_lost else replace(plan, recompute_reason="")
    inside = extremes.name if extremes is not None and adding.has_lost else ""
    choice = Choice("incremental", how="sums")
    return _Computed(
        plan,
        adding.difference,
        choice,
        images=images,
        one_task=one_task,
        stage=stage.name,
        inside=inside,
    )


def _compared(target: _Target, plan: ByKeys, stage: Stage, rows: str, keys: StagedValues) -> _Computed:
    """Compare the rows of the affected keys with the stored ones."""
    incremental, table = plan.incremental, target.table
    stored = {f"key_{place}": stored_name(table, column) for place, column in enumerate(incremental.key)}
    selected = ", ".join(f"{key} AS {quote(column)}" for key, column in stored.items())
    affected = f"SELECT {selected} FROM {keys.relation}"
    between = tuple(
        keys.ranges[key].holds(quote(column))
        for key, column in stored.items()
        if key in keys.ranges and is_ordered_as(keys.ranges[key], table.types[column])
    )
    images = target.keeps_images

    def difference(attempt: Attempt) -> str:
        return difference_from(
            table,
            rows,
            attempt.pinned,
            attempt.known,
            affected,
            between,
            logged=target.logged(attempt),
            images=images,
            unique=incremental.unique,
        )

    choice = Choice("incremental", keys=keys.count)
    return _Computed(plan, difference, choice, images=images, stage=stage.name)


def require_incremental(plan: RefreshPlan, config: KeyedConfig) -> None:
    """Refuse a full refresh if the model requires an incremental one.

    :raises ConfigError: the model has ``auto: strict``.
    """
    if config.auto == "strict" and plan.action in ("full", "build"):
        assert plan.reason is not None
        reason = plan.reason.lasting
        at = f" ({reason.place})" if reason.place else ""
        raise ConfigError(
            f"this refresh would be a full one ({plan.reason.codes})",
            where=config.model,
            why=f"{reason.what}{at}",
            fix=f"{reason.fix or 'remove auto: strict'}, or once: "
            f"dbt run --full-refresh --select {config.model}",
        )


def _full(target: _Target, plan: Full) -> Outcome:
    """Compare the result of the whole query with the whole table."""
    require_incremental(plan, target.config)
    assert plan.reason is not None
    reason = plan.reason.lasting.code
    # Where most rows may have changed, two states are compared as fast as their images are read.
    images = reason in ("small", "few-rows") and target.keeps_images
    checked = with_checked_keys(target.context, plan, target.trace)
    stage = stages_of(checked)[-1]
    rows = stage.sql(StageResults())

    def difference(attempt: Attempt) -> str:
        return difference_from(
            target.table, rows, attempt.pinned, attempt.known, logged=target.logged(attempt), images=images
        )

    choice = Choice("full", reason, how=plan.reason.codes)
    written = _write(target, _Computed(checked, difference, choice, images=images, stage=stage.name))
    assert isinstance(written, Outcome)
    return written


def _nothing(table: KeyedTable) -> _Difference:
    def difference(attempt: Attempt) -> str:
        columns = ", ".join(
            f"CAST(NULL AS {column.type}) AS {quote(column.name)}" for column in table.columns
        )
        return f"SELECT {columns}, 'U' AS {quote(ACTION)}, 1L AS {quote(ROWS_OF_KEY)}\nWHERE false"

    return difference


def _write(target: _Target, computed: _Computed) -> Outcome | Reason:
    """Write the difference and the consumed versions in one commit.

    Returns a reason, without a commit, if a full refresh must follow.
    """
    context, name, table, config = target.context, target.name, target.table, target.config
    plan, choice, images = computed.plan, computed.choice, computed.images
    consumption = Consumption(plan.last_consumed, plan.consumed, forgets=True)
    strategy: Strategy = "incremental" if isinstance(plan, IncrementalPlan) else "full"
    reason = choice.reason or (plan.recompute_reason if isinstance(plan, IncrementalPlan) else "")
    timed = note(strategy, target.began_ms, plan.changed_rows, reason)
    properties = {PROPERTY_RUN: context.run_id, **consumption.properties(), **timed}
    if isinstance(plan, IncrementalPlan):
        properties |= note_values({**plan.values, **computed.values})
    if images:
        properties[PROPERTY_IMAGES] = "true"

    def statement(attempt: Attempt) -> str:
        requested = _requests(name, plan, attempt.change.history())
        batch = Batch(
            model=config.model,
            sql=computed.difference(attempt),
            key=table.key,
            columns=table.column_names,
            model_columns=(*table.column_names, ACTION),
            checks=config.checks,
            images=images,
            counted=True,
        )
        return write.insert_into_change(
            table,
            batch,
            attempt.txn,
            {**properties, **requested},
            attempt.branch,
            in_one_task=computed.one_task,
        )

    with target.trace.timed(computed.stage) if computed.stage else nullcontext():
        written = write_with_retries(
            context,
            table,
            Purpose("refresh", config.model, "run the model again", pulls=True),
            statement,
            check=lambda change: consumption.check(change, config.model, name),
            pointless=lambda change: strategy == "incremental" and is_written_to(change.history()),
        )
    if computed.inside:
        target.trace.inside(computed.inside, computed.stage)
    if written is None:
        target.trace.falls_back("something else has written to the table")
        return Reason("written-to", "something else has written to it during its refresh")
    rows = changes_among(context, table, written.rows, written.attempt.txn) if images else written.rows
    if computed.stage:
        target.trace.found(computed.stage, rows)
    rows_text = f", {counted(rows, 'row')}" if rows is not None else ""
    return Outcome(f"{choice}{rows_text}", rows, written.sql, choice)


def _requests(name: Name, plan: RefreshPlan, history: Sequence[Snapshot]) -> dict[str, str]:
    """The property of a commit that records the requested states of upstreams."""
    if isinstance(plan, IncrementalPlan):
        return record_requests(recorded_by(plan.nodes, plan.inputs), recorded_in(history, name.catalog))
    return record_requests(plan.header.later_requests)
