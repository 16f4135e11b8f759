"""One peer's TPC-H: load, rounds of changes, queries with them pending and compacted. Runs in the child."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.peers import tpch
from benchmarks.peers.files import Files
from benchmarks.peers.meter import Meter
from benchmarks.peers.peer import NotOffered, Peer
from benchmarks.peers.report import Reporter
from benchmarks.peers.story import Story
from benchmarks.peers.table import Table
from benchmarks.peers.workload import as_text


@dataclass
class Tpch:
    peer: Peer
    story: Story
    buckets: int
    files: Files
    meter: Meter
    report: Reporter
    tell: Callable[[str], None]
    number: int = 0

    def run(self) -> None:
        tables = tpch.tables(self.buckets)
        for name, table in tables.items():
            rows = self.peer.source(f"{name}_rows", self.files.tpch_initial(self.story.scale, name))
            self._measured("load", partial(self.peer.load, table, rows))
        self._read(tables, "loaded")
        for number in range(1, len(self.story.cases[0].rounds) + 1):
            changes = {
                name: self.peer.source(
                    f"{name}_changes_{number}", self.files.tpch_changes(self.story.scale, name, number)
                )
                for name in tables
            }
            self._measured("write", partial(self._write, tables, changes))
            self.number = number
            self._read(tables, "pending")
            try:
                for table in tables.values():
                    self._measured("compact", partial(self.peer.compact, table))
                self._read(tables, "compacted")
            except NotOffered as lacking:
                self.report.absent("compact", str(lacking))

    def _write(self, tables: dict[str, Table], changes: dict[str, str]) -> None:
        for name, table in tables.items():
            self.peer.write(table, changes[name])

    def _read(self, tables: dict[str, Table], state: str) -> None:
        relations = [self.peer.relation(tables[name]) for name in tpch.NAMES]
        for what, sql in tpch.queries(*relations).items():
            for _ in range(self.story.repeat):
                self._measured(f"read {what}", partial(self.peer.query, sql), state)
        for what, sql in tpch.compared(*relations).items():
            self.report.check(self.number, what, as_text(self.peer.query(sql)))

    def _measured(self, step: str, action: Callable[[], object], state: str = "") -> None:
        _, cost = self.meter.measure(action)
        self.report.sample("tpch", step, cost, state=state, number=self.number)
        self.tell(f"tpch {self.number} {step} {state} {cost.seconds:.2f} s")
