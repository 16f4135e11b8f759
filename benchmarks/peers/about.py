"""What a benchmark was measured on, and how each peer was set up."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.peers.peer import Machine
from benchmarks.peers.roster import peer_class
from benchmarks.peers.run import Run


def about(runs: Sequence[Run], machine: Machine, buckets: int) -> dict[str, str]:
    found = {
        "measured": "; ".join(
            f"{', '.join(workloads)}: {when}" for when, workloads in _measured(runs).items()
        ),
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


def _measured(runs: Sequence[Run]) -> dict[str, list[str]]:
    """The workloads by when and where: all peers of one workload are of one command."""
    found: dict[str, list[str]] = {}
    for run in runs:
        workloads = found.setdefault(run.measured, [])
        if run.story.workload not in workloads:
            workloads.append(run.story.workload)
    return found


def _sizes(runs: Sequence[Run]) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for run in runs:
        found.setdefault(run.story.workload, set()).add(run.story.rows)
    return {workload: sorted(sizes) for workload, sizes in found.items()}


def _millions(sizes: Sequence[int]) -> str:
    return " / ".join(f"{size / 1e6:g}" for size in sizes) + " million"
