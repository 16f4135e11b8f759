"""A peer, as a process: ``python -m benchmarks.topics.peer ORDER``. Standard library and pyspark only.

Spark's Structured Streaming reads the topic. Each line on standard input is a round: all new messages, with
the trigger ``availableNow``. The process answers with a line of JSON: the seconds, and a summary of the rows.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.peers.peer import Machine, Peer
from benchmarks.peers.roster import peer_class
from benchmarks.topics.events import COLUMNS, summary_sql

TABLE = "orders"
READERS = {
    "": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
    "3.5.9": "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.7",
}
"""Spark's reader of Kafka, by the version of pyspark that a peer needs."""
_KEY = "order_id"
_ORDER = "source_offset"


class Stream:
    """The table of a peer, and the query that loads it.

    :param order: ``peer``, ``folder``, ``servers``, ``topic``, ``cores``, ``memory``.
    """

    def __init__(self, order: dict[str, Any]) -> None:
        self.folder = Path(order["folder"])
        found = peer_class(order["peer"])
        self.peer: Peer = found(self.folder, Machine(order["cores"], order["memory"]))
        found.packages = (*found.packages, READERS[found.pyspark])
        self.peer.open()
        self.is_paimon = order["peer"].startswith("paimon")
        self.columns = [*COLUMNS, _ORDER]
        self.schema = ", ".join(f"{name} {kind}" for name, kind in {**COLUMNS, _ORDER: "bigint"}.items())
        self.reader = {"kafka.bootstrap.servers": order["servers"], "subscribe": order["topic"]}
        self.create()

    @property
    def relation(self) -> str:
        catalog = "paimon" if self.is_paimon else "lake"
        return f"{catalog}.{self.peer.schema}.{TABLE}"

    def create(self) -> None:
        properties = dict(getattr(self.peer, "properties", {}))
        if self.is_paimon:
            properties |= {"primary-key": _KEY, "bucket": "4", "sequence.field": _ORDER}
            properties |= {"file.format": "parquet", "file.compression": "zstd"}
        listed = ", ".join(f"'{name}'='{value}'" for name, value in properties.items())
        using = "" if self.is_paimon else "USING iceberg "
        self.peer.run(f"CREATE TABLE {self.relation} ({self.schema}) {using}TBLPROPERTIES ({listed})")

    def take(self) -> None:
        """Load all messages that are new."""
        raw = self.peer.spark.readStream.format("kafka").options(**self.reader)
        kinds = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        rows = (
            raw.option("startingOffsets", "earliest")
            .load()
            .selectExpr(f"from_json(CAST(value AS STRING), '{kinds}') AS message", f"offset AS {_ORDER}")
            .selectExpr("message.*", _ORDER)
        )
        writer = rows.writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
        writer = writer.trigger(availableNow=True)
        if self.is_paimon:
            place = self.folder / "lake" / f"{self.peer.schema}.db" / TABLE
            writer.format("paimon").outputMode("append").start(f"file:{place}").awaitTermination()
        else:
            writer.foreachBatch(self.merge()).start().awaitTermination()

    def merge(self) -> Callable[[Any, int], None]:
        """What the pages on MERGE from a stream do: the newest row of each key of a batch is merged."""
        sets = ", ".join(f"{name} = s.{name}" for name in self.columns)
        values = ", ".join(f"s.{name}" for name in self.columns)
        statement = (
            f"MERGE INTO {self.relation} AS t USING (SELECT {', '.join(self.columns)} FROM (SELECT *, "
            f"row_number() OVER (PARTITION BY {_KEY} ORDER BY {_ORDER} DESC) AS place FROM batch) "
            f"WHERE place = 1) AS s ON t.{_KEY} = s.{_KEY} WHEN MATCHED THEN UPDATE SET {sets} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(self.columns)}) VALUES ({values})"
        )

        def merge_batch(batch: Any, number: int) -> None:
            batch.createOrReplaceTempView("batch")
            batch.sparkSession.sql(statement)

        return merge_batch


def main() -> None:
    stream = Stream(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    print("ready", flush=True)
    for _ in sys.stdin:
        before = time.monotonic()
        stream.take()
        seconds = round(time.monotonic() - before, 2)
        row = [str(value) for value in stream.peer.query(summary_sql(stream.relation))[0]]
        print(json.dumps({"seconds": seconds, "rows": row}), flush=True)
    stream.peer.close()


if __name__ == "__main__":
    main()
