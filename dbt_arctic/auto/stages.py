"""The stages of a refresh: its queries in order, the purpose of each, and where its result goes.

The executor, ``dbt-arctic plan`` and its ``--sql`` walk the same stages. A query is known from metadata,
except for the results of earlier stages: the temporary tables with their rows, and the MIN and MAX of these.
The executor inserts the actual values, and the command line inserts placeholders.

A statement that caches keys or rows, or that writes, wraps the query of a stage without changing it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dbt_arctic.auto import fast_path
from dbt_arctic.auto.key_checks import checks_of, not_unique
from dbt_arctic.auto.plan import (
    STATE_RELATION,
    Build,
    ByKeys,
    BySummaryDelta,
    Full,
    IncrementalPlan,
    OverState,
    RefreshPlan,
    StatePlan,
)
from dbt_arctic.auto.stage_results import StagedValues, StageResults, unknown
from dbt_arctic.keyed.value_range import ValueRange
from dbt_arctic.planner.auxiliary.aggregate_maintenance import changes_sql, new_extremes_sql
from dbt_arctic.planner.auxiliary.auxiliary_view import rows_of_state_sql
from dbt_arctic.planner.auxiliary.shared_values import SharedValue, value_sql
from dbt_arctic.planner.delta.bounds import fitting
from dbt_arctic.planner.delta.plan import Guard, affected_sql, guard_sql, logged_keys_sql, rows_sql
from dbt_arctic.planner.delta.stages import affected_values_sql, shared_lookup_sql
from dbt_arctic.planner.reasons import Reason
from dbt_arctic.refresh.config import KeyedConfig

Result = Literal["decision", "keys", "log", "rows", "changes", "extremes", "difference", "value", "table"]

GOES: Mapping[Result, str] = {
    "decision": "one value, which decides whether the refresh continues",
    "keys": "cached while later stages read them",
    "log": "not computed: later stages read the keys from the change log",
    "rows": "cached while later stages read them",
    "changes": "added to the stored sums; groups that differ are committed",
    "extremes": "in place of the stored extremes of these groups",
    "difference": "compared with the stored rows; what differs is committed",
    "value": "recorded in the commit, for the next refresh",
    "table": "the rows of the new table",
}
"""Where the result of a stage goes."""

FEW_ROWS = 10_000
"""Stored rows of all upstreams up to which a full computation is as fast as one for some keys."""

KEYS, ROWS, CHANGES, LOST_EXTREMES, QUERY = (
    "affected_keys",
    "rows",
    "changes",
    "groups_without_extreme",
    "query",
)


Decide = Callable[[StagedValues, Callable[[], int | None]], Reason | None]
"""The reason for a full refresh that follows from a stage's result and the number of stored rows of the
target."""


@dataclass(frozen=True)
class Decision:
    """A condition that ends an incremental refresh before it writes.

    :param when: the condition, for display.
    :param reason: returns ``None`` if it does not hold.
    :param is_full: whether a full refresh follows, and not another incremental one.
    """

    when: str
    reason: Decide
    is_full: bool = True


@dataclass(frozen=True)
class Stage:
    """One query of a refresh.

    :param name: the relation by which later stages refer to its rows.
    :param sql: its query, given the results of earlier stages.
    :param columns: key columns whose MIN and MAX later stages use.
    :param known: its result, if metadata contains it.
    :param reads: the stage whose keys it needs. Without keys, it is not run.
    """

    name: str
    purpose: str
    result: Result
    sql: Callable[[StageResults], str]
    columns: tuple[str, ...] = ()
    known: StagedValues | None = None
    reads: str = ""
    decision: Decision | None = None
    value: SharedValue | None = None

    @property
    def placeholder(self) -> StagedValues:
        """A placeholder for its result, if that is unknown."""
        return self.known or unknown(self.name, self.columns)


def stages_of(plan: RefreshPlan) -> list[Stage]:
    """The stages of a plan.

    For a query over an auxiliary view, only the text is known before the view's refresh.
    """
    match plan:
        case ByKeys():
            return _by_keys(plan)
        case BySummaryDelta():
            return _by_summary_delta(plan)
        case Full():
            return [*key_checks(plan), Stage(QUERY, "the model's query", "difference", _text(plan.sql))]
        case Build():
            return [*key_checks(plan), Stage(QUERY, "the model's query", "table", _text(plan.sql))]
        case OverState():
            size = size_stage(plan.state) if plan.action == "build" else None
            return [*([size] if size else []), *stages_of(plan.first), *_over_state(plan)]
        case _:
            return []


def _over_state(plan: OverState) -> Iterator[Stage]:
    """The query over an auxiliary view. It runs in full if too many of the view's rows have changed."""
    query = plan.state.query
    if plan.first is plan.state.plan and query is not None:
        yield Stage(
            QUERY,
            f"the query over the auxiliary view, whose rows after its refresh are {STATE_RELATION}; or over "
            "its changed rows",
            "table" if plan.action == "build" else "difference",
            lambda found: query,
        )


