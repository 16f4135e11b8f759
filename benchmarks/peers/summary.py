"""From the reports of processes to comparable numbers: medians, spread, targets. Pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.peers.report import Sample
from benchmarks.peers.run import Run


@dataclass(frozen=True)
class Spread:
    median: float
    least: float
    most: float
    count: int

    @staticmethod
    def of(values: Iterable[float | None]) -> Spread | None:
        known = [value for value in values if value is not None]
        if not known:
            return None
        return Spread(statistics.median(known), min(known), max(known), len(known))


@dataclass(frozen=True)
class Target:
    """What the project wants, and what was measured; ``met`` is ``None`` where it was not measured."""

    what: str
    wanted: str
    measured: str
    met: bool | None


@dataclass(frozen=True)
class Summary:
    """All runs of a benchmark. A run that failed or found wrong rows gives no numbers."""

    runs: Sequence[Run]

    @property
    def peers(self) -> list[str]:
        return list(dict.fromkeys(run.peer for run in self.runs))

    @property
    def good(self) -> list[Run]:
        return [run for run in self.runs if run.failed is None]

    def sizes(self, workload: str) -> list[int]:
        return sorted({run.story.rows for run in self.runs if run.story.workload == workload})

    def cases(self, workload: str) -> list[str]:
        found = (case.name for run in self.runs if run.story.workload == workload for case in run.story.cases)
        return list(dict.fromkeys(found))

    def samples(
        self,
        peer: str,
        workload: str,
        step: str,
        *,
        case: str | None = None,
        state: str | None = None,
        rows: int | None = None,
        commits: int | None = None,
    ) -> list[Sample]:
        return [
            sample
            for run in self.good
            if run.peer == peer and run.story.workload == workload and rows in (None, run.story.rows)
            for sample in run.told.samples
            if sample.step == step
            and case in (None, sample.case)
            and state in (None, sample.state)
            and commits in (None, sample.commits)
        ]

    def seconds(self, peer: str, workload: str, step: str, **where: object) -> Spread | None:
        return Spread.of(one.seconds for one in self.samples(peer, workload, step, **where))  # type: ignore[arg-type]

    def of(
        self, value: Callable[[Sample], float | None], peer: str, workload: str, step: str, **where: object
    ) -> Spread | None:
        return Spread.of(value(one) for one in self.samples(peer, workload, step, **where))  # type: ignore[arg-type]


MAIN = "1.0% uniform"
"""The case that the targets are about."""
OURS = "arctic"


def targets(summary: Summary) -> list[Target]:
    """Where the project wants to stand."""
    found = [
        _faster(summary, "write", "iceberg-cow", 20, "MERGE copy-on-write"),
        _faster(summary, "write", "iceberg-dv", 8, "MERGE with deletion vectors"),
        _faster(summary, "write", "delta", 5, "Delta"),
        _faster(summary, "write", "hudi", 5, "Hudi"),
        _faster(summary, "write", "paimon", 1, "Paimon"),
        _read_over_plain(summary),
    ]
    for peer, title in (
        ("hudi", "Hudi"),
        ("paimon", "Paimon"),
        ("paimon-dv", "Paimon with deletion vectors"),
    ):
        found.append(_faster(summary, "read aggregate", peer, 1, title, state="pending", commits=1))
    found += [_fastest(summary, "feed", "incremental read"), _fastest(summary, "compact", "compaction")]
    return [*found, _independent(summary), _layers(summary)]


def _median(summary: Summary, peer: str, step: str, **where: object) -> float | None:
    spread = summary.seconds(peer, "upserts", step, **{"case": MAIN, **where})
    return None if spread is None else spread.median


def _faster(summary: Summary, step: str, peer: str, times: float, title: str, **where: object) -> Target:
    ours, theirs = _median(summary, OURS, step, **where), _median(summary, peer, step, **where)
    what = f"{step.split()[0]}: times faster than {title}"
    if not ours or theirs is None:
        return Target(what, f"at least {times:g}", "not measured", None)
    return Target(what, f"at least {times:g}", f"{theirs / ours:.1f}", theirs / ours >= times)


def _read_over_plain(summary: Summary) -> Target:
    pending = _median(summary, OURS, "read aggregate", state="pending", commits=1)
    plain = _median(summary, OURS, "read aggregate", state="plain")
    what = "read with 1 % pending, over a plain scan"
    if not plain or pending is None:
        return Target(what, "at most 1.5", "not measured", None)
    return Target(what, "at most 1.5", f"{pending / plain:.2f}", pending / plain <= 1.5)


def _fastest(summary: Summary, step: str, title: str) -> Target:
    ours = _median(summary, OURS, step)
    others = {
        peer: seconds
        for peer in summary.peers
        if peer != OURS and (seconds := _median(summary, peer, step)) is not None
    }
    if ours is None or not others:
        return Target(f"{title}: fastest of all", "first", "not measured", None)
    best = min(others, key=lambda peer: others[peer])
    told = f"{ours:.2f} s; next {best} {others[best]:.2f} s"
    return Target(f"{title}: fastest of all", "first", told, ours <= others[best])


NOISE = 1.25
"""By so much two medians of the same work may differ."""


def _independent(summary: Summary) -> Target:
    what, wanted = "upsert of as many rows into the largest table, over the smallest", f"at most {NOISE}"
    sizes = summary.sizes("growth")
    by_size = [summary.seconds(OURS, "growth", "write", rows=rows) for rows in sizes]
    if len(sizes) < 2 or by_size[0] is None or by_size[-1] is None:
        return Target(what, wanted, "not measured", None)
    ratio = by_size[-1].median / by_size[0].median
    return Target(what, wanted, f"{ratio:.2f} ({sizes[-1] / sizes[0]:g} times the rows)", ratio <= NOISE)


def _layers(summary: Summary) -> Target:
    what, wanted = "layered refresh: times faster than the best peer", "at least 5"
    total = {
        peer: spread.median
        for peer in summary.peers
        if (spread := summary.seconds(peer, "layers", "refresh")) is not None
    }
    ours = total.pop(OURS, None)
    total.pop("rebuild", None)
    if not ours or not total:
        return Target(what, wanted, "not measured", None)
    best = min(total, key=lambda peer: total[peer])
    return Target(what, wanted, f"{total[best] / ours:.1f} ({best})", total[best] / ours >= 5)
