"""Decides how a table of an automatic model is refreshed: not at all, in full, by keys or by summary delta.

No statement is run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dbt_arctic.auto.advice import advise
from dbt_arctic.auto.few_rows import reason_of_few_rows
from dbt_arctic.auto.inputs import (
    ModelInputs,
    analysed_query,
    facts_of,
    fingerprint_of,
    pinned_text,
)
from dbt_arctic.auto.key_checks import is_unproved, still_not_unique
from dbt_arctic.auto.maintained_sums import maintained_sums
from dbt_arctic.auto.plan import Build, ByKeys, BySummaryDelta, Full, Header, Nothing, RefreshPlan, rows_of
from dbt_arctic.auto.recorded_values import WORTH_ROWS
from dbt_arctic.auto.refresh_request import Request, inputs_of
from dbt_arctic.auto.session_settings import (
    changed_settings,
    recorded,
    unsupported_setting,
)
from dbt_arctic.auto.timings import (
    RECOMPUTED_AT_ONCE,
    RefreshTiming,
    computes_at_once,
    finds_lost_extremes_first,
    late_full_refresh,
    slower,
)
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.auto.verification_log import Verified
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import EVALUATED_AT, FINGERPRINT, SETTINGS, Consumed
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.aggregate_maintenance import SummaryDelta
from dbt_arctic.planner.auxiliary.shared_values import shared_values, with_known
from dbt_arctic.planner.delta.costs import costly_guards
from dbt_arctic.planner.delta.plan import Incremental, plan_incremental
from dbt_arctic.planner.properties.determinism import depends_on_time
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.reasons import CannotPlan, Reason
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.state import stored_rows

SMALL = 100_000
"""The number of rows up to which an auxiliary view is read in full rather than looked up."""


@dataclass(frozen=True)
class RefreshHistory:
    """What the commits of a table record about its refreshes.

    :param last_consumed: the versions that the last one consumed.
    :param earlier: earlier refreshes, newest first.
    :param values: the values that all rows shared at the last one.
    :param written_to: whether the last commit is not that of a refresh.
    :param differing: the last verification, if it found a difference that no full refresh has repaired.
    """

    last_consumed: Mapping[str, Consumed] = field(default_factory=dict)
    earlier: Sequence[RefreshTiming] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    written_to: bool = False
    differing: Verified | None = None


def choose_refresh(
    catalog: CatalogReader,
    request: Request,
    table: KeyedTable | None,
    history: RefreshHistory,
    *,
    columns: Sequence[str] | None = None,
    of_state: bool = False,
    made_of: str = "",
) -> RefreshPlan:
    """Decide how a table is refreshed, from metadata alone.

    :param table: the current target; ``None`` for a build.
    :param columns: the names of the SQL's columns, by Spark's analysis; without it, the SQL text is used.
    :param of_state: whether it is a query over the model's auxiliary view, which is read in full if it is
        small.
    :param made_of: the model's own SQL, if that of the request was generated from it.
    """
    header = _header(catalog, request, history.last_consumed, made_of, is_build=table is None)
    build = Build(header)
    if table is None:
        return build
    own_sql = not of_state and not made_of
    reason = header.reason or _not_going_on(header, history)
    if reason is not None:
        return build.full(_with_permanent(reason, header, request.config) if own_sql else reason)
    changed = build.changed
    if not changed and not header.inputs.time_changed:
        return _unchanged(header, columns)
    lost = next((upstream for upstream in changed if upstream.lost), None)
    if lost is not None:
        gone = Reason("history-gone", f"{lost.name}: {lost.lost}")
        return build.full(_with_permanent(gone, header, request.config) if own_sql else gone)
    if is_unproved(header.last_consumed):
        return build.full(still_not_unique(header.inputs.upstreams))
    if of_state and all(
        upstream.rows is not None and upstream.rows < SMALL for upstream in header.inputs.upstreams.values()
    ):
        return _over_state_with_few_rows(header, request.config, columns)
    earlier = () if request.config.auto == "strict" else history.earlier
    reason = _mostly_new(changed, request.config) or slower(earlier, rows_of(changed))
    if reason is not None:
        return build.full(_with_permanent(reason, header, request.config) if own_sql else reason)
    plan: RefreshPlan | Reason
    try:
        plan = _incremental(
            catalog, header, request.config, table, replace(history, earlier=earlier), columns
        )
    except CannotPlan as error:
        plan = error.reason
    if isinstance(plan, Reason):
        return build.full(plan)
    reason = reason_of_few_rows(catalog, plan, request.config, table, earlier)
    return plan if reason is None else build.full(reason)


def _header(
    catalog: CatalogReader,
    request: Request,
    last_consumed: Mapping[str, Consumed],
    made_of: str,
    *,
    is_build: bool,
) -> Header:
    """What is read, and the SQL over it, with a reason if there can be no incremental plan."""
    target, sql, terms = request.name, request.sql, request.terms
    inputs = inputs_of(catalog, request, {} if is_build else last_consumed)
    key = request.config.unique_key
    fingerprint = Consumed(fingerprint_of(sql, inputs, key, terms.settings, made_of), "")
    versions = {upstream.name.dotted: upstream.consumed for upstream in inputs.upstreams.values()}
    consumed = {**versions, FINGERPRINT: fingerprint}
    if terms.session is not None:
        consumed[SETTINGS] = Consumed(recorded(terms.session), "")
    if terms.now is not None and inputs.calls:
        consumed[EVALUATED_AT] = Consumed(terms.now.date, terms.now.instant)
    text = sql
    # If Spark reads the text differently, SQL that is generated from it has another meaning.
    reason = inputs.reason or unsupported_setting(terms.in_effect)
    if reason is None:
        try:
            text = pinned_text(sql, target, inputs)
        except CannotPlan as error:
            reason = error.reason
    if reason is not None:
        # The exact rows that were read are unknown, so no later refresh may start from them.
        consumed = {FINGERPRINT: Consumed("", "")}
    return Header(request.config.model, reason, text, inputs, last_consumed, consumed)


_OF_THIS_REFRESH = frozenset(
    ["changed-sql", "differed", "first-plan", "history-gone", "many-changes", "written-to"]
)
"""Codes of reasons that say nothing about the next refresh."""


def _with_permanent(reason: Reason, header: Header, config: KeyedConfig) -> Reason:
    """A reason of one refresh, with the reason for which the next one would be full as well."""
    if reason.code not in _OF_THIS_REFRESH:
        return reason
    always = (one.reason for one in advise(header.inputs, config) if one.always)
    return replace(reason, permanent=next(always, None))


def _not_going_on(header: Header, history: RefreshHistory) -> Reason | None:
    """The reason if a refresh cannot continue from the last one."""
    earlier = history.last_consumed.get(FINGERPRINT)
    if earlier is None or not earlier.table_id:
        return Reason("first-plan", "the last refresh was not planned, or could not be")
    if earlier.table_id != header.consumed[FINGERPRINT].table_id:
        return Reason("changed-sql", "the SQL, a view that it reads or a setting has changed")
    settings = header.consumed.get(SETTINGS)
    before = history.last_consumed.get(SETTINGS)
    if settings is not None and settings != before:
        names = changed_settings("" if before is None else before.table_id, settings.table_id)
        return Reason("changed-sql", f"the session has other settings: {', '.join(names)}")
    if history.differing is not None:
        return Reason("differed", f"the last refresh was verified, and {history.differing}")
    if history.written_to:
        return Reason("written-to", "something else has written to it since its last refresh")
    return None


def _unchanged(header: Header, columns: Sequence[str] | None) -> Full | Nothing:
    """The plan if no upstream has a new commit. Then only the time may change the result."""
    of_time = _of_time(header.inputs, columns) if header.inputs.may_depend_on_time else None
    if of_time is not None:
        return Full(replace(header, reason=of_time))
    return Nothing(replace(header, reason=Reason("unchanged", "no upstream has a new commit")))


def _over_state_with_few_rows(
    header: Header, config: KeyedConfig, columns: Sequence[str] | None
) -> ByKeys | Full:
    """The plan of a query over a small auxiliary view, which is read in full unless its log suffices."""
    inputs = header.inputs
    counted = all(one.counted for one in inputs.upstreams.values() if one.changed) and not inputs.time_changed
    made = _straight_from_log(inputs, config, columns) if counted else None
    if made is None:
        return Full(replace(header, reason=Reason("small", "its state is small")))
    return ByKeys(header, *made, full_refresh_above=config.full_refresh_above)


def _incremental(
    catalog: CatalogReader,
    header: Header,
    config: KeyedConfig,
    table: KeyedTable,
    history: RefreshHistory,
    columns: Sequence[str] | None,
) -> ByKeys | BySummaryDelta | Full:
    """Add the delta to stored sums, or compute the affected keys; in full if neither is worthwhile.

    :raises CannotPlan: with the reason.
    """
    inputs, earlier, values = header.inputs, history.earlier, history.values
    query = analysed_query(inputs, columns)
    facts = replace(_facts(inputs), result_rows=stored_rows(catalog, table))
    shared = shared_values(query.node, facts)
    query = replace(query, node=with_known(query.node, facts, values))
    sums = maintained_sums(query, inputs, config, facts, table.hidden)
    incremental = _by_keys(query, facts, config, sums)
    guards = sums.guards if sums is not None else incremental.guards if incremental is not None else ()
    reason = costly_guards(guards, query.node, facts) if config.auto != "strict" else None
    reason = reason or late_full_refresh(earlier, Build(header).changed_rows, guarded=bool(guards))
    if reason is not None:
        return Full(replace(header, reason=reason))
    known = {one.name: values[one.name] for one in shared if one.name in values}
    unknown = tuple(one for one in shared if one.name not in values and one.rows >= WORTH_ROWS)
    if sums is None or (incremental is not None and _is_computed_at_once(sums, earlier)):
        assert incremental is not None
        return ByKeys(
            header,
            query,
            incremental,
            recompute_reason="" if sums is None else RECOMPUTED_AT_ONCE,
            full_refresh_above=config.full_refresh_above,
            values=known,
            unknown=unknown,
        )
    return BySummaryDelta(
        header,
        query,
        sums,
        incremental,
        recompute_reason=RECOMPUTED_AT_ONCE
        if sums.new_extremes is not None and finds_lost_extremes_first(earlier)
        else "",
        full_refresh_above=config.full_refresh_above,
        values=known,
        unknown=unknown,
    )


def _by_keys(
    query: Query, facts: Facts, config: KeyedConfig, sums: SummaryDelta | None
) -> Incremental | None:
    """The affected keys; ``None`` if the sums need no fallback, or if there is no plan by keys.

    :raises CannotPlan: there is no plan by summary delta either.
    """
    if sums is not None and not sums.extremes and not sums.looks_up:
        return None
    try:
        return plan_incremental(query, config.unique_key, facts, config.accept)
    except CannotPlan:
        if sums is None:
            raise
        return None


def _is_computed_at_once(sums: SummaryDelta, earlier: Sequence[RefreshTiming]) -> bool:
    return bool(sums.extremes) and sums.new_extremes is None and computes_at_once(earlier)


def _of_time(inputs: ModelInputs, columns: Sequence[str] | None) -> Reason | None:
    """The reason if a query may have another result at another time; any query without a plan may."""
    try:
        query = analysed_query(inputs, columns)
    except CannotPlan as error:
        return error.reason
    return depends_on_time(query.node, query.types, _facts(inputs))


def _facts(inputs: ModelInputs) -> Facts:
    facts = {name: facts_of(upstream) for name, upstream in inputs.upstreams.items()}
    return Facts(facts, time_changed=inputs.time_changed)


def _straight_from_log(
    inputs: ModelInputs, config: KeyedConfig, columns: Sequence[str] | None
) -> tuple[Query, Incremental] | None:
    """A plan that reads only the single new commit of a small table; ``None`` if there is none.

    Reading all of the table then takes no longer than finding what to read.
    """
    try:
        query = analysed_query(inputs, columns)
        made = plan_incremental(query, config.unique_key, _facts(inputs), config.accept)
    except CannotPlan:
        return None
    return None if made.guards or made.logged is None else (query, made)


def _mostly_new(changed: Sequence[Upstream], config: KeyedConfig) -> Reason | None:
    """The reason if so much of an upstream has changed that all of it is read."""
    for upstream in changed:
        if upstream.changed_rows is None or not upstream.rows:
            continue
        # Pending changes are included: the table may have been filled by upserts that are not yet compacted.
        present = max(upstream.rows, upstream.stored_rows or 0)
        if upstream.changed_rows > config.full_refresh_above * present:
            share = upstream.changed_rows / upstream.rows
            return Reason("many-changes", f"{share:.0%} of {upstream.name} has changed")
    return None


__all__ = ["RefreshHistory", "choose_refresh"]
