"""The cost of a step: time, bytes that the Spark process read and wrote, its peak memory, bytes on disk.

Bytes are those of read and write calls (``rchar`` and ``wchar`` of ``/proc``): a page of the system's cache
counts like one of the disk, and shuffle files count too. ``None`` if the system does not report them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Cost:
    """:param peak: the most memory that the process held during the step, in bytes."""

    seconds: float
    read: int | None = None
    written: int | None = None
    peak: int | None = None


class Meter:
    """Of one process and what it does for us."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def measure(self, action: Callable[[], Result]) -> tuple[Result, Cost]:
        self._forget_peak()
        before = self._traffic()
        began = time.perf_counter()
        result = action()
        seconds = time.perf_counter() - began
        after = self._traffic()
        if before is None or after is None:
            return result, Cost(seconds)
        return result, Cost(seconds, after[0] - before[0], after[1] - before[1], self._peak())

    def _traffic(self) -> tuple[int, int] | None:
        counters = self._folder / "io"
        if not counters.exists():
            return None
        told = dict(line.split(": ") for line in counters.read_text().splitlines())
        return int(told["rchar"]), int(told["wchar"])

    def _forget_peak(self) -> None:
        """Linux begins a new peak at what is held now; where it does not, peaks are those since the start."""
        reset = self._folder / "clear_refs"
        if reset.exists():
            reset.write_text("5")

    def _peak(self) -> int | None:
        for line in (self._folder / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return None


def lying(folder: Path, table: str) -> tuple[int, int]:
    """Files and bytes of a table, its metadata and older versions included: all below folders of its name."""
    files = size = 0
    for path in folder.rglob("*"):
        parents = path.relative_to(folder).parts[:-1]
        if any(part == table or part.startswith(f"{table}__") for part in parents) and path.is_file():
            files += 1
            size += path.stat().st_size
    return files, size
