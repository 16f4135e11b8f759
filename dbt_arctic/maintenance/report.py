"""Collects the data of a report from metadata.

The state and history of tables, due and finished operations, and what keeps old versions. It does not know
how the report is rendered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dbt_arctic.auto.timings import timings
from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.compaction.history import read_operations
from dbt_arctic.compaction.lag import Upstreams
from dbt_arctic.compaction.measured_durations import MeasuredDurations
from dbt_arctic.compaction.plan import Operation, most_valuable_first
from dbt_arctic.compaction.series import LagPoint, Point, lag_series, table_series
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.operations import OPERATIONS, Record
from dbt_arctic.maintenance.claims import find_claims
from dbt_arctic.maintenance.expire import find_holds
from dbt_arctic.maintenance.expire_plan import Hold
from dbt_arctic.maintenance.overview import SettingsOf, TableOverview, overview_of
from dbt_arctic.maintenance.timeline import kind_of_base, kind_of_change
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import load_base, load_change

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS
KEPT_MS = 7 * DAY_MS
"""The default of ``dbt-arctic expire --older-than``; the report lists what keeps older versions."""
MOST_SERIES = 40
"""The most tables with a history: those with the most commits. The others have only their current state."""


@dataclass(frozen=True)
class TableHistory:
    """A table over time."""

    name: Name
    points: Sequence[Point]
    lags: Sequence[LagPoint]


@dataclass(frozen=True)
class Writes:
    """The number of commits of one kind in the hour or day that starts at ``at_ms``."""

    at_ms: int
    kind: str
    count: int


@dataclass(frozen=True)
class Refreshed:
    """One refresh of an automatic model that wrote rows.

    :param changed: the number of changed upstream rows; ``None`` if unknown.
    """

    at_ms: int
    name: Name
    strategy: str
    seconds: float
    changed: int | None


@dataclass(frozen=True)
class HeldVersions:
    """A table with more versions than the policy keeps.

    :param versions: the current number of snapshots of its side tables.
    """

    name: Name
    versions: int
    holds: Sequence[Hold]


class Unreadable(NamedTuple):
    """A table that could not be read, and why. ``table`` is its dotted name."""

    table: str
    why: str


@dataclass(frozen=True)
class Report:
    """The data of the HTML report."""

    since_ms: int
    now_ms: int
    tables: Sequence[TableOverview]
    due: Sequence[Operation]
    past: Sequence[TableHistory]
    writes: Sequence[Writes]
    writes_every_ms: int
    refreshes: Sequence[Refreshed]
    operations: Sequence[Record]
    held: Sequence[HeldVersions]
    unreadable: Sequence[Unreadable]


def collect_report(
    context: Context,
    catalog_name: str,
    schemas: Sequence[str],
    operations_in: Name,
    since_ms: int,
    settings_of: SettingsOf,
    is_ours: Callable[[Name], bool],
    wanted: Callable[[Name], bool] = lambda name: True,
) -> Report:
    """Collect the data of some schemas.

    :param operations_in: any name in the schema of the operations table.
    :param is_ours: whether a plain table belongs to the project; expiry is reported only for these.
    :param wanted: whether the report includes a table.
    """
    catalog, now_ms = context.catalog, context.now_ms()
    seen = [
        one for one in overview_of(catalog, catalog_name, schemas, now_ms, settings_of) if wanted(one.name)
    ]
    unreadable = [Unreadable(one.name.dotted, one.problem) for one in seen if one.status is None]
    sides: dict[Name, tuple[TableState, TableState | None]] = {}
    for one in seen:
        try:
            found = _sides(catalog, one)
        except ArcticError as error:
            unreadable.append(Unreadable(one.name.dotted, error.what))
            continue
        if found is not None:
            sides[one.name] = found
    try:
        records = read_operations(catalog, operations_in)
    except ArcticError as error:
        records = []
        unreadable.append(Unreadable(operations_in.sibling(OPERATIONS).dotted, error.what))
    experience = MeasuredDurations(records)
    governed = {one.name: sides[one.name] for one in seen if one.name in sides and _has_policy(one, is_ours)}
    held = _held(context, catalog_name, governed, now_ms, unreadable)
    commits = [one for both in sides.values() for side in both if side for one in side.snapshots]
    first_ms = min((one.timestamp_ms for one in commits if one.timestamp_ms >= since_ms), default=now_ms)
    every_ms = _every_ms(now_ms - first_ms)
    return Report(
        since_ms=since_ms,
        now_ms=now_ms,
        tables=seen,
        due=most_valuable_first(experience.applied([operation for one in seen for operation in one.due])),
        past=_past(catalog, seen, sides, since_ms, now_ms),
        writes=_writes(sides, since_ms, every_ms),
        writes_every_ms=every_ms,
        refreshes=_refreshes(sides, since_ms),
        operations=[one for one in records if one.at_ms >= since_ms and _is_of(one, wanted)],
        held=held,
        unreadable=unreadable,
    )


def _sides(catalog: CatalogReader, seen: TableOverview) -> tuple[TableState, TableState | None] | None:
    if seen.status is None:
        return None
    table = seen.status.table
    if table is not None:
        return load_base(catalog, table), load_change(catalog, table)
    state = catalog.of(seen.name).load_table(seen.name.schema, seen.name.identifier)
    return None if state is None else (state, None)


def _past(
    catalog: CatalogReader,
    seen: Sequence[TableOverview],
    sides: dict[Name, tuple[TableState, TableState | None]],
    since_ms: int,
    now_ms: int,
) -> list[TableHistory]:
    def commits(name: Name) -> int:
        return sum(len(side.snapshots) for side in sides[name] if side is not None)

    upstreams = Upstreams(catalog)
    tables = {one.name: one.status.table for one in seen if one.status is not None}
    chosen = sorted(sides, key=lambda name: (-commits(name), name))[:MOST_SERIES]
    found = []
    for name in sorted(chosen):
        base, change = sides[name]
        points = table_series(name, tables[name], base, change, since_ms, now_ms)
        lags = lag_series(upstreams, base if change is None else change, since_ms, now_ms)
        found.append(TableHistory(name, points, lags))
    return found


def _writes(
    sides: dict[Name, tuple[TableState, TableState | None]], since_ms: int, every_ms: int
) -> list[Writes]:
    counts: Counter[tuple[int, str]] = Counter()
    for base, change in sides.values():
        kinds = [
            (one.timestamp_ms, "write" if change is None else kind_of_base(one))
            for one in base.history()
            # The base was filled before the table became visible. The change table's first commit represents
            # the build.
            if change is None or one.parent_id is not None
        ]
        kinds += [(one.timestamp_ms, kind_of_change(one)) for one in (change.history() if change else [])]
        for at_ms, kind in kinds:
            if at_ms >= since_ms:
                counts[at_ms // every_ms * every_ms, _plain(kind)] += 1
    return [Writes(at_ms, kind, count) for (at_ms, kind), count in sorted(counts.items())]


def _refreshes(sides: dict[Name, tuple[TableState, TableState | None]], since_ms: int) -> list[Refreshed]:
    """Oldest first."""
    found = []
    for name, (_, change) in sides.items():
        for commit in change.history() if change else []:
            if commit.timestamp_ms >= since_ms:
                for one in timings([commit]):
                    at_ms = commit.timestamp_ms
                    found.append(Refreshed(at_ms, name, one.strategy, one.seconds, one.changed))
    return sorted(found, key=lambda one: (one.at_ms, one.name))


def _every_ms(length_ms: int) -> int:
    """The length of an interval, so that a chart has a few dozen columns at most."""
    if length_ms > 2 * DAY_MS:
        return DAY_MS
    return HOUR_MS if length_ms > 4 * HOUR_MS else HOUR_MS // 12


def _plain(kind: str) -> str:
    """The kind of a commit, without details that differ from commit to commit.

    >>> _plain("compaction of 4"), _plain("rollback to 1.2.3"), _plain("append a to b"), _plain("manual")
    ('compaction', 'rollback', 'append', 'manual')
    """
    return next((one for one in ("compaction", "rollback", "append") if kind.startswith(f"{one} ")), kind)


def _is_of(record: Record, wanted: Callable[[Name], bool]) -> bool:
    return record.table_name.count(".") >= 2 and wanted(_name(record.table_name))


def _name(dotted: str) -> Name:
    catalog, schema, identifier = dotted.split(".", 2)
    return Name(catalog, schema, identifier)


def _has_policy(seen: TableOverview, is_ours: Callable[[Name], bool]) -> bool:
    return seen.status is not None and (seen.status.table is not None or is_ours(seen.name))


def _held(
    context: Context,
    catalog_name: str,
    tables: Mapping[Name, tuple[TableState, TableState | None]],
    now_ms: int,
    unreadable: list[Unreadable],
) -> list[HeldVersions]:
    claims = find_claims(context.catalog, catalog_name)
    found = []
    for name, sides in tables.items():
        try:
            holds = find_holds(context, name, claims, now_ms - KEPT_MS)
        except ArcticError as error:
            unreadable.append(Unreadable(name.dotted, error.what))
            continue
        if holds:
            found.append(
                HeldVersions(name, sum(len(side.snapshots) for side in sides if side is not None), holds)
            )
    return found
