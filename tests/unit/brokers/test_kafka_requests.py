"""The requests to a Kafka cluster: a topic is described once to see what is unread, and since when."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition

from dbt_arctic.brokers import kafka
from dbt_arctic.brokers.api import FirstMessage
from dbt_arctic.brokers.kafka import KafkaBroker
from dbt_arctic.errors import ServerUnreachable


class Admin:
    """A cluster with one topic of two partitions, of which the second is empty."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        self.asked["describe"] += 1
        return [{"error_code": 0, "partitions": [{"partition_index": 1}, {"partition_index": 0}]}]

    def list_partition_offsets(self, wanted: dict[TopicPartition, Any], *more: Any) -> dict[Any, Any]:
        self.asked["offsets"] += 1
        known = {0: SimpleNamespace(offset=4, timestamp=70), 1: SimpleNamespace(offset=-1, timestamp=-1)}
        return {one: known[one.partition] for one in wanted}


def test_a_topic_is_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = Admin()

    @contextmanager
    def opened(broker: KafkaBroker) -> Iterator[Admin]:
        yield admin

    monkeypatch.setattr(KafkaBroker, "_admin", opened)
    broker = KafkaBroker("here:1", {}, "models/shop.yml")
    topic = broker.offsets("orders", committed=True)
    found = broker.first_since("orders", len(topic.ends), 50)
    assert found == (FirstMessage(4, 70), None)
    assert admin.asked == {"describe": 1, "offsets": 3}


def test_a_broker_that_does_not_answer_is_one_error_and_no_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Not caplog, which also sees loggers that do not propagate.
    printed: list[str] = []

    class Printer(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            printed.append(record.getMessage())

    monkeypatch.setattr(logging.getLogger(), "handlers", [Printer()])
    monkeypatch.setattr(kafka, "_BOOTSTRAP_MS", 200)
    with pytest.raises(ServerUnreachable, match="Kafka at localhost:1 cannot be read") as error:
        KafkaBroker("localhost:1", {}, "--kafka localhost:1").topics()
    assert "Connection failed" in error.value.why, "what the client logs says why"
    assert printed == [], "nothing else is printed"
