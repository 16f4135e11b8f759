"""Selects the charts of a report and prepares their data. Has no side effects apart from drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from dbt_arctic.adapter.run_results import RunResults
from dbt_arctic.cli.charts import DAY_MS, HOUR_MS, Artist, Chart
from dbt_arctic.cli.output import shown_names, shown_time
from dbt_arctic.compaction.run import FAILED
from dbt_arctic.compaction.series import Point
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.report import Report

MOST_LINES = 6
"""The most lines in one chart; those with the highest peaks are shown."""
MOST_MODELS = 15
MOST_GAINS = 12
_UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))
_SIZES = ((1024**4, "TB"), (1024**3, "GB"), (1024**2, "MB"), (1024, "kB"), (1, "bytes"))
_FRACTION = ",.2~f"
"""The format of numbers that may be less than one. The SI format of others would write ``500m`` for half a
second."""
Rows = list[dict[str, Any]]


def charts_of(report: Report, results: RunResults | None) -> list[Chart]:
    """The charts of a report, without those that have no data."""
    artist = Artist(_first_time(report), report.now_ms)
    found = []
    pending = _over_time(report, lambda point: point.pending_rows)
    if any(row["value"] for row in pending):
        found.append(artist.lines("Pending", "Rows not yet merged into the base.", pending, format="~s"))
    behind = _highest(
        report, ((past.name, [(lag.at_ms, lag.seconds) for lag in past.lags]) for past in report.past)
    )
    if longest := max((row["value"] or 0 for row in behind), default=0):
        size, unit = next(one for one in _UNITS if longest >= one[0] * 2 or one[0] == 1)
        scaled = [
            {**row, "value": row["value"] if row["value"] is None else row["value"] / size} for row in behind
        ]
        description = f"Age of the oldest upstream commit that was not yet read, in {unit}."
        found.append(artist.lines("Lag", description, scaled, format=_FRACTION, steps=False))
    if cost := _over_time(report, lambda point: point.read_cost):
        description = "The cost of a read, relative to a read of freshly compacted files."
        found.append(artist.lines("Read amplification", description, cost, format=".1~f"))
    if report.operations:
        description = "Compaction operations over time. A larger dot took longer."
        found.append(artist.dots("Operations", description, _operations(report)))
    if gains := _gains(report):
        description = "Read amplification before the newest operations, and after them (dot)."
        found.append(artist.spans("Gain", description, gains, format=".1~f"))
    if files := _over_time(report, lambda point: point.files):
        found.append(artist.lines("Files", "Data files in base and change table.", files, format="~s"))
        found.append(_sizes(artist, report))
    if report.writes:
        every, unit_of_time = _every(report.writes_every_ms)
        counts = [{"at": one.at_ms, "value": one.count, "name": one.kind} for one in report.writes]
        found.append(artist.columns("Commits", f"To all tables, {every}.", counts, unit=unit_of_time))
    if strategies := _strategies(report):
        description = (
            "Refreshes of automatic models. A larger dot took longer; skipped refreshes have no dot."
        )
        found.append(artist.dots("Strategies", description, strategies))
    if results is not None and results.refreshes:
        description = f"Refresh strategy and seconds of each model in the last dbt {results.command}."
        found.append(artist.bars("Refreshes", description, _refreshes(results), format=_FRACTION))
    return found


def _sizes(artist: Artist, report: Report) -> Chart:
    """The sizes in the unit of the largest one."""
    rows = _over_time(report, lambda point: point.size_bytes)
    largest = max(row["value"] for row in rows)
    size, unit = next(one for one in _SIZES if largest >= one[0] or one[0] == 1)
    scaled = [{**row, "value": row["value"] / size} for row in rows]
    return artist.lines("Size", f"Size of the newest version, in {unit}.", scaled, format=_FRACTION)


def _first_time(report: Report) -> int:
    """The time of the first data point, so that charts do not start with an empty period."""
    known = [point.at_ms for past in report.past for point in past.points]
    known += [one.at_ms for one in report.operations]
    return min(known, default=report.since_ms)


def _every(length_ms: int) -> tuple[str, dict[str, Any]]:
    if length_ms >= DAY_MS:
        return "per day", {"unit": "utcyearmonthdate"}
    if length_ms >= HOUR_MS:
        return "per hour", {"unit": "utcyearmonthdatehours"}
    return "per five minutes", {"unit": "utcyearmonthdatehoursminutes", "step": 5}


def _over_time(report: Report, value: Callable[[Point], float | None]) -> Rows:
    return _highest(
        report, ((past.name, [(point.at_ms, value(point)) for point in past.points]) for past in report.past)
    )


def _labels(report: Report) -> dict[str, str]:
    """Labels of tables by dotted name: the identifier, unless two tables share it."""
    names = {past.name for past in report.past} | {one.name for one in report.refreshes}
    names |= {Name(*one.table_name.split(".", 2)) for one in report.operations}
    shown, count = shown_names(names), Counter(name.identifier for name in names)
    return {name.dotted: shown[name] if count[name.identifier] > 1 else name.identifier for name in names}


def _highest(report: Report, series: Iterable[tuple[Name, list[tuple[int, float | None]]]]) -> Rows:
    """The rows of the lines with the highest peaks, the highest first."""
    peaks = [
        (max(known), name, points)
        for name, points in series
        if (known := [value for _, value in points if value is not None])
    ]
    peaks.sort(key=lambda one: (-one[0], one[1]))
    labels = _labels(report)
    return [
        {"at": at_ms, "value": value, "name": labels[name.dotted]}
        for _, name, points in peaks[:MOST_LINES]
        for at_ms, value in points
    ]


def _operations(report: Report) -> Rows:
    labels = _labels(report)
    return [
        {
            "at": one.at_ms,
            "row": labels[one.table_name],
            "name": FAILED if one.outcome == FAILED else one.kind,
            "value": one.seconds,
            "description": f"{one.kind} of {one.table_name}: {one.outcome}, {one.seconds:.1f} s, {one.why}",
        }
        for one in report.operations
    ]


def _gains(report: Report) -> Rows:
    newest = [one for one in report.operations if one.outcome != FAILED and one.read_cost_before][:MOST_GAINS]
    labels = _labels(report)
    return [
        {
            "row": f"{shown_time(one.at_ms)[11:19]} {labels[one.table_name]}",
            "name": one.kind,
            "before": one.read_cost_before,
            "value": one.read_cost_after,
            "description": f"{one.read_cost_before:.1f} to {one.read_cost_after:.1f} in {one.seconds:.1f} s",
        }
        for one in newest
    ]


def _strategies(report: Report) -> Rows:
    """The refreshes of the models with the most refreshes."""
    often = Counter(one.name for one in report.refreshes).most_common(MOST_MODELS)
    shown, labels = {name for name, _ in often}, _labels(report)
    return [
        {
            "at": one.at_ms,
            "row": labels[one.name.dotted],
            "name": one.strategy,
            "value": one.seconds,
            "description": f"{one.strategy} refresh of {one.name.dotted}, {one.seconds:.1f} s"
            + (f", {counted(one.changed, 'changed row')}" if one.changed is not None else ""),
        }
        for one in report.refreshes
        if one.name in shown
    ]


def _refreshes(results: RunResults) -> Rows:
    slowest = sorted(results.refreshes, key=lambda one: -one.seconds)[:MOST_MODELS]
    return [
        {
            "row": one.model,
            "value": one.seconds,
            "name": one.strategy or (one.status if one.status != "success" else "not automatic"),
            "description": f"{one.model}: {one.strategy or one.status}, {one.seconds:.1f} s",
        }
        for one in slowest
    ]
