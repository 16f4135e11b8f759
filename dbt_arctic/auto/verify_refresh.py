"""Verifies an incremental refresh after its commit, if the model asks for it and it is due.

The result is recorded with the table. After a difference, the model fails and the next refresh is a full one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from dbt_arctic.auto.recomputed_keys import (
    CannotVerify,
    Committed,
    Difference,
    recompute,
    shortened,
    states_read,
)
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.auto.timings import PROPERTY_REFRESH, RefreshTiming, timings
from dbt_arctic.auto.verification_log import Result, Verified, record_sql, recorded
from dbt_arctic.catalog.api import CatalogReader, Snapshot
from dbt_arctic.errors import RefreshDiffers
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.log import PROPERTY_TXN
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.auto_config import Sampling
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Outcome, Verification
from dbt_arctic.store.state import load_change, load_keyed, pinned_pair, version_of

_SHORT_S = 5.0
"""A verification that takes less time is never postponed."""

_SHOWN = 5
"""The most keys in an error."""


def verify_refresh(
    context: Context, name: Name, config: KeyedConfig, sql: str, outcome: Outcome, terms: RefreshParameters
) -> Outcome:
    """Verify a refresh that has just committed, if the model asks for it and it is due.

    :param sql: the model's own SQL.
    :param terms: those with which the refresh was planned.

    :returns: the outcome with the verification. It has none after a full refresh, which computes everything.
    :raises RefreshDiffers: a key differs. The difference is recorded, so the next refresh is a full one.
    """
    choice = outcome.choice
    if config.verify is None or choice is None or choice.strategy != "incremental":
        return outcome
    refresh, commits = _committed(context.catalog, name)
    known = recorded(refresh.change.properties)
    waiting = is_waiting(config.verify, commits, known)
    if waiting is not None:
        return _with(outcome, waiting)
    began = time.monotonic()

    def result(what: Result, keys: int = 0, differ: int = 0, why: str = "") -> Verified:
        seconds, at = round(time.monotonic() - began, 2), refresh.commit
        return Verified(at.snapshot_id, at.timestamp_ms, what, keys, differ, seconds, why)

    try:
        if PROPERTY_REFRESH not in refresh.commit.summary:
            raise CannotVerify("something else has written to the table since the refresh")
        keys, differences = recompute(context, refresh, config, config.verify, sql, terms)
    except CannotVerify as error:
        found = result("skipped", why=str(error))
        if not known or known[0].why != found.why:
            _record(context, refresh.table, found)
        detail = f": {error.detail}" if error.detail else ""
        return _with(outcome, Verification("skipped", 0, found.seconds, found.why + detail))
    if not differences:
        found = result("equal", keys)
        _record(context, refresh.table, found)
        return _with(outcome, Verification("equal", keys, found.seconds))
    found = result("different", keys, len(differences))
    # A view that is not known to be wrong would make the model's full refresh wrong as well, so the views
    # come first.
    with suppress(CannotVerify):
        for table in states_read(context.catalog, refresh):
            _record(context, table, found)
    _record(context, refresh.table, found)
    raise _error(config, refresh, keys, differences)


def _with(outcome: Outcome, verified: Verification) -> Outcome:
    told = f", not verified: {verified.why}"
    if verified.result in ("equal", "not due"):
        told = f", {counted(verified.keys, 'key')} verified" if verified.result == "equal" else ""
    return replace(outcome, message=f"{outcome.message}{told}", verified=verified)


def _committed(catalog: CatalogReader, name: Name) -> tuple[Committed, list[Snapshot]]:
    """The newest commit of rows, and all commits, newest first."""
    table, base, change = pinned_pair(catalog, load_keyed(catalog, name))
    commits = change.history()
    commit = next(one for one in commits if PROPERTY_TXN in one.summary)
    return Committed(table.visible, change, version_of(table, base, change), commit), commits


def is_waiting(
    sampling: Sampling, commits: Sequence[Snapshot], known: Sequence[Verified]
) -> Verification | None:
    """Why a refresh is not verified now; ``None`` if it is due.

    Verifications of many seconds take no more time in total than the refreshes do. A query over a small
    auxiliary view is computed in full, in a refresh that is incremental as a whole.

    :param commits: of the change table, newest first.
    :param known: earlier verifications, newest first.
    """
    last = known[0] if known else None
    since: list[RefreshTiming] = []
    for commit in commits:
        if last is not None and commit.snapshot_id == last.snapshot:
            break
        since += [one for one in timings([commit]) if one.strategy == "incremental" or one.reason == "small"]
    else:
        if commits[-1].parent_id is not None:
            return None  # Commits have expired, so the number of refreshes is unknown.
    if len(since) < sampling.every:
        why = f"{len(since)} of {sampling.every} incremental refreshes since the last verification"
        return Verification("not due", why=why)
    spent = sum(one.seconds for one in since)
    if last is not None and last.seconds > max(_SHORT_S, spent):
        why = (
            f"the last verification took {last.seconds:.0f} s, and the incremental refreshes since took "
            f"{spent:.0f} s; it is postponed until they have taken as long"
        )
        return Verification("postponed", why=why)
    return None


def _record(context: Context, table: KeyedTable, found: Verified) -> None:
    known = recorded(load_change(context.catalog, table).properties)
    context.run("record_verification", record_sql(table, known, found), table)


def _error(
    config: KeyedConfig, refresh: Committed, keys: int, differences: Sequence[Difference]
) -> RefreshDiffers:
    shown = sorted(differences, key=lambda one: one.key)[:_SHOWN]
    lines = [f"{_named(refresh.table.key, one.key)}: {one.what}" for one in shown]
    if len(differences) > len(shown):
        lines.append(f"and {len(differences) - len(shown)} more")
    return RefreshDiffers(
        f"{len(differences)} of {keys} verified keys differ from the model's query",
        where=f"{config.model}, version {refresh.version}",
        why="\n         ".join(lines),
        fix=f"{_repair(config)}. Please report the model's SQL and the output of "
        f"dbt-arctic plan {config.model} --sql",
    )


def _repair(config: KeyedConfig) -> str:
    if config.auto == "strict":
        return (
            f"dbt run --full-refresh --select {config.model}: it corrects all rows. Until then the "
            "model fails, because of auto: strict"
        )
    return f"dbt run --select {config.model}: the next refresh is a full one and corrects all rows"


def _named(key: Sequence[str], values: Sequence[str]) -> str:
    return ", ".join(f"{column} = {shortened(value)}" for column, value in zip(key, values, strict=True))


__all__ = ["is_waiting", "verify_refresh"]
