"""What a benchmark was measured on, and how each peer was set up."""

from __future__ import annotations

import datetime as dt
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.peer import Machine
from benchmarks.peers.roster import peer_class
from benchmarks.peers.run import Run


def about(runs: Sequence[Run], machine: Machine, buckets: int) -> dict[str, str]:
    found = {
        "date": dt.datetime.now(dt.timezone.utc).strftime("%d %B %Y"),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_memory()}, {platform.system()}",
        "each peer": f"{machine.cores} cores, {machine.memory} heap, {buckets} buckets, zstd, local disk, "
        "a process of its own, one after the other",
        "rows": ", ".join(f"{workload} {_millions(sizes)}" for workload, sizes in _sizes(runs).items()),
    }
    for peer in dict.fromkeys(run.peer for run in runs):
        kind = peer_class(peer)
        versions = next((run.told.versions for run in runs if run.peer == peer and run.told.versions), {})
        told = ", ".join(f"{name} {version}" for name, version in versions.items())
        found[kind.title] = (
            f"{told or 'not to be had'}. {'; '.join(kind.settings)}; incremental read: {kind.feed}"
        )
    return found


def _sizes(runs: Sequence[Run]) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for run in runs:
        found.setdefault(run.story.workload, set()).add(run.story.rows)
    return {workload: sorted(sizes) for workload, sizes in found.items()}


def _millions(sizes: Sequence[int]) -> str:
    return " / ".join(f"{size / 1e6:g}" for size in sizes) + " million"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GiB"
