"""The report at the end: a line for each stage, each difference, and the last line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from check.compare import Comparison
from rich.console import Console
from rich.table import Table


@dataclass
class Stage:
    """What one stage did; ``comparisons`` is empty where nothing was compared.

    :param seconds: those of the dbt command.
    """

    name: str
    feed_rows: int = 0
    seconds: float = 0.0
    comparing_seconds: float = 0.0
    commits: int = 0
    megabytes: float = 0.0
    comparisons: list[Comparison] = field(default_factory=list)

    @property
    def differences(self) -> int:
        return sum(comparison.differences for comparison in self.comparisons)


def print_stages(console: Console, stages: list[Stage]) -> None:
    table = Table(title="What happened", title_justify="left")
    table.add_column("stage", no_wrap=True)
    for heading in ("rows fed", "seconds", "commits", "MB", "compared", "differences"):
        table.add_column(heading, justify="right", no_wrap=True)
    for stage in stages:
        compared = str(len(stage.comparisons)) if stage.comparisons else "-"
        differing = str(stage.differences) if stage.comparisons else "-"
        figures = (
            f"{stage.feed_rows:,}",
            f"{stage.seconds:.1f}",
            str(stage.commits),
            f"{stage.megabytes:.1f}",
        )
        table.add_row(stage.name, *figures, compared, differing)
    console.print(table)


def print_phases(console: Console, seconds: dict[str, float]) -> None:
    """Where the time went."""
    table = Table(title="Where the time went", title_justify="left")
    table.add_column("phase", no_wrap=True)
    for heading in ("seconds", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    whole = sum(seconds.values())
    for phase, taken in seconds.items():
        table.add_row(phase, f"{taken:.1f}", f"{taken / whole:.0%}" if whole else "-")
    console.print(table)


def print_next(console: Console, project: Path, work: Path, kafka: str) -> None:
    """Commands to go on with, over the warehouse that the demo leaves."""
    lines = [
        "What to try next, in this shop:",
        f"  source {_relative(Path(sys.prefix))}/bin/activate; cd {_relative(project)}",
        f"  export SHOP_DIR={work}" + (f" SHOP_KAFKA={kafka}" if kafka else ""),
        "  dbt-arctic server start                        a Spark that stays: commands start at once",
        "  dbt-arctic plan dws_sales_by_day --sql         how the next change reaches a model",
        "  dbt-arctic show shop_dws.dws_sales_by_day      its rows, without Spark",
        "  dbt show --inline \"select * from {{ ref('ads_best_customers') }}\"",
        "  dbt-arctic ingest plan                         what the next run loads: nothing is new",
        "  dbt build                                      nothing has changed: keyed tables are skipped",
        "  dbt-arctic report                              the tables as a page of charts",
    ]
    if kafka:  # the server would not have Kafka's connector: the profile has no settings of Kafka
        del lines[3]
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _relative(folder: Path) -> Path:
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def print_differences(console: Console, stages: list[Stage]) -> None:
    for stage in stages:
        for one in stage.comparisons:
            if one.differences:
                what = one.problem or f"{one.wrong} rows too many, {one.missing} rows missing, of {one.rows}"
                console.print(f"after {stage.name}: {one.name} differs from its rebuild: {what}", style="red")


def write_report(path: Path, stages: list[Stage]) -> None:
    """The same for programs: a JSON list with an object for each stage."""
    path.write_text(json.dumps([asdict(stage) for stage in stages], indent=2) + "\n", encoding="utf-8")


def last_line(stages: list[Stage], rounds: int, seconds: float) -> str:
    models = len({one.name for stage in stages for one in stage.comparisons})
    differences = sum(stage.differences for stage in stages)
    return f"demo: {rounds} rounds, {models} models, {differences} differences, {seconds:.0f} seconds"
