"""Time series of the measures of a table, as far back as its logs reach.

Uses the logs alone and reads no manifest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from dbt_arctic.catalog.api import CatalogReader, PlacedFile, TableState
from dbt_arctic.compaction.lag import Upstreams
from dbt_arctic.compaction.metrics import TARGET_FILE_BYTES
from dbt_arctic.compaction.status import measure_keyed, measure_plain
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import PROPERTY_CONSUMED

MOST_POINTS = 60
"""Maximum number of points per table, since a chart cannot show more."""


@dataclass(frozen=True)
class Point:
    """The state of a table from one point in time until the next. ``None`` if the log for it has expired."""

    at_ms: int
    pending_rows: int | None
    pending_ratio: float | None
    read_cost: float
    files: int
    size_bytes: int


@dataclass(frozen=True)
class LagPoint:
    """The lag of a table. It grows linearly between two points. ``None`` if unknown."""

    at_ms: int
    seconds: float | None


def state_at(state: TableState, time_ms: int) -> TableState | None:
    """The state of a table at a point in time; ``None`` if it has expired."""
    newest = next((one for one in state.history() if one.timestamp_ms <= time_ms), None)
    if newest is None:
        return None
    known = tuple(one for one in state.snapshots if one.sequence_number <= newest.sequence_number)
    return replace(state, snapshots=known, current_snapshot_id=newest.snapshot_id)


def table_series(
    name: Name,
    table: KeyedTable | None,
    base: TableState,
    change: TableState | None,
    since_ms: int,
    now_ms: int,
    target_bytes: int = TARGET_FILE_BYTES,
    most: int = MOST_POINTS,
) -> list[Point]:
    """The history of a table's size, files and pending changes as time series.

    :param table: the keyed table; ``None`` for a plain one.
    :param change: the state of its change table; ``None`` for a plain one.
    :param most: the maximum number of points. If there are more commits, some are omitted.
    """
    sides = [base] if change is None else [base, change]
    times = {one.timestamp_ms for side in sides for one in side.history() if one.timestamp_ms > since_ms}
    moments = [since_ms, *_some(sorted(times), most - 2), now_ms]

    def point(at_ms: int) -> Point | None:
        found = [then for side in sides if (then := state_at(side, at_ms)) is not None]
        return None if len(found) < len(sides) else _point(name, table, found, at_ms, target_bytes)

    return [made for at_ms in moments if (made := point(at_ms)) is not None]


def lag_series(
    upstreams: Upstreams, state: TableState, since_ms: int, now_ms: int, most: int = MOST_POINTS
) -> list[LagPoint]:
    """The lag of the table with this state (for a keyed table, the state of its change table).

    Of several upstreams, the oldest commit that was not consumed counts.
    """
    consuming = [one for one in state.history() if PROPERTY_CONSUMED in one.summary]
    times = sorted(one.timestamp_ms for one in consuming if one.timestamp_ms > since_ms)
    moments = [since_ms]
    for at_ms in _some(times, most // 3):
        moments += [at_ms - 1, at_ms]
    points: list[LagPoint] = []
    for at_ms in [*(one for one in moments if one >= since_ms), now_ms]:
        then = state_at(state, at_ms)
        lags = [] if then is None else upstreams.lags(then, at_ms)
        if not lags:
            continue
        if any(lag.lost for lag in lags):
            points.append(LagPoint(at_ms, None))
            continue
        began = min((lag.since_ms for lag in lags if lag.since_ms is not None), default=None)
        if began is not None and points and points[-1].at_ms < began < at_ms:
            points.append(LagPoint(began, 0.0))
        points.append(LagPoint(at_ms, 0.0 if began is None else (at_ms - began) / 1000))
    return points


def _some(times: list[int], most: int) -> list[int]:
    """A limited number of times, evenly spread by index, including the newest.

    >>> _some([1, 2, 3, 4, 5, 6, 7], 3)
    [1, 4, 7]
    """
    if len(times) <= most:
        return times
    return [times[round(place * (len(times) - 1) / (most - 1))] for place in range(most)]


class _LogsOnly:
    """A catalog without manifests for the measures. It records whether manifests were requested."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    def of(self, name: Name) -> _LogsOnly:
        return self

    def placed_files(self, schema: str, name: str, snapshot_id: int, column: str = "") -> list[PlacedFile]:
        self.requested.append(column)
        return []


def _point(
    name: Name, table: KeyedTable | None, sides: Sequence[TableState], at_ms: int, target_bytes: int
) -> Point | None:
    logs = _LogsOnly()
    catalog = cast(CatalogReader, logs)
    if table is None:
        status = measure_plain(catalog, name, sides[0], at_ms, target_bytes)
    else:
        status = measure_keyed(
            catalog, table, sides[0], sides[1], at_ms, target_bytes=target_bytes, markers_lost=False
        )
    if "" in logs.requested:
        return None  # the summary lacks the totals, so the measures are unknown
    known = not logs.requested
    return Point(
        at_ms=at_ms,
        pending_rows=status.pending.rows if known else None,
        pending_ratio=status.pending_ratio if known else None,
        read_cost=status.read_amplification,
        files=status.files,
        size_bytes=status.size_bytes,
    )
