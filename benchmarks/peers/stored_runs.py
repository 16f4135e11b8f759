"""Results of earlier commands, read again: a benchmark of hours may be carried out a workload at a time."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.peers.report import ProcessReport, Sample
from benchmarks.peers.run import Run
from benchmarks.peers.story import Story


def kept_runs(results: Path, measured_now: Collection[str]) -> list[Run]:
    """The results in ``results.json`` of workloads that are not measured now. Peers are only compared with
    results of the same run, never with those of another day.
    """
    if not results.exists():
        return []
    runs = [_run(told) for told in json.loads(results.read_text(encoding="utf-8"))["runs"]]
    return [run for run in runs if run.story.workload not in measured_now]


def as_dict(run: Run) -> dict[str, Any]:
    return {
        "peer": run.peer,
        "story": run.story.as_dict(),
        "repeat": run.repeat,
        "measured": run.measured,
        "versions": run.told.versions,
        "absent": run.told.absent,
        "failed": run.failed,
        "checks": len(run.told.checks),
        "samples": [asdict(one) for one in run.told.samples],
    }


def _run(told: dict[str, Any]) -> Run:
    samples = [Sample(**sample) for sample in told["samples"]]
    of_process = ProcessReport(samples, [], told["versions"], told["absent"], told["failed"])
    return Run(
        told["peer"], Story.from_dict(told["story"]), told["repeat"], of_process, measured=told["measured"]
    )
