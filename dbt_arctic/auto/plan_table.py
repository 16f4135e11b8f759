"""Plans one refresh of a table of an automatic model. Nothing is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dbt_arctic.auto.common_values import WORTH_ROWS
from dbt_arctic.auto.inputs import (
    Reading,
    Until,
    by_name,
    facts_of,
    fingerprint_of,
    pinned_text,
    read,
    understood,
    unsupported_setting,
)
from dbt_arctic.auto.plan import Build, ByKeys, BySums, Nothing, RefreshPlan, rows_of
from dbt_arctic.auto.timings import ASKED_AT_ONCE, Took, computes_at_once, found_late, looks_first, slower
from dbt_arctic.auto.upstreams import Upstream
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import ASKED_AT, FINGERPRINT, Consumed
from dbt_arctic.planner.algebra.query import Query
from dbt_arctic.planner.auxiliary.aggregate_maintenance import Sums, plan_sums
from dbt_arctic.planner.auxiliary.common_values import shared_values, with_known
from dbt_arctic.planner.delta.costs import costly_guards
from dbt_arctic.planner.delta.plan import Incremental, plan_incremental
from dbt_arctic.planner.frontend.point_in_time import Clock
from dbt_arctic.planner.properties.determinism import depends_on_time
from dbt_arctic.planner.properties.facts import Facts
from dbt_arctic.planner.reasons import CannotPlan, Reason
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.state import stored_rows

_NO_VALUES: Mapping[str, str] = {}

SMALL = 100_000
"""Rows of a state that are read whole rather than looked up."""


def plan_auto(
    catalog: CatalogReader,
    target: Name,
    table: KeyedTable | None,
    expected: Mapping[str, Consumed],
    config: KeyedConfig,
    sql: str,
    *,
    settings: str = "",
    until: Until = lambda name: None,
    columns: Sequence[str] | None = None,
    of_state: bool = False,
    made_of: str = "",
    took: Sequence[Took] = (),
    values: Mapping[str, str] = _NO_VALUES,
    written_to: bool = False,
    now: Clock | None = None,
) -> RefreshPlan:
    """Decide how a model is refreshed, from metadata alone.

    :param table: the target as it is; ``None`` for a build.
    :param expected: what its last commit had consumed.
    :param until: the version at which a relation is read, where it is not the newest.
    :param settings: the session's settings that change what SQL means: ``name=value``, with ``;`` between.
    :param of_state: whether the query is one over the model's state, which is read whole where it is small.
    :param made_of: the model's own SQL, where ``sql`` is made of it.
    :param columns: the names of the SQL's columns, by analysis; without it, as the SQL reads.
    :param took: earlier refreshes, newest first. :param values: what the last one knew that all rows share.
    :param written_to: whether the target's last commit is none of a refresh.
    :param now: the time of the refresh.
    """
    reading = read(catalog, target, sql, expected if table is not None else {}, until, now)
    reading = replace(reading, wraps=by_name(settings).get("spark.sql.ansi.enabled", "true") != "true")
    fingerprint = Consumed(fingerprint_of(sql, reading, config.unique_key, settings, made_of), "")
    versions = {upstream.name.dotted: upstream.consumed for upstream in reading.upstreams.values()}
    consumed = {**versions, FINGERPRINT: fingerprint}
    if now is not None and reading.calls:
        consumed[ASKED_AT] = Consumed(now.date, now.instant)
    text = sql
    # Where Spark reads the text in another way, SQL that is written from it would mean something else.
    reason = reading.reason or unsupported_setting(settings)
    if reason is None:
        try:
            text = pinned_text(sql, target, reading)
        except CannotPlan as error:
            reason = error.reason
    if reason is not None:
        # What was read is not known to the last row, so no later refresh may start from it.
        consumed = {FINGERPRINT: Consumed("", "")}

    build = Build(config.model, reason, text, reading, expected, consumed)
    if table is None:
        return build
    full = build.full
    if reason is not None:
        return full(reason)
    earlier = expected.get(FINGERPRINT)
    if earlier is None or not earlier.table_id:
        return full(Reason("first-plan", "the last refresh was not planned, or could not be"))
    if earlier != fingerprint:
        return full(Reason("changed-sql", "the SQL, a view that it reads or a setting has changed"))
    if written_to:
        return full(Reason("written-to", "something else has written to it since its last refresh"))
    changed = [upstream for upstream in reading.upstreams.values() if upstream.changed]
    if not changed and not reading.time_moved:
        of_time = _of_time(reading, columns) if reading.may_depend_on_time else None
        if of_time is not None:
            return full(of_time)
        unchanged = Reason("unchanged", "no upstream has a new commit")
        return Nothing(config.model, unchanged, text, reading, expected, consumed)
    for upstream in changed:
        if upstream.lost:
            return full(Reason("history-gone", f"{upstream.name}: {upstream.lost}"))
    if of_state and all(0 <= upstream.rows < SMALL for upstream in reading.upstreams.values()):
        counted = all(upstream.counted for upstream in changed) and not reading.time_moved
        made = _straight_from_log(reading, config, columns) if counted else None
        if made is not None:
            return ByKeys(
                config.model,
                None,
                text,
                reading,
                expected,
                consumed,
                *made,
                full_refresh_above=config.full_refresh_above,
            )
        return full(Reason("small", "its state is small"))
    for upstream in changed:
        if _mostly_new(upstream, config):
            share = upstream.changed_rows / max(upstream.rows, 1)
            return full(Reason("many-changes", f"{share:.0%} of {upstream.name} has changed"))
    took = () if config.auto == "strict" else took
    by_history = slower(took, rows_of(changed))
    if by_history is not None:
        return full(by_history)
    sums = None
    incremental = None
    try:
        query = understood(reading, columns)
        stored = stored_rows(catalog, table)
        facts = replace(_facts(reading), result_rows=None if stored < 0 else stored)
        shared = shared_values(query.node, facts)
        query = replace(query, node=with_known(query.node, facts, values))
        # Without ANSI, numbers that are too large become others or NULL, and no sum can go on from these.
        exact = not reading.wraps
        sums = plan_sums(query, config.unique_key, facts, config.accept, table.hidden) if exact else None
        if sums is None or sums.extremes or sums.looks_up:
            incremental = plan_incremental(query, config.unique_key, facts, config.accept)
    except CannotPlan as error:
        if sums is None:
            return full(error.reason)
    guards = sums.guards if sums is not None else incremental.guards if incremental is not None else ()
    costly = costly_guards(guards, query.node, facts) if config.auto != "strict" else None
    if costly is not None:
        return full(costly)
    by_history = found_late(took, rows_of(changed), guarded=bool(guards))
    if by_history is not None:
        return full(by_history)
    known = {one.name: values[one.name] for one in shared if one.name in values}
    unknown = tuple(one for one in shared if one.name not in values and one.rows >= WORTH_ROWS)
    if sums is None or (incremental is not None and _is_computed_at_once(sums, took)):
        assert incremental is not None
        return ByKeys(
            config.model,
            None,
            text,
            reading,
            expected,
            consumed,
            query,
            incremental,
            extremes_asked="" if sums is None else ASKED_AT_ONCE,
            full_refresh_above=config.full_refresh_above,
            values=known,
            unknown=unknown,
        )
    return BySums(
        config.model,
        None,
        text,
        reading,
        expected,
        consumed,
        query,
        sums,
        incremental,
        extremes_asked=ASKED_AT_ONCE if sums.of_left is not None and looks_first(took) else "",
        full_refresh_above=config.full_refresh_above,
        values=known,
        unknown=unknown,
    )


def _is_computed_at_once(sums: Sums, took: Sequence[Took]) -> bool:
    return bool(sums.extremes) and sums.of_left is None and computes_at_once(took)


def _of_time(reading: Reading, columns: Sequence[str] | None) -> Reason | None:
    """Why a query may have another result at another time. One that is not understood may."""
    try:
        query = understood(reading, columns)
    except CannotPlan as error:
        return error.reason
    return depends_on_time(query.node, query.types, _facts(reading))


def _facts(reading: Reading) -> Facts:
    facts = {name: facts_of(upstream) for name, upstream in reading.upstreams.items()}
    return Facts(facts, time_moved=reading.time_moved)


def _straight_from_log(
    reading: Reading, config: KeyedConfig, columns: Sequence[str] | None
) -> tuple[Query, Incremental] | None:
    """A plan that reads no more of a small table than its one new commit. ``None`` where there is none: then
    to read all of it takes no longer than to find what to read.
    """
    try:
        query = understood(reading, columns)
        made = plan_incremental(query, config.unique_key, _facts(reading), config.accept)
    except CannotPlan:
        return None
    return None if made.guards or made.logged is None else (query, made)


def _mostly_new(upstream: Upstream, config: KeyedConfig) -> bool:
    known = upstream.changed_rows >= 0 and upstream.rows > 0
    # With what is pending: a table may have been filled by upserts that nothing has merged yet.
    return known and upstream.changed_rows > config.full_refresh_above * max(
        upstream.rows, upstream.stored_rows
    )


__all__ = ["plan_auto"]