def stages_with_sql(stages: Iterable[Stage]) -> Iterator[tuple[Stage, str]]:
    """The stages with their queries, as far as they are known from metadata alone."""
    found = StageResults()
    for stage in stages:
        yield stage, stage.sql(found)
        found = found.also(stage.name, stage.placeholder)


def size_stage(state: StatePlan) -> Stage | None:
    """The query for the row count of an auxiliary view; ``None`` if metadata shows that it is small."""
    size = state.view.size
    if size is None:
        return None
    purpose = "how many rows the auxiliary view would have"
    return Stage("state_rows", purpose, "decision", lambda found: rows_of_state_sql(size, state.names))


def _by_keys(plan: ByKeys) -> list[Stage]:
    incremental = plan.incremental
    found = [*key_checks(plan), *_guards(plan)]
    if incremental.affected is not None:
        assert incremental.rows is not None
        columns = tuple(f"key_{place}" for place in range(len(incremental.key)))
        in_log = _in_the_log(plan, columns)
        keys_sql = affected_sql if in_log is None else logged_keys_sql
        above = _share(plan)
        many = Decision(f"more than {above:.0%} of the stored keys are affected", _too_many(above))
        found.append(
            Stage(
                KEYS,
                "the keys that can have changed",
                "keys" if in_log is None else "log",
                lambda found: keys_sql(incremental, plan.sources),
                columns,
                known=in_log,
                decision=many if above < math.inf else None,
            )
        )

        def rows(found: StageResults) -> str:
            keys = found.staged[KEYS]
            ranges = fitting(keys.ranges, [incremental.rows], plan.query.types)  # type: ignore[list-item]
            return rows_sql(incremental, plan.sources, keys.relation, ranges)

        found.append(Stage(ROWS, "their rows", "difference", rows, reads=KEYS))
    return [*found, *_values(plan)]


def _share(plan: ByKeys) -> float:
    """The share of the stored keys above which the whole query is run."""
    rows = plan.stored_rows
    has_few_rows = rows is not None and rows <= FEW_ROWS
    # A configured share also applies to few rows.
    is_default = plan.full_refresh_above == KeyedConfig.full_refresh_above
    return math.inf if has_few_rows and is_default else plan.full_refresh_above


def _too_many(full_above: float) -> Decide:
    def reason(keys: StagedValues, stored: Callable[[], int | None]) -> Reason | None:
        rows = stored()
        if rows and keys.known_count > full_above * rows:
            return Reason("many-keys", f"{keys.count} of {rows} keys are affected")
        return None

    return reason


def _in_the_log(plan: ByKeys, names: Sequence[str]) -> StagedValues | None:
    """The affected keys if they are those of a change log: no cache and no query is needed."""
    if plan.incremental.logged is None:
        return None
    source, columns = plan.incremental.logged
    upstream = plan.inputs.upstreams[source]
    ranges = {
        name: upstream.ranges[one] for name, one in zip(names, columns, strict=True) if one in upstream.ranges
    }
    known = upstream.counted and set(upstream.key) <= set(columns) and len(ranges) == len(names)
    if not known or upstream.changed_rows is None or upstream.changed_rows > fast_path.ROWS:
        return None
    keys = logged_keys_sql(plan.incremental, plan.sources)
    return StagedValues(f"(\n{keys}\n)", upstream.changed_rows, ranges)


