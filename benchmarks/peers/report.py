"""The report of a process: one JSON object per line, written while it runs, and the reader of these lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.peers.meter import Cost


@dataclass(frozen=True)
class Sample:
    """One step that was measured.

    :param step: ``load``, ``write``, ``feed``, ``compact``, ``maintain``, or ``read`` and what was read.
    :param state: of the table, for reads: ``loaded``, ``pending``, ``compacted``, ``plain``.
    :param number: of rounds that the table has had.
    :param commits: of these, since the last compaction.
    """

    case: str
    step: str
    state: str
    number: int
    commits: int
    seconds: float
    read: int | None = None
    written: int | None = None
    peak: int | None = None
    files: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Check:
    """What a peer found where all must find the same."""

    number: int
    what: str
    values: list[str]


@dataclass
class ProcessReport:
    """Everything that one process said."""

    samples: list[Sample] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    """Steps that the peer does not have, and why."""
    error: str | None = None


class Reporter:
    """Writes lines as they come: what a process found before it failed stays."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def sample(
        self,
        case: str,
        step: str,
        cost: Cost,
        *,
        state: str = "",
        number: int = 0,
        commits: int = 0,
        lying: tuple[int, int] | None = None,
    ) -> None:
        files, size = lying or (None, None)
        found = Sample(
            case,
            step,
            state,
            number,
            commits,
            round(cost.seconds, 4),
            cost.read,
            cost.written,
            cost.peak,
            files,
            size,
        )
        self._tell("sample", asdict(found))

    def check(self, number: int, what: str, values: Sequence[str]) -> None:
        self._tell("check", asdict(Check(number, what, list(values))))

    def versions(self, found: dict[str, str]) -> None:
        self._tell("versions", found)

    def absent(self, step: str, why: str) -> None:
        self._tell("absent", {step: why})

    def error(self, why: str) -> None:
        self._tell("error", {"why": why})

    def _tell(self, kind: str, values: dict[str, Any]) -> None:
        with self._file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"kind": kind, **values}) + "\n")


def read_lines(lines: Sequence[str]) -> ProcessReport:
    told = ProcessReport()
    for line in lines:
        values = json.loads(line)
        kind = values.pop("kind")
        if kind == "sample":
            told.samples.append(Sample(**values))
        elif kind == "check":
            told.checks.append(Check(**values))
        elif kind == "error":
            told.error = values["why"]
        else:
            getattr(told, kind).update(values)
    return told


def first_line(text: str) -> str:
    """The line of an error that says most: its last cause in Java where it has one, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return (causes[-1:] + thrown[:1] + lines[:1] + ["ended without a word"])[0][:300]
