"""Rounds of changes on one table: written, verified, read, pulled, compacted. Runs in the child."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.peers.files import Files
from benchmarks.peers.meter import Meter, lying
from benchmarks.peers.peer import NotOffered, Peer
from benchmarks.peers.report import Reporter
from benchmarks.peers.story import Case, Story
from benchmarks.peers.table import Table
from benchmarks.peers.workload import (
    COLUMNS,
    Round,
    as_text,
    check_sql,
    digest_sql,
    feed_sql,
    reads,
)


def orders(name: str, buckets: int) -> Table:
    return Table(name, ("id",), COLUMNS, buckets, "id")


@dataclass
class Rounds:
    """One table's story, as one peer lives it."""

    peer: Peer
    story: Story
    table: Table
    files: Files
    meter: Meter
    report: Reporter
    tell: Callable[[str], None] = lambda text: None
    number: int = 0
    commits: int = 0
    _case: str = ""
    _reads: tuple[str, ...] = ()

    def run(self) -> None:
        peer, table = self.peer, self.table
        rows = peer.source(f"{table.name}_rows", self.files.initial(self.story.rows))
        self._measured("load", lambda: peer.load(table, rows), files=True)
        self._verify("check", check_sql(peer.relation(table)))
        planned = self.story.planned()
        for case in self.story.cases:
            of_case, planned = planned[: len(case.rounds)], planned[len(case.rounds) :]
            self._run_case(case, of_case)
        self._verify("digest", digest_sql(peer.relation(table), COLUMNS, "spark"))

    def _run_case(self, case: Case, rounds: Sequence[Round]) -> None:
        peer, table, since = self.peer, self.table, ""
        self._case, self._reads = case.name, case.reads
        if 0 in case.read_after or self.number == 0:
            self._read("loaded")
        plain = peer.plain(table)
        if plain is not None:
            self._read("plain", plain)
        for at, one in enumerate(rounds, 1):
            changes = peer.source(f"{table.name}_changes_{one.number}", self.files.changes(one))
            since = peer.mark(table)
            self._measured("write", partial(peer.write, table, changes), files=True)
            self.number, self.commits = one.number, self.commits + 1
            self._verify("check", check_sql(peer.relation(table)))
            if case.maintain:
                self._offered("maintain", partial(self._maintain, one.number))
            if at in case.read_after:
                self._read("pending")
        self._offered("feed", lambda: self._feed(since))
        if case.compact:
            self._offered("compact", self._compact)

    def _maintain(self, number: int) -> None:
        ran, cost = self.meter.measure(lambda: self.peer.maintain(self.table, number))
        if ran:
            self.report.sample(
                self._case,
                "maintain",
                cost,
                number=self.number,
                lying=lying(self.peer.folder, self.table.name),
            )
            self.commits = 0

    def _compact(self) -> None:
        self._measured("compact", lambda: self.peer.compact(self.table), files=True)
        self.commits = 0
        self._verify("check", check_sql(self.peer.relation(self.table)))
        self._read("compacted")

    def _feed(self, since: str) -> None:
        """The changes of the last round: found, read and added up."""
        for _ in range(self.story.repeat):
            rows = self._measured(
                "feed",
                lambda: self.peer.query(feed_sql(self.peer.changes(self.table, since))),
            )
        self.report.check(self.number, "feed", as_text(rows)[:3])

    def _read(self, state: str, relation: str | None = None) -> None:
        asked = reads(relation or self.peer.relation(self.table), self.story.rows)
        for what in self._reads:
            sql = asked[what]
            for _ in range(self.story.repeat):
                rows = self._measured(f"read {what}", partial(self.peer.query, sql), state)
            if relation is None:
                self.report.check(self.number, what, as_text(rows))

    def _verify(self, what: str, sql: str) -> None:
        self.report.check(self.number, what, as_text(self.peer.query(sql)))

    def _offered(self, step: str, action: Callable[[], object]) -> None:
        try:
            action()
        except NotOffered as lacking:
            self.report.absent(step, str(lacking))

    def _measured(self, step: str, action: Callable[[], Any], state: str = "", *, files: bool = False) -> Any:
        result, cost = self.meter.measure(action)
        self.report.sample(
            self._case,
            step,
            cost,
            state=state,
            number=self.number,
            commits=self.commits,
            lying=lying(self.peer.folder, self.table.name) if files else None,
        )
        self.tell(f"{self._case} {self.number} {step} {state} {cost.seconds:.2f} s")
        return result


def warm_up(peer: Peer, files: Files, buckets: int) -> None:
    """What runs first pays for the classes that it loads: every step once, on few rows."""
    table = orders("warm", buckets)
    peer.load(table, peer.source("warm_rows", files.initial(files.WARM.rows)))
    since = peer.mark(table)
    peer.write(table, peer.source("warm_changes", files.changes(files.WARM)))
    for action in (
        lambda: [peer.query(sql) for sql in reads(peer.relation(table), files.WARM.rows).values()],
        lambda: peer.query(feed_sql(peer.changes(table, since))),
        lambda: peer.compact(table),
    ):
        try:
            action()
        except NotOffered:
            continue