def _by_summary_delta(plan: BySummaryDelta) -> list[Stage]:
    sums, changes = plan.summary_delta, plan.summary_delta.changes
    found = [*key_checks(plan), *_guards(plan)]
    if changes is not None:
        staged = sums.staged
        names = {
            one.name: f"affected_values_{number}" for number, one in enumerate(staged.affected_values, 1)
        }
        names |= {one.name: f"shared_lookup_{number}" for number, one in enumerate(staged.shared_lookups, 1)}
        nodes = [changes, *(one.rows for one in staged.shared_lookups)]

        def relations(found: StageResults) -> dict[str, str]:
            return {one: found.staged[name].relation for one, name in names.items() if name in found.staged}

        def ranges(found: StageResults) -> dict[str, ValueRange]:
            return fitting(found.ranges, nodes, plan.query.types)

        for values in staged.affected_values:
            found.append(
                Stage(
                    names[values.name],
                    f"affected values {names[values.name].rpartition('_')[2]}",
                    "keys",
                    lambda found, one=values: affected_values_sql(one, plan.sources),  # type: ignore[misc]
                    tuple(values.rows.output),
                )
            )
        for lookup in staged.shared_lookups:
            found.append(
                Stage(
                    names[lookup.name],
                    f"rows of affected values {names[lookup.name].rpartition('_')[2]}",
                    "rows",
                    lambda found, one=lookup: shared_lookup_sql(  # type: ignore[misc]
                        one, plan.sources, relations(found), ranges(found)
                    ),
                )
            )
        found.append(
            Stage(
                CHANGES,
                "what is added to the stored sums",
                "changes",
                lambda found: changes_sql(sums, plan.sources, relations(found), ranges(found)),
            )
        )
        if sums.new_extremes is not None and plan.recompute_reason:
            found.append(_extremes(plan))
    return [*found, *_values(plan)]


def key_checks(plan: RefreshPlan) -> Iterator[Stage]:
    """The checks of declared keys. Only an incremental refresh ends if one fails."""
    can_continue = isinstance(plan, IncrementalPlan)
    for number, (upstream, sql) in enumerate(checks_of(plan.inputs.upstreams, all_rows=not can_continue), 1):
        what = f"{upstream.name} has several rows of one key"
        decision = Decision(what, _fails(not_unique(upstream))) if can_continue else None
        yield Stage(f"declared_key_{number}", f"whether {what}", "decision", _text(sql), decision=decision)


def _text(sql: str) -> Callable[[StageResults], str]:
    return lambda found: sql


def _fails(reason: Reason) -> Decide:
    return lambda found, stored: reason if found.count else None


def _extremes(plan: BySummaryDelta) -> Stage:
    sums = plan.summary_delta
    nodes = [sums.new_extremes] if sums.new_extremes is not None else []
    # It runs while the changes are added, so it is not a separate stage.
    columns = tuple(f"key_{place}" for place in range(len(sums.group_columns)))
    placeholder = unknown(LOST_EXTREMES, columns)

    def sql(found: StageResults) -> str:
        left = found.staged.get(LOST_EXTREMES) or placeholder
        ranges = fitting(left.ranges, nodes, plan.query.types)
        return new_extremes_sql(sums, plan.sources, left.relation, ranges)

    return Stage("extremes", "the extremes of groups that have lost one", "extremes", sql)


def _guards(plan: IncrementalPlan) -> Iterator[Stage]:
    following = plan.incremental.with_changed_scalars if isinstance(plan, ByKeys) else None
    for number, guard in enumerate(plan.guards, 1):
        yield Stage(
            f"guard_{number}",
            f"whether {guard.what} has changed" + (f" ({number})" if number > 1 else ""),
            "decision",
            lambda found, one=guard: guard_sql(one, plan.sources),  # type: ignore[misc]
            decision=Decision(f"{guard.what} has changed", _differs(guard), following is None),
        )


def _differs(guard: Guard) -> Decide:
    return _fails(Reason("guard", f"{guard.what} has changed", guard.fix).at(guard.line))


def _values(plan: IncrementalPlan) -> Iterator[Stage]:
    for number, one in enumerate(plan.unknown, 1):
        yield Stage(
            f"value_{number}",
            "a value that all rows share" + (f" ({number})" if number > 1 else ""),
            "value",
            lambda found, one=one: value_sql(one, plan.sources),  # type: ignore[misc]
            value=one,
        )


__all__ = [
    "CHANGES",
    "GOES",
    "KEYS",
    "LOST_EXTREMES",
    "Decision",
    "Stage",
    "key_checks",
    "size_stage",
    "stages_of",
    "stages_with_sql",
]
