"""The stages of the demo, each of which can also run by itself in a work folder that an earlier one left."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from check.compare import Comparison, compare
from check.definitions import COMPILE_ARGUMENTS, read_definitions
from check.rebuild import Rebuild
from dbt.contracts.graph.manifest import Manifest
from feed.land import Landing, LandingFolder
from feed.write import rounds_written, write_feed
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from walkthrough.dbt_process import PROJECT, Dbt
from walkthrough.lake import count_commits, size_in_megabytes
from walkthrough.report import Stage


class Walkthrough:
    """One work folder: the feed's files, the landing folder, the warehouse, and the comparisons.

    ``seconds`` are those of each phase, in the order in which they began.

    :param kafka: the broker of the topics that take the place of the landing folder; empty for none.
    """

    def __init__(self, work: Path, console: Console, *, comparing: bool, kafka: str = "") -> None:
        self.work = work
        self.feed = work / "feed"
        self.stages: list[Stage] = []
        self.seconds: dict[str, float] = {}
        self._began = time.monotonic()
        self._telling = threading.Lock()
        self._console = console
        self._comparing = comparing
        self._parsed: Manifest | None = None
        self._rebuild: Rebuild | None = None
        self._landing = _landing(self.feed, work / "landing", kafka)
        self._dbt = Dbt(work, self._show_node, self._show_message, kafka)
        self._progress: Progress | None = None

    def write_feed(self, scale: float, rounds: int) -> None:
        """Start over: an empty folder, the shop at this scale, and its rounds of changes."""
        if self.work.exists():
            shutil.rmtree(self.work)
        with self._doing(
            "generate the feed", f"Generating the shop at scale {scale}, {rounds} rounds of changes"
        ):
            write_feed(self.feed, scale=scale, rounds=rounds)
        self._landing.start_over()

    def load(self) -> None:
        self._build(0, "load", "build", "--exclude-resource-type", "test")

    def changes(self) -> None:
        """Every round of changes that has not landed yet."""
        for number in range(self._landing.last_round() + 1, rounds_written(self.feed) + 1):
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
        with self._phase("land the feed"):
            stage = Stage(name, feed_rows=self._landing.land_round(number))
        self._timed(stage, *command)
        self._finish(stage)

    def _timed(self, stage: Stage, *command: str) -> None:
        self._parse()
        commits, began = count_commits(self._dbt.warehouse), time.monotonic()
        with self._doing(stage.name, f"{stage.name}: dbt {' '.join(command)}"):
            self._dbt.invoke(*command)
        stage.seconds = time.monotonic() - began
        stage.commits = count_commits(self._dbt.warehouse) - commits

    def _finish(self, stage: Stage, *, comparing: bool = True) -> None:
        stage.megabytes = size_in_megabytes(self._dbt.warehouse)
        told = f"{stage.name}: {stage.seconds:.1f} s"
        if stage.feed_rows:
            told += f", {stage.feed_rows:,} rows of the feed"
        if comparing and self._comparing:
            began = time.monotonic()
            with self._doing(
                "compare with rebuilds", f"{stage.name}: comparing every model with a full rebuild"
            ):
                stage.comparisons = self._compare()
            stage.comparing_seconds = time.monotonic() - began
            told += f", {len(stage.comparisons)} models compared, {stage.differences} differences"
        self.stages.append(stage)
        self._tell(told)

    def _parse(self) -> Manifest:
        if self._parsed is None:
            with self._doing("parse the project", "Parsing the dbt project"):
                self._parsed = self._dbt.parse()
        return self._parsed

    def _compare(self) -> list[Comparison]:
        exported = self.work / "exported"
        rebuild, last = self._definitions(), self._landing.last_round()
        reading = ("run-operation", "export_relations", "--args", f"{{folder: '{exported}'}}")
        # DuckDB builds from the feed's files while Spark reads the warehouse.
        with ThreadPoolExecutor(max_workers=1) as beside:
            built = beside.submit(rebuild.build, last)
            self._dbt.invoke(*reading, manifest=self._parse())
            built.result()
        return compare(rebuild, exported)

    def _definitions(self) -> Rebuild:
        if self._rebuild is None:
            manifest = self._parse()
            self._dbt.compile_over(manifest, *COMPILE_ARGUMENTS)
            self._rebuild = Rebuild(self.feed, PROJECT / "seeds", read_definitions(manifest))
        return self._rebuild

    # What is shown: on a terminal a line that changes, else a line for each step.

    @contextmanager
    def _doing(self, phase: str, what: str) -> Iterator[None]:
        shown = self._console.is_terminal
        if not shown:
            self._tell(what)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[node]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console, transient=True, disable=not shown) as progress:
            self._progress = progress
            progress.add_task(what, total=None, node="")
            try:
                with self._phase(phase):
                    yield
            finally:
                self._progress = None

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - began

    def _tell(self, text: str) -> None:
        with self._telling:  # dbt's threads report their nodes
            elapsed = time.monotonic() - self._began
            self._console.print(f"{elapsed:6.1f} s  {text}", markup=False, highlight=False, soft_wrap=True)

    def _show_node(self, name: str, place: int, total: int, seconds: float) -> None:
        if not self._console.is_terminal:
            self._tell(f"  {place} of {total}: {name}, {seconds:.1f} s")
        else:
            self._update(name, completed=place, total=total)

    def _show_message(self, message: str) -> None:
        if not self._console.is_terminal:
            self._tell(f"  {message}")
        else:
            self._update(message)

    def _update(self, node: str, *, completed: int | None = None, total: int | None = None) -> None:
        if self._progress is not None:
            for task in self._progress.task_ids:
                self._progress.update(task, completed=completed, total=total, node=node)


def _landing(feed: Path, folder: Path, kafka: str) -> Landing:
    if not kafka:
        return LandingFolder(feed, folder)
    from feed.topics import LandingTopics  # needs Kafka's client

    return LandingTopics(feed, kafka)
