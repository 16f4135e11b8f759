"""A short look at our own speed, against ``MERGE`` on Iceberg, in one Spark: ``make bench-smoke``.

    python -m benchmarks.peers.smoke --rows 1500000

Both get the same rounds of changes in turn, and hold the same rows after each. ``MERGE`` is the statement of
dbt-spark's `merge` strategy on a table as dbt-spark creates it. Ratios hold on any machine; seconds do not.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.peers.arctic import CATALOG, Arctic
from benchmarks.peers.data import Expected, database, expect, expected_key, make
from benchmarks.peers.files import Files
from benchmarks.peers.iceberg import CopyOnWrite
from benchmarks.peers.peer import Machine, Peer
from benchmarks.peers.rounds import orders
from benchmarks.peers.story import Case, Story
from benchmarks.peers.table import Table
from benchmarks.peers.workload import COLUMNS, Round, as_text, check_sql, digest_sql, reads
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.settings import SparkSettings


@dataclass(frozen=True)
class Ratios:
    """Medians over medians.

    :param write: how many times faster an upsert is than ``MERGE``.
    :param read: how many times longer a read takes with pending changes than one of a plain table.
    :param compaction: how many times faster compaction is than one ``MERGE``.
    """

    write: float
    read: float
    compaction: float

    def line(self) -> str:
        return (
            f"bench: write x{self.write:.1f} vs merge, read x{self.read:.2f} vs plain, "
            f"compaction x{self.compaction:.1f} vs merge"
        )


def ratios(seconds: dict[str, list[float]]) -> Ratios:
    middle = {step: statistics.median(taken) for step, taken in seconds.items()}
    return Ratios(
        middle["merge"] / middle["upsert"],
        middle["read"] / middle["plain read"],
        middle["merge"] / middle["compaction"],
    )


@dataclass
class Smoke:
    """One after the other, in one Spark.

    :raises AssertionError: where the two hold other rows than they must."""

    ours: Arctic
    merge: Peer
    files: Files
    expected: Expected
    buckets: int
    tell: Callable[[str], None] = lambda text: None
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def run(self, rows: int, rounds: list[Round]) -> None:
        keyed, merged = orders("keyed", self.buckets), orders("merged", self.buckets)
        loaded = self.ours.source("smoke_rows", self.files.initial(rows))
        self._timed("build", lambda: self.ours.load(keyed, loaded))
        self._timed("plain table", lambda: self.merge.load(merged, loaded))
        self._verify(0, keyed, merged)
        for at, one in enumerate(rounds):
            changes = self.ours.source("smoke_changes", self.files.changes(one))
            # What runs first pays for the classes that it loads: not measured, but verified.
            warm = at == 0
            self._timed("upsert", partial(self.ours.write, keyed, changes), warm)
            self._timed("merge", partial(self.merge.write, merged, changes), warm)
            self._verify(one.number, keyed, merged)
            plain, view = self.merge.relation(merged), self.ours.relation(keyed)
            for _ in range(2 if warm else 3):
                self._read("plain read", plain, rows, warm)
                self._read("read", view, rows, warm)
            self._timed("compaction", lambda: self.ours.compact(keyed), warm)
        for peer, table in ((self.ours, keyed), (self.merge, merged)):
            found = as_text(peer.query(digest_sql(peer.relation(table), COLUMNS, "spark")))
            self._same(len(rounds), "digest", found, peer.title)

    def _read(self, step: str, relation: str, rows: int, warm: bool) -> None:
        self._timed(step, lambda: self.ours.query(reads(relation, rows)["aggregate"]), warm)

    def _verify(self, number: int, keyed: Table, merged: Table) -> None:
        for peer, table in ((self.ours, keyed), (self.merge, merged)):
            found = as_text(peer.query(check_sql(peer.relation(table))))
            self._same(number, "check", found, peer.title)

    def _same(self, number: int, what: str, found: list[str], who: str) -> None:
        wanted = self.expected[expected_key(number, what)]
        assert found == wanted, f"{who}, round {number}, {what}: {found} instead of {wanted}"

    def _timed(self, step: str, action: Callable[[], Any], warm: bool = False) -> None:
        began = time.perf_counter()
        action()
        taken = time.perf_counter() - began
        if not warm:
            self.seconds.setdefault(step, []).append(taken)
        self.tell(f"  {step}: {taken:.2f} s{' (warming up)' if warm else ''}")


def smoke(
    connection: SessionConnection,
    folder: Path,
    rows: int,
    rounds: int,
    buckets: int,
    *,
    schema: str = "bench",
    tell: Callable[[str], None] = lambda text: None,
) -> dict[str, list[float]]:
    """Seconds by step. The tables lie in the connection's lake."""
    case = Case("smoke", ((rows // 100, "uniform"),) * rounds, frozenset())
    story, files = Story("smoke", rows, (case,)), Files(folder)
    with database(folder) as duck:
        make(duck, files, rows, story.planned())
        expected = expect(duck, files, story)
    machine = Machine()
    ours, merge = Arctic(folder, machine, connection), CopyOnWrite(folder, machine)
    ours.schema = merge.schema = schema
    ours.open()
    merge.spark = connection.session
    run = Smoke(ours, merge, files, expected, buckets, tell)
    run.run(rows, story.planned())
    return run.seconds


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_500_000)
    parser.add_argument("--rounds", type=int, default=4, help="the first one is not measured")
    parser.add_argument("--buckets", type=int, default=8)
    parser.add_argument("--memory", default="3g")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="dbt-arctic-bench-"))
    try:
        settings = SparkSettings(CATALOG, str(folder / "lake"), driver_memory=given.memory, master="local[2]")
        connection = SessionEngine(settings).connect()
        found = smoke(connection, folder, given.rows, given.rounds, given.buckets, tell=_tell)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(ratios(found).line())
    return 0


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
