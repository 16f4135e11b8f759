"""``make bench-keep``: how current ``dbt-arctic keep`` is while messages arrive, and what a read costs.

A real Kafka on loopback gets messages of random orders at a constant rate. ``keep`` runs in a process of its
own, with a ``target_lag``. Afterwards, the commits say when each message became visible: the first one whose
consumed offsets are beyond it. In the end, the table must have the newest message of each order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import numpy
from pyspark.sql import SparkSession

from benchmarks.topics.events import PARTITIONS, expected, message, require_equal, summary
from benchmarks.topics.project import write_topic_project
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import PROPERTY_CONSUMED
from dbt_arctic.store.state import load_keyed
from tests.dbt.keyed.kafka_topics import Topic, broker

TABLE = Name("lake", "bench", "orders")
UPSTREAM = "kafka.shop.orders"
READ = "SELECT count(*), sum(amount) FROM lake.bench.orders"
_TICK_S = 0.1
_WARM_S = 60.0
"""The first build, after which messages count."""


@dataclass
class Producer:
    """Writes messages at a rate, until it is stopped."""

    topic: Topic
    rate: int
    orders: int
    stopped: threading.Event = field(default_factory=threading.Event)
    sent: int = 0

    def run(self) -> None:
        chance, began = random.Random(1), time.monotonic()
        while not self.stopped.wait(_TICK_S):
            wanted = int((time.monotonic() - began) * self.rate)
            for _ in range(wanted - self.sent):
                value = message(chance, self.orders)
                key = str(value["order_id"]).encode()
                partition = value["order_id"] % PARTITIONS
                self.topic.producer.send(
                    self.topic.name, key=key, value=json.dumps(value).encode(), partition=partition
                )
            self.sent = wanted
        self.topic.producer.flush()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.topics.lag")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=int, default=1000, help="messages a second")
    parser.add_argument("--orders", type=int, default=200_000)
    parser.add_argument("--lag", default="10 seconds", help="the target_lag of the model")
    given = parser.parse_args()
    os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bench-keep-")))
        running = opened.enter_context(broker(folder))
        topic = running.topic(PARTITIONS)
        project = folder / "project"
        project.mkdir()
        write_topic_project(project, running.servers, topic.name, f", target_lag='{given.lag}'")
        settings = SparkSettings(
            catalog="lake",
            warehouse=str(project / "lake"),
            master="local[1]",
            driver_memory="1g",
            connectors=("kafka",),
        )
        connection = SessionEngine(settings).connect()
        opened.callback(connection.close)
        producer = Producer(topic, given.rate, given.orders)
        thread = threading.Thread(target=producer.run)
        thread.start()
        opened.callback(thread.join)
        opened.callback(producer.stopped.set)
        began = time.time()
        reads = keep(project, folder / "keep.log", given.minutes, producer, connection.session)
        thread.join()
        print((folder / "keep.log").read_text(encoding="utf-8")[-2500:])
        require_equal(
            "keep",
            summary(connection.session, TABLE.dotted),
            expected(connection.session, running.servers, topic.name),
        )
        delays = delays_s(connection.session, project, running.servers, topic.name, began + _WARM_S)
        compacted = after_compaction(project, connection.session)
    half = len(reads) // 2
    print(
        f"{producer.sent:,} messages, {given.rate:,} a second for {given.minutes:g} minutes, target_lag "
        f"{given.lag}: visible after {numpy.percentile(delays, 50):.1f} s (median), "
        f"{numpy.percentile(delays, 95):.1f} s (95th percentile), {max(delays):.1f} s (most)"
    )
    print(
        f"a read took {statistics.median(reads[:half]):.2f} s in the first half, "
        f"{statistics.median(reads[half:]):.2f} s in the second, {compacted:.2f} s after a full compaction"
    )


def keep(project: Path, log: Path, minutes: float, producer: Producer, session: SparkSession) -> list[float]:
    """Run ``keep``. The messages end a little earlier, so that it takes them all.

    :returns: the seconds of a read, each half minute.
    """
    command = [sys.executable, "-c", "from dbt_arctic.cli.main import main; main()", "keep"]
    command += ["--for", f"{int(minutes * 60 + 2 * _WARM_S)}s", "--project-dir", str(project)]
    reads = []
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [*command, "--profiles-dir", str(project)], stdout=output, stderr=subprocess.STDOUT
        )
        try:
            end = time.monotonic() + minutes * 60 + _WARM_S
            time.sleep(_WARM_S)
            while time.monotonic() < end:
                time.sleep(min(30.0, max(0.0, end - time.monotonic())))
                reads.append(read(session))
            producer.stopped.set()
            process.wait(4 * _WARM_S)
        finally:
            if process.poll() is None:
                process.kill()
    return reads


def read(session: SparkSession) -> float:
    """The seconds of a read of the table's view, the better of two."""

    def once() -> float:
        before = time.monotonic()
        session.sql(READ).collect()
        return time.monotonic() - before

    return min(once(), once())


def delays_s(session: SparkSession, project: Path, servers: str, topic: str, since: float) -> Sequence[float]:
    """After how many seconds each message was visible, of those that were written after a time."""
    catalog = EmbeddedCatalog("lake", str(project / "lake"))
    table = load_keyed(catalog, TABLE)
    change = catalog.load_table(table.change.schema, table.change.identifier)
    assert change is not None
    commits = []
    for snapshot in reversed(change.history()):
        consumed = json.loads(snapshot.summary.get(PROPERTY_CONSUMED, "{}")).get(UPSTREAM)
        if consumed:
            offsets = [int(one) for one in consumed[1].partition(":")[2].split(",")]
            commits.append((snapshot.timestamp_ms, offsets))
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", servers)
    frame = reader.option("subscribe", topic).load()
    frame = frame.selectExpr("partition", "offset", "unix_millis(timestamp) AS written").toPandas()
    found: list[float] = []
    times = numpy.array([at for at, _ in commits])
    for partition in range(PARTITIONS):
        ends = numpy.array([offsets[partition] for _, offsets in commits])
        own = frame[(frame["partition"] == partition) & (frame["written"] > since * 1000)]
        first = numpy.searchsorted(ends, own["offset"].to_numpy(), side="right")
        found += list((times[first] - own["written"].to_numpy()) / 1000)
    return found


def after_compaction(project: Path, session: SparkSession) -> float:
    """The seconds of a read after everything was compacted."""
    words = [
        "compact",
        TABLE.dotted,
        "--kind",
        "full",
        "--project-dir",
        str(project),
        "--profiles-dir",
        str(project),
    ]
    command = [sys.executable, "-c", "from dbt_arctic.cli.main import main; main()", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return min(read(session) for _ in range(3))


if __name__ == "__main__":
    main()
