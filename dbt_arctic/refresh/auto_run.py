"""One refresh of an automatic model: its plan, the statements, one commit with the consumed versions.

Whatever the plan is, the result is that of the model's SQL over the consumed versions. Where the table is
there already, only rows that differ are written, so that models downstream see what really changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.errors import ConfigError, SparkEnded, StatementError
from dbt_arctic.keyed import write
from dbt_arctic.keyed.diff import difference_from
from dbt_arctic.keyed.log import PROPERTY_IMAGES, PROPERTY_RUN, is_written_to
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.read import Logged
from dbt_arctic.keyed.sums import BELOW_ZERO, EXTREME_LEFT
from dbt_arctic.keyed.table import ACTION, KeyedTable
from dbt_arctic.keyed.version import FINGERPRINT
from dbt_arctic.planner.bounds import fitting, is_ordered_as
from dbt_arctic.planner.plan import Guard, guard_sql, rows_sql
from dbt_arctic.planner.reasons import Reason
from dbt_arctic.planner.staged import gathered_sql, touched_sql
from dbt_arctic.planner.sums import changes_sql
from dbt_arctic.refresh import small
from dbt_arctic.refresh.adding import groups_touched, stored_name
from dbt_arctic.refresh.affected import Staged, affected_keys, kept_rows, staged_values
from dbt_arctic.refresh.asked import note_asked, told_by, told_in, will_ask
from dbt_arctic.refresh.auto import AutoPlan
from dbt_arctic.refresh.computed import Attempt, Purpose, write_computed
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.consumption import Consumption
from dbt_arctic.refresh.edge import Choice, Edge, Outcome
from dbt_arctic.refresh.logged import logged_at
from dbt_arctic.refresh.rows import changes_among
from dbt_arctic.refresh.sharing import with_shared_rows
from dbt_arctic.refresh.state import stored_rows
from dbt_arctic.refresh.timings import ASKED, Strategy, note
from dbt_arctic.refresh.values import ask_values, note_values

_FEW = 2_000_000
"""Groups that are sent to each task."""


class _Instead(Exception):
    """What was found on the way asks for a full refresh."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.what)
        self.reason = reason


def refresh_auto(
    edge: Edge, name: Name, table: KeyedTable, config: KeyedConfig, plan: AutoPlan, rows: int
) -> Outcome:
    """Run the plan of a table that is there.

    :param rows: that its own statements may come by, -1 where that is not known. Of the user's query that is
        not known: a join without a condition makes many rows of few.
    :raises ConfigError: ``auto: strict``, and the plan is a full refresh.
    """
    if plan.action == "nothing":
        choice = Choice("skip", "unchanged", how="no upstream change")
        return Outcome(str(choice), 0, "", choice)
    plan = replace(plan, began_ms=edge.now_ms())
    if plan.action == "incremental":
        try:
            with small.over(edge, rows):
                return _incrementally(edge, name, table, config, plan)
        except _Instead as found:
            reason = found.reason
        except SparkEnded:
            raise  # a new session has not what hooks and headers have set
        except StatementError as error:
            # The affected keys are found with fewer conditions than the query has, so a value that it never
            # computes may have failed. If the query itself fails, the full refresh says so.
            reason = Reason("failed", f"the incremental statements failed: {error.why or error.what}")
        plan = replace(plan, action="full", reason=reason, incremental=None, sums=None)
    elif plan.reason is not None and plan.reason.code == "small":
        with small.over(edge, rows):
            return _full(edge, name, table, config, plan)
    return _full(edge, name, table, config, plan)


def _incrementally(edge: Edge, name: Name, table: KeyedTable, config: KeyedConfig, plan: AutoPlan) -> Outcome:
    if plan.sums is not None:
        try:
            shared = with_shared_rows(edge, name, plan)
            read = [plan.whole_rows, stored_rows(edge.catalog, table)]
            with small.changes(edge, plan.changed_rows, -1 if min(read) < 0 else sum(read)):
                return _by_sums(edge, name, table, config, shared)
        except SparkEnded:
            raise
        except StatementError as error:
            lost = bool(plan.sums.extremes) and EXTREME_LEFT in str(error)
            if lost and plan.sums.of_left is not None and not plan.extremes_asked:
                return _incrementally(edge, name, table, config, replace(plan, extremes_asked=ASKED))
            # A value that is looked up is computed of more rows than the query computes it of.
            looked_up = plan.sums.looks_up and plan.incremental is not None and BELOW_ZERO not in str(error)
            if not lost and not looked_up:
                raise
        if plan.incremental is None:
            raise _Instead(Reason("extreme", EXTREME_LEFT)) from None
        plan = replace(plan, sums=None, extremes_asked=ASKED if lost else "")
    return _by_keys(edge, name, table, config, with_shared_rows(edge, name, plan))


