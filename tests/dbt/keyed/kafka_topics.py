"""A Kafka broker for tests, and what was written to its topics, as the oracle of what models must read."""

from __future__ import annotations

import contextlib
import json
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import OffsetSpec

from dbt_arctic.engine.connectors import CONNECTORS
from dbt_arctic.engine.session import SessionConnection
from tests.matrix.components import PASSWORD, kafka, maven_jars

LOGIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="dbt" password="{PASSWORD}";',
}
"""The properties of a client that logs in."""


@dataclass(frozen=True)
class Message:
    """A message as it was written."""

    key: str | None
    value: str | None
    partition: int
    offset: int


@dataclass
class Topic:
    """A topic, and the messages that a reader of committed transactions sees."""

    servers: str
    admin: Any
    producer: Any
    opened: contextlib.ExitStack
    partitions: int = 2
    name: str = field(default_factory=lambda: f"t_{uuid.uuid4().hex[:10]}")
    messages: list[Message] = field(default_factory=list)

    def create(self) -> Topic:
        made = {"num_partitions": self.partitions, "replication_factor": 1}
        self.admin.create_topics({self.name: made})
        self.admin.wait_for_topics([self.name])
        return self

    def delete(self) -> None:
        self.admin.delete_topics([self.name])
        self.messages.clear()

    def send(
        self, key: Any, value: Any, partition: int = 0, producer: Any = None, is_seen: bool = True
    ) -> Message:
        text = None if value is None else value if isinstance(value, str) else json.dumps(value)
        sent = (producer or self.producer).send(
            self.name,
            key=None if key is None else str(key).encode(),
            value=None if text is None else text.encode(),
            partition=partition,
            headers=[("from", b"test")],
        )
        written = Message(None if key is None else str(key), text, partition, sent.get(10).offset)
        if is_seen:
            self.messages.append(written)
        return written

    def add_partition(self) -> None:
        self.partitions += 1
        self.admin.create_partitions({self.name: self.partitions})
        self.admin.wait_for_topics([self.name])
        # A producer learns of partitions late.
        self.producer = self.opened.enter_context(
            contextlib.closing(KafkaProducer(bootstrap_servers=self.servers, linger_ms=0))
        )

    def ends(self) -> list[int]:
        """The next offset of each partition."""
        wanted = [TopicPartition(self.name, number) for number in range(self.partitions)]
        found = self.admin.list_partition_offsets(dict.fromkeys(wanted, OffsetSpec.LATEST))
        return [int(found[one].offset) for one in wanted]

    def delete_before(self, partition: int, offset: int) -> None:
        """What retention does: the messages before an offset are gone."""
        self.admin.delete_records({TopicPartition(self.name, partition): offset})
        self.messages = [m for m in self.messages if m.partition != partition or m.offset >= offset]

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Any]:
        """A producer with an open transaction."""
        made = KafkaProducer(bootstrap_servers=self.servers, transactional_id=f"x{uuid.uuid4().hex}")
        made.init_transactions()
        made.begin_transaction()
        try:
            yield made
        finally:
            made.close()


@dataclass(frozen=True)
class Broker:
    """A running broker.

    :param servers: where tests write without a login.
    :param with_login: where a client must log in.
    """

    servers: str
    with_login: str
    admin: Any
    producer: Any
    opened: contextlib.ExitStack

    def topic(self, partitions: int = 2) -> Topic:
        return Topic(self.servers, self.admin, self.producer, self.opened, partitions).create()


@contextlib.contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """A broker that ends with the block."""
    with kafka(folder, tools()) as running, contextlib.ExitStack() as opened:
        login = f"127.0.0.1:{(folder / 'sasl').read_text(encoding='utf-8')}"
        admin = opened.enter_context(KafkaAdminClient(bootstrap_servers=running.address))
        made = KafkaProducer(bootstrap_servers=running.address, linger_ms=0)
        producer = opened.enter_context(contextlib.closing(made))
        yield Broker(running.address, login, admin, producer, opened)


def tools() -> Path:
    """Where the tests keep what they have downloaded."""
    return Path(sys.prefix, "matrix")


def add_reader(connection: SessionConnection, folder: Path, connector: str = "kafka") -> None:
    """Give a Spark that runs already the jars of one of Spark's readers.

    A project with a topic, for example, starts Spark with these jars. Tests share one Spark, which may have
    started before.
    """
    process = connection.process
    context = process.context
    jars = maven_jars(tools() / f"spark-{connector}", CONNECTORS[connector], folder, are_complete=True)
    loader = context._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for coordinates in CONNECTORS[connector]:
        _, artifact, version = coordinates.split(":")
        loader.addURL(context._jvm.java.io.File(str(jars / f"{artifact}-{version}.jar")).toURI().toURL())
    known = process.conf.get("spark.jars.packages", "").split(",")
    process.conf["spark.jars.packages"] = ",".join(dict.fromkeys([*known, *CONNECTORS[connector]]))
