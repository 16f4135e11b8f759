"""One peer's layers: built, and refreshed after each round. Runs in the child."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.peers.files import Files
from benchmarks.peers.layering import pipeline
from benchmarks.peers.layers import checks
from benchmarks.peers.meter import Cost, Meter
from benchmarks.peers.peer import Peer
from benchmarks.peers.report import Reporter
from benchmarks.peers.story import Story
from benchmarks.peers.workload import as_text


@dataclass
class LayersRun:
    peer: Peer
    story: Story
    buckets: int
    files: Files
    meter: Meter
    report: Reporter
    tell: Callable[[str], None]

    def run(self) -> None:
        self.peer.note = self.tell
        layers = pipeline(self.peer, self.buckets)
        rows = self.peer.source("orders_rows", self.files.initial(self.story.rows))
        customers = self.peer.source("customers_rows", self.files.customers())
        self._measured("load", partial(layers.build, rows, customers), 0)
        self._verify(layers.relations(), 0)
        for one in self.story.planned():
            changes = self.peer.source(f"orders_changes_{one.number}", self.files.changes(one))
            costs = [
                self._measured("ods", partial(layers.ods, changes), one.number),
                self._measured("dwd", layers.dwd, one.number),
                self._measured("dws", layers.dws, one.number),
            ]
            if one.number > 1:
                self.report.sample("layers", "refresh", _added(costs), number=one.number)
            self._verify(layers.relations(), one.number)

    def _verify(self, relations: tuple[str, str], number: int) -> None:
        for what, sql in checks(*relations).items():
            self.report.check(number, what, as_text(self.peer.query(sql)))

    def _measured(self, step: str, action: Callable[[], object], number: int) -> Cost:
        """The first round is not reported: it includes loading and compiling."""
        _, cost = self.meter.measure(action)
        if number != 1:
            self.report.sample("layers", step, cost, number=number)
        self.tell(f"layers {number} {step} {cost.seconds:.2f} s")
        return cost


def _added(costs: list[Cost]) -> Cost:
    def total(values: list[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    peaks = [cost.peak for cost in costs if cost.peak is not None]
    return Cost(
        sum(cost.seconds for cost in costs),
        total([cost.read for cost in costs]),
        total([cost.written for cost in costs]),
        max(peaks, default=None),
    )
