"""The page of a report: its labels, tables and charts. Has no side effects apart from reading its template.

The template escapes every text. The page contains no path of the machine and no secret.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from dbt_arctic.adapter.run_results import RunResults
from dbt_arctic.cli.lineage_picture import BOX_HEIGHT, BOX_WIDTH, lineage_picture
from dbt_arctic.cli.output import shareable
from dbt_arctic.cli.report_charts import charts_of
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.run import FAILED
from dbt_arctic.human_readable import counted, shown_bytes, shown_gain, shown_seconds
from dbt_arctic.maintenance.expire_plan import shown_hold
from dbt_arctic.maintenance.overview import TableOverview
from dbt_arctic.maintenance.report import Report

MOST_ROWS = 50
"""Maximum number of rows of a list; ``--json`` has all."""
MOST_DUE = 10
"""Maximum number of due operations, which are listed above the charts."""


@dataclass(frozen=True)
class Cell:
    """A table cell. ``colour`` is a class of the style sheet."""

    text: str
    colour: str = ""


@dataclass(frozen=True)
class Column:
    """One column of a table in the report.

    :param kind: the layout of its cells: a ``name``, a ``number``, a ``short`` or a longer ``text``.
    """

    title: str
    kind: str = "text"


@dataclass(frozen=True)
class Grid:
    """A table of the page; ``empty`` is shown if it has no rows."""

    title: str
    columns: tuple[Column, ...]
    rows: list[list[Cell]]
    empty: str
    note: str = ""


@dataclass(frozen=True)
class Card:
    """A figure at the top of the page."""

    label: str
    value: str
    detail: str = ""
    colour: str = ""


@dataclass(frozen=True)
class Page:
    """A report as an HTML page.

    :param of: project and target.
    """

    report: Report
    results: RunResults | None
    of: str

    def html(self) -> str:
        """The HTML of the page."""
        folder = jinja2.FileSystemLoader(Path(__file__).parent)
        template = jinja2.Environment(
            loader=folder, autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined
        ).get_template("report.html")
        since = self.report.since_ms
        return template.render(
            title=f"Keyed tables of {self.of}",
            subtitle=f"{minute_text(since)} to {minute_text(self.report.now_ms)}, UTC",
            cards=self.cards,
            first=[grid for grid in (self.due, self.held, self.unreadable) if grid is not None],
            lineage=lineage_picture(self.report.tables, self.report.now_ms),
            box_width=BOX_WIDTH,
            box_height=BOX_HEIGHT,
            charts=charts_of(self.report, self.results),
            last=[grid for grid in (self.tables, self.operations, self.refreshes) if grid is not None],
            footer="Created by dbt-arctic report from metadata. Read costs and future times are estimates.",
        )

    @cached_property
    def readable(self) -> list[TableOverview]:
        """The tables that could be read."""
        return [seen for seen in self.report.tables if seen.status is not None]

    @property
    def cards(self) -> list[Card]:
        """The figures at the top of the page."""
        statuses = [seen.status for seen in self.readable if seen.status is not None]
        pending = [one for one in statuses if one.pending.rows]
        slowest = max(statuses, key=lambda one: one.read_amplification, default=None)
        done = self.report.operations
        failed = sum(one.outcome == FAILED for one in done)
        due = self.report.due
        broken = len(self.report.tables) - len(self.readable)
        size = shown_bytes(sum(one.size_bytes for one in statuses))
        return [
            Card(
                "Tables",
                f"{len(self.readable):,}",
                f"{counted(sum(one.base.live_rows for one in statuses), 'row')}, {size}"
                + (f"; {counted(broken, 'table')} cannot be read" if broken else ""),
                "bad" if broken else "",
            ),
            Card(
                "Pending rows",
                f"{sum(one.pending.rows for one in pending):,}",
                f"in {counted(len(pending), 'table')}" if pending else "all changes are merged",
            ),
            Card(
                "Due now",
                str(len(due)) if due else "nothing",
                f"about {shown_seconds(sum(one.cost_s for one in due))} of work" if due else "",
                "warn" if due else "good",
            ),
            Card(
                "Slowest read",
                f"{slowest.read_amplification:.1f} x" if slowest else "",
                f"a freshly compacted table: {_short(slowest.name.dotted)}" if slowest else "",
                "warn" if slowest and slowest.read_amplification >= 2 else "",
            ),
            self._furthest_behind(),
            Card(
                "Compaction",
                f"{len(done):,}",
                f"{'operation' if len(done) == 1 else 'operations'} in "
                f"{shown_seconds(sum(one.seconds for one in done))}, {failed or 'none'} failed",
                "bad" if failed else "",
            ),
        ]

    def _furthest_behind(self) -> Card:
        title = "Furthest behind"
        since = {
            seen.name: min((lag.since_ms for lag in seen.lags if lag.since_ms is not None), default=None)
            for seen in self.readable
        }
        waiting = {name: at for name, at in since.items() if at is not None}
        broken = (seen.name for seen in self.report.tables if seen.status is None)
        lost = next(
            (seen.name for seen in self.readable for lag in seen.lags if lag.lost), next(broken, None)
        )
        if not waiting and lost is not None:
            return Card(title, "?", f"unknown for {_short(lost.dotted)}", "warn")
        if not waiting:
            return Card(title, "none", "all commits of upstream tables have been read", "good")
        name = min(waiting, key=lambda one: waiting[one])
        return Card(title, shown_seconds((self.report.now_ms - waiting[name]) / 1000), _short(name.dotted))

    @property
    def due(self) -> Grid:
        """The due operations."""
        left_out = len(self.report.due) - MOST_DUE
        more = f" {left_out} more: dbt-arctic compact --plan." if left_out > 0 else ""
        return Grid(
            "Due now",
            (
                Column("kind", "short"),
                Column("table", "name"),
                Column("why"),
                Column("scope", "short"),
                Column("estimated time", "number"),
                Column("saved per read", "number"),
            ),
            [self._due_row(one) for one in self.report.due[:MOST_DUE]],
            "Nothing is due.",
            "In the order in which dbt-arctic compact runs them." + more if self.report.due else "",
        )

    def _due_row(self, one: Operation) -> list[Cell]:
        return [
            Cell(one.kind),
            Cell(_short(one.name.dotted)),
            Cell(one.why),
            Cell(one.scope),
            Cell(shown_seconds(one.cost_s)),
            Cell(shown_gain(one.gain_s)),
        ]

    @property
    def held(self) -> Grid:
        """The tables with versions that something keeps."""
        return Grid(
            "What keeps old versions",
            (Column("table", "name"), Column("versions", "number"), Column("kept by")),
            [
                [
                    Cell(_short(held.name.dotted)),
                    Cell(f"{held.versions:,}"),
                    Cell("; ".join(shareable(shown_hold(hold)) for hold in held.holds)),
                ]
                for held in self.report.held
            ],
            "Nothing keeps versions older than seven days.",
        )

    @property
    def unreadable(self) -> Grid | None:
        """The tables that could not be read; ``None`` if there are none."""
        rows = [[Cell(_short(one.table)), Cell(shareable(one.why), "bad")] for one in self.report.unreadable]
        columns = (Column("table", "name"), Column("problem"))
        note = "dbt-arctic verify shows how to repair them."
        return Grid("Unreadable tables", columns, rows, "", note) if rows else None

    @property
    def tables(self) -> Grid:
        """All tables."""
        return Grid(
            "Tables",
            (
                Column("table", "name"),
                *(Column(title, "number") for title in ("rows", "files", "size", "pending", "read cost")),
                Column("behind", "short"),
                Column("due"),
                *([Column("verified")] if self._has_verified else []),
            ),
            [self._table_row(seen) for seen in self.readable],
            "There are no tables yet.",
        )

    def _table_row(self, seen: TableOverview) -> list[Cell]:
        one = seen.status
        assert one is not None
        lost = [lag for lag in seen.lags if lag.lost]
        oldest = min((lag.since_ms for lag in seen.lags if lag.since_ms is not None), default=None)
        behind = "" if oldest is None else shown_seconds((self.report.now_ms - oldest) / 1000)
        return [
            Cell(_short(one.name.dotted)),
            Cell(f"{one.base.live_rows:,}"),
            Cell(f"{one.files:,}"),
            Cell(shown_bytes(one.size_bytes)),
            Cell(f"{one.pending.rows:,} ({one.pending_ratio:.0%})" if one.pending.rows else ""),
            Cell(f"{one.read_amplification:.1f} x", "warn" if one.read_amplification >= 2 else ""),
            Cell(f"? {shareable(lost[0].lost)}" if lost else behind),
            Cell(", ".join(operation.kind for operation in seen.due)),
            *([self._verified(seen)] if self._has_verified else []),
        ]

    @property
    def _has_verified(self) -> bool:
        return any(seen.verified is not None for seen in self.readable)

    def _verified(self, seen: TableOverview) -> Cell:
        """The last verification of a table's refresh."""
        differs = seen.verified is not None and seen.verified.result == "different"
        return Cell(shareable(seen.shown_verification), "bad" if differs and not seen.is_repaired else "")

    @property
    def operations(self) -> Grid:
        """The finished operations."""
        shown = self.report.operations[:MOST_ROWS]
        left_out = len(self.report.operations) - len(shown)
        return Grid(
            "Compaction history",
            (
                Column("time (UTC)", "short"),
                Column("kind", "short"),
                Column("table", "name"),
                Column("why"),
                Column("outcome"),
                Column("estimated", "number"),
                Column("took", "number"),
                Column("read cost", "number"),
                Column("files", "number"),
            ),
            [
                [
                    Cell(minute_text(one.at_ms)),
                    Cell(one.kind),
                    Cell(_short(one.table_name)),
                    Cell(one.why),
                    _outcome(one.outcome, one.detail),
                    Cell(f"{one.estimated_s:.1f} s"),
                    Cell(f"{one.seconds:.1f} s"),
                    *(Cell(text) for text in _before_and_after(one)),
                ]
                for one in shown
            ],
            "No compaction ran in this period.",
            f"{left_out} more: dbt-arctic report --json" if left_out else "",
        )

    @property
    def refreshes(self) -> Grid | None:
        """The refreshes of the last dbt command; ``None`` if there are none."""
        results = self.results
        if results is None:
            return None
        return Grid(
            f"The last dbt {results.command}",
            (
                Column("model", "name"),
                Column("outcome", "short"),
                Column("refresh", "short"),
                Column("why"),
                Column("keys", "number"),
                Column("rows", "number"),
                Column("read", "number"),
                Column("took", "number"),
            ),
            [
                [
                    Cell(one.model),
                    Cell(one.status, "" if one.status in ("success", "skipped") else "bad"),
                    Cell(one.strategy, "warn" if one.strategy == "full" else ""),
                    Cell(shareable(one.reason)),
                    Cell("" if one.keys is None else f"{one.keys:,}"),
                    Cell("" if one.rows is None else f"{one.rows:,}"),
                    Cell("" if one.bytes_read is None else shown_bytes(one.bytes_read)),
                    Cell(f"{one.seconds:.1f} s"),
                ]
                for one in results.refreshes
            ],
            "It ran no models.",
            f"Ended {results.at[:19].replace('T', ' ')} UTC after {shown_seconds(results.seconds)}.",
        )


def _outcome(outcome: str, detail: str) -> Cell:
    if outcome == FAILED:
        return Cell(f"{outcome}: {shareable(detail.partition(chr(10))[0])}", "bad")
    return Cell(f"{outcome}: {detail}" if detail else outcome)


class _BeforeAndAfter(NamedTuple):
    """The effect of an operation, as text."""

    read_cost: str
    files: str


def _before_and_after(one: Any) -> _BeforeAndAfter:
    if one.outcome == FAILED:
        return _BeforeAndAfter("", "")
    return _BeforeAndAfter(
        f"{one.read_cost_before:.1f} → {one.read_cost_after:.1f}",
        f"{one.files_before:,} → {one.files_after:,}",
    )


def minute_text(time_ms: int) -> str:
    """A time in UTC, to the minute.

    >>> minute_text(90_000)
    '1970-01-01 00:01'
    """
    return f"{dt.datetime.fromtimestamp(time_ms / 1000, dt.timezone.utc):%Y-%m-%d %H:%M}"


def _short(dotted: str) -> str:
    """The name without its catalog, since a target has only one."""
    return dotted.partition(".")[2] or dotted
