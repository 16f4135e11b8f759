"""The stages of the demo, each of which can also run by itself in a work folder that an earlier one left."""

from __future__ import annotations

import shutil
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from check.compare import Comparison, compare
from check.definitions import COMPILE_ARGUMENTS, read_definitions
from check.rebuild import Rebuild
from feed.land import land_round, last_landed_round
from feed.write import rounds_written, write_feed
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from walkthrough.dbt_process import PROJECT, Dbt
from walkthrough.lake import count_commits, size_in_megabytes
from walkthrough.report import Stage


class Walkthrough:
    """One work folder: the feed's files, the warehouse, and the comparisons."""

    def __init__(self, work: Path, console: Console, *, comparing: bool) -> None:
        self.work = work
        self.feed = work / "feed"
        self.stages: list[Stage] = []
        self._console = console
        self._comparing = comparing
        self._rebuild: Rebuild | None = None
        self._dbt = Dbt(work, self._show_node)
        self._progress: Progress | None = None

    def write_feed(self, scale: float, rounds: int) -> None:
        """Start over: an empty folder, the shop at this scale, and its rounds of changes."""
        if self.work.exists():
            shutil.rmtree(self.work)
        with self._doing(f"Generating the shop at scale {scale} and {rounds} rounds of changes"):
            write_feed(self.feed, scale=scale, rounds=rounds)

    def load(self) -> None:
        self._build(0, "load", "build", "--exclude-resource-type", "test")

    def changes(self) -> None:
        """Every round of changes that has not landed yet."""
        for number in range(last_landed_round(self._dbt.warehouse) + 1, rounds_written(self.feed) + 1):
            self._build(number, f"round {number}", "build", "--exclude-resource-type", "test", "seed")

    def compact(self) -> None:
        stage = Stage("compaction")
        self._timed(stage, "run-operation", "compact")
        self._finish(stage)

    def test(self) -> None:
        """The project's own data tests, on what all stages left."""
        stage = Stage("tests")
        self._timed(stage, "test")
        self._finish(stage, comparing=False)

    def compare_only(self) -> None:
        """Compare what is there now."""
        self._finish(Stage("comparison"))

    def _build(self, number: int, name: str, *command: str) -> None:
        stage = Stage(name, feed_rows=land_round(self.feed, self._dbt.warehouse, number))
        self._timed(stage, *command)
        self._finish(stage)

    def _timed(self, stage: Stage, *command: str) -> None:
        commits, began = count_commits(self._dbt.warehouse), time.monotonic()
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[node]}"),
            TimeElapsedColumn(),
        )
        shown = self._console.is_terminal
        if not shown:
            self._console.print(f"{stage.name}: dbt {' '.join(command)}", highlight=False)
        with Progress(*columns, console=self._console, transient=True, disable=not shown) as progress:
            self._progress = progress
            progress.add_task(f"{stage.name}: dbt {' '.join(command)}", total=None, node="")
            self._dbt.invoke(*command)
        self._progress = None
        stage.seconds = time.monotonic() - began
        stage.commits = count_commits(self._dbt.warehouse) - commits

    def _finish(self, stage: Stage, *, comparing: bool = True) -> None:
        stage.megabytes = size_in_megabytes(self._dbt.warehouse)
        told = f"{stage.name}: {stage.seconds:.1f} s"
        if stage.feed_rows:
            told += f", {stage.feed_rows:,} rows of the feed"
        if comparing and self._comparing:
            with self._doing(f"{stage.name}: comparing every model with a full rebuild"):
                stage.comparisons = self._compare()
            told += f", {len(stage.comparisons)} models compared, {stage.differences} differences"
        self.stages.append(stage)
        self._console.print(told)

    def _compare(self) -> list[Comparison]:
        exported = self.work / "exported"
        if self._rebuild is None:
            self._dbt.invoke(*COMPILE_ARGUMENTS, purpose="rebuild")
            definitions = read_definitions(self._dbt.target("rebuild") / "manifest.json")
            self._rebuild = Rebuild(self.feed, PROJECT / "seeds", definitions)
        self._dbt.invoke("run-operation", "export_relations", "--args", f"{{folder: '{exported}'}}")
        self._rebuild.build(last_landed_round(self._dbt.warehouse))
        return compare(self._rebuild, exported)

    def _doing(self, what: str) -> AbstractContextManager[object]:
        """What is at work now: a spinner on a terminal, else a line."""
        if self._console.is_terminal:
            return self._console.status(what)
        self._console.print(what, highlight=False)
        return nullcontext()

    def _show_node(self, name: str, place: int, total: int) -> None:
        if not self._console.is_terminal:
            self._console.print(f"  {place} of {total}: {name}", highlight=False)
        elif self._progress is not None:
            for task in self._progress.task_ids:
                self._progress.update(task, completed=place, total=total, node=name)
