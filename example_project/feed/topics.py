"""Lands rounds of the change feed as messages of Kafka topics, in place of files: ``shop-demo.<table>``.

A message has the row as JSON, and the row's key as its own key. Each topic has one partition, which keeps the
changes in their order. The number of its messages says what has landed. So landing a round twice has no
effect, and a round that was interrupted is completed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import KafkaError

from feed.land import LandingFailed
from feed.tables import TABLES, FeedTable
from feed.write import feed_file, rounds_written

PREFIX = "shop-demo."


class LandingTopics:
    """The topics of one broker, which needs no login.

    :param feed: the folder with the feed's files.
    :param servers: ``host:port`` of the broker.
    """

    def __init__(self, feed: Path, servers: str) -> None:
        self._feed = feed
        self._servers = servers

    def start_over(self) -> None:
        """Delete the topics and create them again."""
        names = [_topic(table) for table in TABLES]
        with self._admin() as admin:
            there = sorted(set(names).intersection(admin.list_topics()))
            if there:
                admin.delete_topics(there)
            admin.create_topics({name: {"num_partitions": 1, "replication_factor": 1} for name in names})
            admin.wait_for_topics(names)

    def land_round(self, number: int) -> int:
        landed = 0
        there = self._messages()
        with closing(KafkaProducer(bootstrap_servers=self._servers, linger_ms=20)) as producer:
            for table in TABLES:
                done = max(0, there[table.name] - self._rows(table, number - 1))
                rows = pq.read_table(feed_file(self._feed, table.name, number)).slice(done).to_pylist()
                sent = [producer.send(_topic(table), key=_key(table, row), value=_value(row)) for row in rows]
                producer.flush()
                for one in sent:
                    one.get()
                landed += len(rows)
        return landed

    def last_round(self) -> int:
        there = self._messages()
        complete = (
            number
            for number in range(rounds_written(self._feed) + 1)
            if all(there[table.name] >= self._rows(table, number) for table in TABLES)
        )
        return max(complete, default=-1)

    def _rows(self, table: FeedTable, last_round: int) -> int:
        """The number of rows of all rounds up to and with ``last_round``."""
        files = (feed_file(self._feed, table.name, number) for number in range(last_round + 1))
        return sum(pq.read_metadata(file).num_rows for file in files)

    def _messages(self) -> dict[str, int]:
        """How many messages the topic of each table has; 0 if there is none."""
        with self._admin() as admin:
            there = set(admin.list_topics())
            wanted = {
                TopicPartition(_topic(table), 0): OffsetSpec.LATEST
                for table in TABLES
                if _topic(table) in there
            }
            found = admin.list_partition_offsets(wanted) if wanted else {}
        return {
            table.name: int(found[partition].offset)
            if (partition := TopicPartition(_topic(table), 0)) in found
            else 0
            for table in TABLES
        }

    @contextmanager
    def _admin(self) -> Iterator[Any]:
        try:
            client = KafkaAdminClient(bootstrap_servers=self._servers, bootstrap_timeout_ms=10_000)
            with closing(client) as admin:
                yield admin
        except KafkaError as error:
            raise LandingFailed(f"Kafka at {self._servers}: {error}") from error


def _topic(table: FeedTable) -> str:
    return f"{PREFIX}{table.name}"


def _key(table: FeedTable, row: dict[str, Any]) -> bytes:
    return json.dumps({name: row[name] for name in table.key}).encode()


def _value(row: dict[str, Any]) -> bytes:
    return json.dumps(
        {name: value for name, value in row.items() if value is not None}, default=_text
    ).encode()


def _text(value: Any) -> str:
    """Dates and times as in ISO 8601, and a decimal with all of its digits."""
    if isinstance(value, date | datetime):
        return value.isoformat()
    assert isinstance(value, Decimal)
    return str(value)
