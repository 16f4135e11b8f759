"""One peer with one story: is it there already, else carried out, and was everything found that must be."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.peers.data import Expected, expected_key
from benchmarks.peers.environment import EnvironmentMissing, python_for
from benchmarks.peers.files import Files
from benchmarks.peers.hardware import machine_text
from benchmarks.peers.order import WorkOrder
from benchmarks.peers.peer import Machine
from benchmarks.peers.process import carry_out
from benchmarks.peers.report import ProcessReport, read_lines
from benchmarks.peers.roster import peer_class
from benchmarks.peers.story import Story


@dataclass(frozen=True)
class Run:
    """:param wrong: where a peer found other rows than it must.
    :param measured: when, and on what machine.
    """

    peer: str
    story: Story
    repeat: int
    told: ProcessReport
    wrong: list[str] = field(default_factory=list)
    measured: str = ""

    @property
    def failed(self) -> str | None:
        return self.told.error or (self.wrong[0] if self.wrong else None)


def differences(told: ProcessReport, expected: Expected) -> list[str]:
    """The differences from the expected values. A value without an expected one is no difference."""
    wrong = []
    for check in told.checks:
        wanted = expected.get(expected_key(check.number, check.what))
        if wanted is not None and wanted != check.values:
            wrong.append(f"after round {check.number}, {check.what}: {check.values} instead of {wanted}")
    return wrong


@dataclass(frozen=True)
class Runner:
    """:param folder: contains data, environments, reports, and tables while they are needed.
    :param timeout_s: of one process.
    """

    folder: Path
    machine: Machine
    buckets: int
    java_home: str
    timeout_s: float
    tell: Callable[[str], None]

    @property
    def files(self) -> Files:
        return Files(self.folder / "data")

    def run(self, peer: str, story: Story, repeat: int, expected: Expected) -> Run:
        """What was carried out before with the same order is not done again: a long run may be cut off."""
        name = f"{story.name}-{peer}-{repeat}"
        place = self.folder / "measured"
        place.mkdir(parents=True, exist_ok=True)
        order = WorkOrder(
            peer,
            story,
            self.folder / "tables" / name,
            self.files.folder,
            place / f"{name}.jsonl",
            self.machine,
            self.buckets,
        )
        done = place / f"{name}.done.json"
        if done.exists() and done.read_text(encoding="utf-8") == order.to_json():
            told = read_lines(order.results.read_text(encoding="utf-8").splitlines())
            return Run(peer, story, repeat, told, differences(told, expected), _when(done))
        self.tell(f"{peer}: {story.name}, {repeat}")
        shutil.rmtree(order.folder, ignore_errors=True)
        done.unlink(missing_ok=True)
        try:
            python = python_for(peer_class(peer).pyspark, self.folder / "environments")
            told = carry_out(order, python, self.java_home, place / f"{name}.log", self.timeout_s)
        except EnvironmentMissing as missing:
            told = ProcessReport(error=str(missing))
        finally:
            shutil.rmtree(order.folder, ignore_errors=True)
        if told.error is None:
            done.write_text(order.to_json(), encoding="utf-8")
        return Run(peer, story, repeat, told, differences(told, expected), _when())


def _when(done: Path | None = None) -> str:
    at = dt.datetime.now(dt.timezone.utc)
    if done is not None:
        at = dt.datetime.fromtimestamp(done.stat().st_mtime, dt.timezone.utc)
    return f"{at:%-d %B %Y}: {machine_text()}"
