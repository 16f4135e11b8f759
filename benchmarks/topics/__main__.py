"""``make bench-kafka``: a real Kafka on loopback, whose messages are merged by key.

In each round, the same messages are taken by ``dbt run`` and by Spark's Structured Streaming into tables of
other products, one after the other. After each round, all tables must have the newest message of each order.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.dbt_project import run
from benchmarks.peers.environment import python_for
from benchmarks.peers.roster import peer_class
from benchmarks.topics.events import PARTITIONS, expected, produce, require_equal, summary
from benchmarks.topics.project import write_topic_project
from dbt_arctic.engine.java import find_java
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from tests.dbt.keyed.kafka_topics import broker

ROOT = Path(__file__).parents[2]
CORES, MEMORY = 2, "3g"


@dataclass(frozen=True)
class Running:
    """The process of a peer."""

    name: str
    process: subprocess.Popen[str]
    log: Path

    def line(self) -> str:
        """The next line that it prints.

        :raises RuntimeError: it has ended.
        """
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise RuntimeError(f"{self.name} has ended:\n{self.log.read_text(encoding='utf-8')[-6000:]}")
        return line.strip()

    def take(self) -> dict[str, Any]:
        """Let it take what is new. Returns ``seconds`` and ``rows``."""
        if self.process.stdin:
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
        found: dict[str, Any] = json.loads(self.line())
        return found


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.topics")
    parser.add_argument("--messages", type=int, default=1_000_000, help="of each round")
    parser.add_argument("--orders", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--peers", default="iceberg-cow,iceberg-dv,paimon", help="empty for none")
    parser.add_argument("--environments", type=Path, default=Path(tempfile.gettempdir(), "dbt-arctic-bench"))
    given = parser.parse_args()
    os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bench-kafka-")))
        running = opened.enter_context(broker(folder))
        topic = running.topic(PARTITIONS).name
        (folder / "project").mkdir()
        write_topic_project(folder / "project", running.servers, topic)
        settings = SparkSettings(
            catalog="lake",
            warehouse=str(folder / "project" / "lake"),
            master=f"local[{CORES}]",
            driver_memory=MEMORY,
            connectors=("kafka",),
        )
        connection = SessionEngine(settings).connect()
        opened.callback(connection.close)
        order = {"folder": "", "servers": running.servers, "topic": topic, "cores": CORES, "memory": MEMORY}
        peers = [
            opened.enter_context(peer(name, folder, {**order, "peer": name}, given.environments))
            for name in given.peers.split(",")
            if name
        ]
        seconds: dict[str, list[float]] = {"arctic": [], **{one.name: [] for one in peers}}
        for number in range(given.rounds):
            produce(connection.session, running.servers, topic, given.messages, given.orders, number)
            before = time.monotonic()
            run(folder / "project")
            seconds["arctic"].append(round(time.monotonic() - before, 2))
            wanted = expected(connection.session, running.servers, topic)
            require_equal("arctic", summary(connection.session, "lake.bench.orders"), wanted)
            for one in peers:
                took = one.take()
                seconds[one.name].append(took["seconds"])
                require_equal(one.name, took["rows"], wanted)
            print(f"round {number}: { ({name: each[-1] for name, each in seconds.items()}) }", flush=True)
        before = time.monotonic()
        run(folder / "project")
        nothing = round(time.monotonic() - before, 2)
    for name, each in seconds.items():
        title = "dbt-arctic" if name == "arctic" else peer_class(name).title
        best = min(each[1:] or each)
        print(
            f"{title}: first round {given.messages / each[0]:,.0f} messages a second, "
            f"then {given.messages / best:,.0f}"
        )
    print(f"nothing new: {nothing} s")
    print(json.dumps(seconds))


@contextlib.contextmanager
def peer(name: str, folder: Path, order: dict[str, Any], environments: Path) -> Iterator[Running]:
    """A peer, which ends with the block."""
    place = folder / name
    place.mkdir()
    written = place / "order.json"
    written.write_text(json.dumps({**order, "folder": str(place)}), encoding="utf-8")
    environments.mkdir(parents=True, exist_ok=True)
    python = python_for(peer_class(name).pyspark, environments)
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))
    }
    variables |= {"PYTHONPATH": str(ROOT), "JAVA_HOME": find_java().home, "PYSPARK_PYTHON": str(python)}
    log = place / "log"
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [str(python), "-m", "benchmarks.topics.peer", str(written)],
            **{"cwd": place, "env": variables, "text": True},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            running = Running(name, process, log)
            while running.line() != "ready":
                pass
            yield running
        finally:
            if process.stdin:
                process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()


if __name__ == "__main__":
    main()