def _by_sums(edge: Edge, name: Name, table: KeyedTable, config: KeyedConfig, plan: AutoPlan) -> Outcome:
    """Add what changed to the stored sums: one statement over the changes and these."""
    sums = plan.sums
    assert sums is not None
    _require_unchanged(edge, plan, sums.guards)
    if sums.changes is None:
        return _write(edge, name, table, config, plan, _nothing(table), Choice("incremental", how="sums"))
    with ExitStack() as kept:
        names: dict[str, str] = {}
        ranges: dict[str, tuple[str, str]] = {}
        for one in sums.staged.touched:
            sql = touched_sql(one, plan.sources)
            values = kept.enter_context(staged_values(edge, table, sql, one.rows.output))
            names[one.name] = values.relation
            ranges.update(values.ranges)
        nodes = [sums.changes, *(rows.rows for rows in sums.staged.gathered)]
        ranges = fitting(ranges, nodes, plan.query.types if plan.query is not None else {})
        for rows in sums.staged.gathered:
            sql = gathered_sql(rows, plan.sources, names, ranges)
            names[rows.name] = quote(kept.enter_context(kept_rows(edge, table, sql, "rows")))
        changes = changes_sql(sums, plan.sources, names, ranges)
        return _added(edge, name, table, config, plan, changes)


def _added(
    edge: Edge, name: Name, table: KeyedTable, config: KeyedConfig, plan: AutoPlan, changes: str
) -> Outcome:
    images = _keeps_images(table, config)
    with groups_touched(edge, table, plan, changes, images=images) as adding:
        how = Choice("incremental", how="sums")
        plan = plan if adding.has_lost else replace(plan, extremes_asked="")
        return _write(edge, name, table, config, plan, adding.difference, how, images=images)


def _by_keys(edge: Edge, name: Name, table: KeyedTable, config: KeyedConfig, plan: AutoPlan) -> Outcome:
    assert plan.incremental is not None
    _require_unchanged(edge, plan, plan.incremental.guards)
    if plan.incremental.affected is None:
        return _write(edge, name, table, config, plan, _nothing(table), Choice("incremental", keys=0))
    names = [f"key_{place}" for place in range(len(table.key))]
    with affected_keys(edge, table, plan, names) as keys:
        stored = stored_rows(edge.catalog, table)
        if stored > 0 and keys.count > config.full_refresh_above * stored:
            raise _Instead(Reason("many-keys", f"{keys.count} of {stored} keys are affected"))
        if keys.count == 0:
            return _write(edge, name, table, config, plan, _nothing(table), Choice("incremental", keys=0))
        return _incremental(edge, name, table, config, plan, keys)


def require_incremental(plan: AutoPlan, config: KeyedConfig) -> None:
    """:raises ConfigError: the model asks for an incremental refresh or an error."""
    if config.auto == "strict" and plan.action in ("full", "build"):
        assert plan.reason is not None
        at = f" ({plan.reason.place})" if plan.reason.place else ""
        raise ConfigError(
            f"this refresh would be a full one ({plan.reason.code})",
            where=config.model,
            why=f"{plan.reason.what}{at}",
            fix=f"{plan.reason.fix or 'remove auto: strict'}, or once: "
            f"dbt run --full-refresh --select {config.model}",
        )


def _require_unchanged(edge: Edge, plan: AutoPlan, guards: Sequence[Guard]) -> None:
    """:raises _Instead: what is compared as a whole differs."""
    for guard in guards:
        if edge.query(guard_sql(guard, plan.sources))[0][0]:
            line = guard.line
            raise _Instead(Reason("guard", f"{guard.what} has changed", guard.fix, int(line), line.view))


def _incremental(
    edge: Edge, name: Name, table: KeyedTable, config: KeyedConfig, plan: AutoPlan, keys: Staged
) -> Outcome:
    incremental = plan.incremental
    assert incremental is not None
    assert incremental.rows is not None
    assert plan.query is not None
    ranges = fitting(keys.ranges, [incremental.rows], plan.query.types)
    rows = rows_sql(incremental, plan.sources, keys.relation, ranges)
    selected = ", ".join(
        f"key_{place} AS {quote(stored_name(table, column))}" for place, column in enumerate(incremental.key)
    )
    affected = f"SELECT {selected} FROM {keys.relation}"
    between = tuple(
        f"{quote(stored_name(table, column))} BETWEEN {keys.ranges[f'key_{place}'][0]} "
        f"AND {keys.ranges[f'key_{place}'][1]}"
        for place, column in enumerate(incremental.key)
        if f"key_{place}" in keys.ranges
        and is_ordered_as(keys.ranges[f"key_{place}"], table.types[stored_name(table, column)])
    )

    images = _keeps_images(table, config)

    def difference(attempt: Attempt) -> str:
        return difference_from(
            table,
            rows,
            attempt.pinned,
            attempt.known,
            affected,
            between,
            logged=_logged(edge, table, attempt),
            images=images,
            unique=incremental.unique,
        )

    choice = Choice("incremental", keys=keys.count)
    return _write(edge, name, table, config, plan, difference, choice, images=images)


