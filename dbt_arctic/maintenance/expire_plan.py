"""Plans which snapshots of a table expire and what keeps the others. Reads logs and changes nothing.

The kept snapshots are always the newest part of a log, because a consumer that continues from a version reads
all later commits.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from dbt_arctic.catalog.api import Snapshot, TableState
from dbt_arctic.compaction.major import pending_transactions
from dbt_arctic.keyed.log import carried_log, merged_by, versions_to_carry
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.replay import PROPERTY_REPLAYS, PROPERTY_SETTLED, replayed
from dbt_arctic.keyed.savepoint import savepoints
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, PROPERTY_SOURCE, Version, encode_consumed, is_token
from dbt_arctic.maintenance.claims import Claims
from dbt_arctic.store.context import Context
from dbt_arctic.store.lease import find_build
from dbt_arctic.store.rejected_table import model_of
from dbt_arctic.store.replay import PROPERTY_SWITCH, has_replayed_nothing
from dbt_arctic.store.state import head, load_base, load_change, plain_id

HOUR_MS = 60 * 60 * 1000
MIN_AGE_MS = HOUR_MS
"""Younger versions may be pinned by an active run or reader."""


@dataclass(frozen=True)
class Hold:
    """A reason to keep more than the policy requires, and the time of the oldest version that it keeps."""

    holder: str
    why: str
    since_ms: int | None = None


@dataclass(frozen=True)
class SidePlan:
    """The expiry of one Iceberg table.

    :param keep_from: the oldest snapshot to keep; ``None`` to keep all.
    :param older_than_ms: snapshots before this time expire (milliseconds since the epoch).
    :param expired: the number of snapshots that expire.
    :param left: the number of snapshots that are kept.
    :param carry: properties of expiring commits that must be copied to a new commit.
    """

    name: Name
    keep_from: Snapshot | None
    expired: int
    left: int
    carry: dict[str, str] = field(default_factory=dict)
    older_than_ms: int = 0


@dataclass(frozen=True)
class ExpirePlan:
    """The expiry of a table: how many snapshots expire, and why others are kept.

    :param table: ``None`` for a plain table.
    """

    name: Name
    table: KeyedTable | None
    sides: tuple[SidePlan, ...]
    holds: tuple[Hold, ...]

    @property
    def expired(self) -> int:
        """The number of snapshots that expire."""
        return sum(side.expired for side in self.sides)


@dataclass(frozen=True)
class _KeptSnapshots:
    """The snapshots of both side tables that must be kept.

    :param change: the oldest snapshot of the change table to keep; ``None`` to keep all of both tables.
    :param bases: the base snapshots of the versions that consumers have read.
    """

    change: Snapshot | None
    bases: Sequence[Snapshot | None] = ()
    holds: tuple[Hold, ...] = ()


def plan_keyed(
    context: Context,
    table: KeyedTable,
    claims: Claims,
    before_ms: int,
    released: frozenset[str] = frozenset(),
) -> ExpirePlan:
    """Plan the expiry of a keyed table's snapshots.

    :param before_ms: the table stays readable as of any time since then (milliseconds since the epoch).
    :param released: consumers for which nothing is kept; their next run reads all rows.
    """
    base, change = load_base(context.catalog, table), load_change(context.catalog, table)
    kept = _kept(context, table, base, change, claims, before_ms, released)
    bases, changes = base.history(), change.history()
    # Keep the base that was current at that time, not the newest one that matches the change snapshot: a
    # reader may have pinned the former.
    from_base = None if kept.change is None else _last_until(bases, before_ms)
    if from_base is not None:
        # The commit that merged untrimmed changes records this. Without it they would be merged again.
        pending = pending_transactions(context, table, head(change))
        oldest_merge = next((one for one in reversed(bases) if merged_by(one) & pending), None)
        for one in (*kept.bases, oldest_merge):
            from_base = _older(from_base, one)
    return ExpirePlan(
        name=table.name,
        table=table,
        sides=(
            _side(table.base, base, from_base),
            _side(table.change, change, kept.change, _to_carry(changes, kept.change)),
        ),
        holds=kept.holds,
    )


def holds_of_keyed(context: Context, table: KeyedTable, claims: Claims, before_ms: int) -> tuple[Hold, ...]:
    """What keeps more than the policy does. Reads only metadata, unlike ``plan_keyed``."""
    base, change = load_base(context.catalog, table), load_change(context.catalog, table)
    return _kept(context, table, base, change, claims, before_ms).holds


def _kept(
    context: Context,
    table: KeyedTable,
    base: TableState,
    change: TableState,
    claims: Claims,
    before_ms: int,
    released: frozenset[str] = frozenset(),
) -> _KeptSnapshots:
    whole = _untouchable(context, table, change, claims)
    if whole is not None:
        return _KeptSnapshots(None, holds=(whole,))
    bases, changes = base.history(), change.history()
    holds = _savepoints(base)
    from_change = _last_until(changes, before_ms)
    needed: list[Snapshot | None] = []
    # Consumers that read it as a plain table continue from a snapshot of the table that is now the base.
    for claim in claims.of(base.location, released):
        if not is_token(claim.consumed.version):
            needed.append(_by_id(bases, claim.consumed.snapshot_id))
    for claim in claims.of(table.generation.change_id, released):
        version = Version.parse(claim.consumed.version)
        if any(snapshot_id == version.change_snapshot for snapshot_id, _ in carried_log(changes)):
            from_change = None
            holds.append(Hold(claim.consumer, "continues from a version before an erasure"))
            break
        wanted = _by_id(changes, version.change_snapshot)
        if wanted is None:
            continue  # already lost: the consumer will need a full refresh
        if from_change is not None and wanted.sequence_number < from_change.sequence_number:
            from_change = wanted
            holds.append(Hold(claim.consumer, "has not read newer versions", wanted.timestamp_ms))
        needed.append(_by_id(bases, version.base_snapshot))
    return _KeptSnapshots(from_change, needed, tuple(holds))


def plan_plain(
    name: Name, state: TableState, claims: Claims, before_ms: int, released: frozenset[str] = frozenset()
) -> ExpirePlan:
    """Plan the expiry of a plain table.

    The commit that records what it consumed is kept, and all later ones. A consumer may need a snapshot that
    is no ancestor of the current one, because the table was replaced or rolled back since.
    """
    history = state.history()
    aside: list[Snapshot] = []
    holds = _savepoints(state)
    keep = _last_until(history, before_ms)
    if claims.unknown:
        return ExpirePlan(name, None, (_everything(name, state),), (_unknown(claims),))
    table_id = plain_id(state)
    wanting = claims.of(table_id, released)
    if PROPERTY_SOURCE in state.properties or model_of(state) is not None:
        # It belongs to a model, which could not continue from a savepoint otherwise.
        wanting = [*wanting, *claims.of_savepoints(table_id)]
    for claim in wanting:
        read = None if is_token(claim.consumed.version) else claim.consumed.snapshot_id
        wanted = _by_id(state.snapshots, read)
        if wanted is None or keep is None:
            continue
        if wanted not in history:
            aside.append(wanted)
        elif wanted.sequence_number < keep.sequence_number:
            keep = wanted
        else:
            continue
        holds.append(Hold(claim.consumer, "has not read newer versions", wanted.timestamp_ms))
    consuming = next((one for one in history if PROPERTY_CONSUMED in one.summary), None)
    keep = None if keep is None else _older(keep, consuming)
    return ExpirePlan(name, None, (_side(name, state, keep, aside=aside),), tuple(holds))


def _untouchable(context: Context, table: KeyedTable, change: TableState, claims: Claims) -> Hold | None:
    """The reason to keep all of a table, if there is one."""
    build = find_build(context, table.name, table)
    if build is not None:
        return Hold(
            build.lease.description, "is building the next generation and needs all concurrent commits"
        )
    view = context.catalog.of(table.name).load_view(table.name.schema, table.name.identifier)
    switch = "" if view is None else view.properties.get(PROPERTY_SWITCH, "")
    settled = any(one.summary.get(PROPERTY_SETTLED) == switch for one in change.history())
    if (
        view is not None
        and table.previous is not None
        and switch
        and not (settled or has_replayed_nothing(context.catalog, table, view))
    ):
        return Hold(
            table.name.dotted, "replays commits made during its full refresh; its next run records this"
        )
    return _unknown(claims) if claims.unknown else None


def _unknown(claims: Claims) -> Hold:
    name, why = next(iter(sorted(claims.unknown.items())))
    return Hold(name, f"cannot be read, so it is unknown what it still needs: {why}")


def _to_carry(changes: Sequence[Snapshot], keep: Snapshot | None) -> dict[str, str]:
    """The properties that only expiring commits have and that are still needed."""
    if keep is None:
        return {}
    kept = [one for one in changes if one.sequence_number >= keep.sequence_number]
    names = [PROPERTY_CONSUMED, PROPERTY_SETTLED]
    names = [name for name in names if not any(name in one.summary for one in kept)]
    # A late writer to the previous generation checks here which of its commits were replayed.
    if replayed(changes) - replayed(kept):
        names.append(PROPERTY_REPLAYS)
    return newest_values(changes, names)


def newest_values(history: Sequence[Snapshot], names: Iterable[str]) -> dict[str, str]:
    """The newest value of each property in a history, to be copied to a new commit."""
    found = {
        name: next((one.summary[name] for one in history if name in one.summary), None) for name in names
    }
    values = {name: value for name, value in found.items() if value is not None}
    if PROPERTY_CONSUMED in values:
        values[PROPERTY_CONSUMED] = encode_consumed(versions_to_carry(history))
    if PROPERTY_REPLAYS in values:
        values[PROPERTY_REPLAYS] = json.dumps(sorted(replayed(history)))
    return values


def _savepoints(state: TableState) -> list[Hold]:
    times = {one.snapshot_id: one.timestamp_ms for one in state.snapshots}
    return [
        Hold(f"savepoint {name}", "keeps one version", times.get(snapshot))
        for name, snapshot in sorted(savepoints(state.tags).items())
    ]


def _last_until(history: Sequence[Snapshot], before_ms: int) -> Snapshot | None:
    """The snapshot that was current at that time; ``None`` if the table is younger."""
    return next((one for one in history if one.timestamp_ms <= before_ms), None)


def _by_id(history: Sequence[Snapshot], snapshot_id: int | None) -> Snapshot | None:
    return next((one for one in history if one.snapshot_id == snapshot_id), None)


def _older(one: Snapshot, other: Snapshot | None) -> Snapshot:
    if other is None:
        return one
    return one if one.sequence_number <= other.sequence_number else other


def _side(
    name: Name,
    state: TableState,
    keep: Snapshot | None,
    carry: dict[str, str] | None = None,
    aside: Iterable[Snapshot] = (),
) -> SidePlan:
    """The expiry of a table.

    :param keep: the oldest snapshot to keep, an ancestor of the current one.
    :param aside: other snapshots to keep. Iceberg expires a snapshot that is no ancestor by its time, too.
    """
    if keep is None:
        return _everything(name, state)
    named = {*state.branches.values(), *state.tags.values()}
    before_ms = min([oldest_of_kept(state.history(), keep), *(one.timestamp_ms for one in aside)])
    expired = [
        one for one in state.snapshots if one.timestamp_ms < before_ms and one.snapshot_id not in named
    ]
    left = len(state.snapshots) - len(expired)
    return SidePlan(name, keep, len(expired), left, carry or {} if expired else {}, before_ms)


def oldest_of_kept(history: Sequence[Snapshot], keep: Snapshot) -> int:
    """The earliest time of a snapshot and all later ones.

    Iceberg expires snapshots by time, and a later commit may have an earlier time if its host's clock is
    behind.

    :param history: newest first.
    """
    later = takewhile(lambda one: one.snapshot_id != keep.snapshot_id, history)
    return min(one.timestamp_ms for one in (keep, *later))


def _everything(name: Name, state: TableState) -> SidePlan:
    return SidePlan(name, None, 0, len(state.snapshots))


def shown_hold(hold: Hold) -> str:
    """A hold as text for messages."""
    since = ""
    if hold.since_ms is not None:
        at = dt.datetime.fromtimestamp(hold.since_ms / 1000, dt.timezone.utc)
        since = f" (from {at:%Y-%m-%d %H:%M})"
    return f"{hold.holder} {hold.why}{since}"