def _keeps_images(table: KeyedTable, config: KeyedConfig) -> bool:
    """Not with a sequence: what a late older row was before depends on who reads it when."""
    return bool(config.before_images) and not table.sequence_by


def _full(edge: Edge, name: Name, table: KeyedTable, config: KeyedConfig, plan: AutoPlan) -> Outcome:
    """The whole query, compared with the whole table."""
    require_incremental(plan, config)
    assert plan.reason is not None
    reason = plan.reason.code
    # Where most rows may have changed, two states are compared as fast as their images are read.
    images = reason == "small" and _keeps_images(table, config)

    def difference(attempt: Attempt) -> str:
        return difference_from(
            table,
            plan.sql,
            attempt.pinned,
            attempt.known,
            logged=_logged(edge, table, attempt),
            images=images,
        )

    return _write(edge, name, table, config, plan, difference, Choice("full", reason), images=images)


def _logged(edge: Edge, table: KeyedTable, attempt: Attempt) -> Logged:
    return logged_at(edge.catalog, table, attempt.change, attempt.pinned.change_snapshot)


def _nothing(table: KeyedTable) -> Any:
    def difference(attempt: Attempt) -> str:
        columns = ", ".join(
            f"CAST(NULL AS {column.type}) AS {quote(column.name)}" for column in table.columns
        )
        return f"SELECT {columns}, 'U' AS {quote(ACTION)}, 1L AS {quote(write.ROWS_OF_KEY)}\nWHERE false"

    return difference


def _write(
    edge: Edge,
    name: Name,
    table: KeyedTable,
    config: KeyedConfig,
    plan: AutoPlan,
    difference: Any,
    choice: Choice,
    *,
    images: bool = False,
) -> Outcome:
    """One commit: the difference, and what it was computed from."""
    consumption = Consumption(plan.expected, plan.consumed, forgets=True)
    strategy: Strategy = "incremental" if choice.strategy == "incremental" else "full"
    reason = choice.reason or (plan.extremes_asked if strategy == "incremental" else "")
    timed = note(strategy, plan.began_ms, plan.changed_rows, reason)
    properties = {PROPERTY_RUN: edge.run_id, **consumption.properties(), **timed}
    if strategy == "incremental":
        properties |= note_values({**plan.values, **ask_values(edge, plan.unknown, plan.sources)})
    if images:
        properties[PROPERTY_IMAGES] = "true"

    def statement(attempt: Attempt) -> str:
        asked = _asked(name, plan, config, strategy, attempt.change.history())
        batch = write.Batch(
            model=config.model,
            sql=difference(attempt),
            key=table.key,
            columns=table.column_names,
            model_columns=(*table.column_names, ACTION),
            checks=config.checks,
            images=images,
            counted=True,
        )
        return write.insert_into_change(table, batch, attempt.txn, {**properties, **asked}, attempt.branch)

    def check(change: TableState) -> None:
        consumption.check(change, config.model, name)
        if strategy == "incremental" and is_written_to(change.history()):
            raise _Instead(Reason("written-to", "something else has written to it during its refresh"))

    written = write_computed(
        edge,
        table,
        Purpose("refresh", config.model, "run the model again", pulls=True),
        statement,
        check=check,
    )
    rows = changes_among(edge, table, written.rows, written.attempt.txn) if images else written.rows
    told = f", {rows} rows" if rows >= 0 else ""
    return Outcome(f"{choice}{told}", rows, written.sql, choice)


def _asked(
    name: Name, plan: AutoPlan, config: KeyedConfig, strategy: Strategy, history: Sequence[Snapshot]
) -> dict[str, str]:
    """What the commit says of what was asked of upstreams."""
    if strategy == "incremental":
        return note_asked(told_by(plan.nodes, plan.reading), told_in(history, name.catalog))
    if plan.expected.get(FINGERPRINT) == plan.consumed[FINGERPRINT]:
        return {}
    return note_asked(will_ask(plan.reading, config))
