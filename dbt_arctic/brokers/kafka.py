"""Kafka as a broker, through the package kafka-python."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dbt_arctic.brokers.api import FirstMessage, Message, TopicOffsets
from dbt_arctic.brokers.kafka_properties import client_settings
from dbt_arctic.errors import ArcticError, PackageMissing, ServerUnreachable, UnknownRelation

_BOOTSTRAP_MS = 10_000
"""How long to look for a broker that answers. A wrong password is reported only after this time."""
_SHOWN = 2
_UNKNOWN_TOPIC = 3
_INTERNAL = "__"
_SAMPLING: Mapping[str, Any] = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    "allow_auto_create_topics": False,
}
_SAMPLE_S = 20
"""How long a sample may take."""
_POLL_MS = 500
_NO_ID = uuid.UUID(int=0)


@dataclass(frozen=True)
class KafkaBroker:
    """A Kafka cluster.

    :param servers: ``host:port``, separated by commas.
    :param properties: of Kafka's Java client.
    :param where: what declares them, for errors.
    """

    servers: str
    properties: Mapping[str, str] = field(repr=False)
    where: str

    def offsets(self, topic: str, committed: bool) -> TopicOffsets:
        """Look up the offsets of all partitions of a topic, the ends after the starts."""
        with self._admin() as admin:
            from kafka.admin import OffsetSpec

            topic_id, partitions = self._describe(admin, topic)
            starts = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
            level = "read_committed" if committed else "read_uncommitted"
            ends = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), level)
        return TopicOffsets(
            topic_id,
            tuple(int(starts[one].offset) for one in partitions),
            tuple(int(ends[one].offset) for one in partitions),
        )

    def newest_ms(self, topic: str) -> int | None:
        """The largest timestamp of the messages of a topic; ``None`` if it has none."""
        with self._admin() as admin:
            from kafka.admin import OffsetSpec

            _, partitions = self._describe(admin, topic)
            newest = admin.list_partition_offsets(dict.fromkeys(partitions, OffsetSpec.MAX_TIMESTAMP))
        return max((one.timestamp for one in newest.values() if one.timestamp >= 0), default=None)

    def first_since(self, topic: str, partitions: int, at_ms: int) -> tuple[FirstMessage | None, ...]:
        """By partition, the first message that is not older than a point in time; ``None`` for none."""
        with self._admin() as admin:
            from kafka import TopicPartition

            wanted = [TopicPartition(topic, number) for number in range(partitions)]
            found = admin.list_partition_offsets(dict.fromkeys(wanted, at_ms))
        return tuple(
            FirstMessage(int(one.offset), int(one.timestamp)) if one.offset >= 0 else None
            for one in (found[partition] for partition in wanted)
        )

    def topics(self) -> list[str]:
        """The names of the topics that this user may see, without Kafka's own."""
        with self._admin() as admin:
            return sorted(name for name in admin.list_topics() if not name.startswith(_INTERNAL))

    def newest_messages(self, topic: str, count: int) -> list[Message]:
        """The newest messages of each partition, in their order.

        :param count: how many of a partition, at most. Messages that are gone, or that belong to
            a transaction that was aborted, count as well.
        :raises UnknownRelation: there is no such topic.
        :raises ServerUnreachable: the broker does not answer, or refuses.
        """
        offsets = self.offsets(topic, committed=True)
        from kafka import KafkaConsumer, TopicPartition

        ends = {TopicPartition(topic, number): end for number, end in enumerate(offsets.ends)}
        messages: list[Message] = []
        with self._client(partial(KafkaConsumer, **_SAMPLING)) as consumer:
            consumer.assign(list(ends))
            for (partition, end), start in zip(ends.items(), offsets.starts, strict=True):
                consumer.seek(partition, max(start, end - count))
            deadline = time.monotonic() + _SAMPLE_S
            while time.monotonic() < deadline and any(
                consumer.position(partition) < end for partition, end in ends.items()
            ):
                for fetched in consumer.poll(timeout_ms=_POLL_MS).values():
                    messages += [Message(one.key, one.value) for one in fetched]
        return messages

    def _describe(self, admin: Any, topic: str) -> tuple[str, list[Any]]:
        """The id of a topic, and its partitions in their order."""
        from kafka import TopicPartition
        from kafka.errors import for_code

        (found,) = admin.describe_topics([topic])
        code = found["error_code"]
        if code == _UNKNOWN_TOPIC:
            raise UnknownRelation(
                f"there is no topic {topic} on {self.servers}",
                where=self.where,
                why="it does not exist, or this user may not see it",
                fix="correct the topic in the source's meta.arctic, or create it",
            )
        if code:
            raise for_code(code)(f"topic {topic}")
        numbers = sorted(int(one["partition_index"]) for one in found["partitions"])
        made = uuid.UUID(str(found.get("topic_id") or _NO_ID))
        # As Kafka's own tools print it.
        shown = urlsafe_b64encode(made.bytes).decode().rstrip("=") if made != _NO_ID else ""
        return shown, [TopicPartition(topic, number) for number in numbers]

    def _admin(self) -> contextlib.AbstractContextManager[Any]:
        """An administrative client for a block."""

        def create(**settings: Any) -> Any:
            from kafka import KafkaAdminClient

            return KafkaAdminClient(**settings)

        return self._client(create)

    @contextlib.contextmanager
    def _client(self, create: Callable[..., Any]) -> Iterator[Any]:
        """A client for the block. Errors of the block are those of this package."""
        try:
            from kafka.errors import KafkaError
        except ImportError as error:
            raise PackageMissing(
                "the package kafka-python is not installed",
                where=self.where,
                why="the offsets of a topic are looked up with it",
                fix="pip install 'dbt-arctic[kafka]'",
            ) from error
        settings = client_settings(self.properties, self.where)
        settings.setdefault("bootstrap_timeout_ms", _BOOTSTRAP_MS)
        client = None
        with _logged() as logged:
            try:
                client = create(bootstrap_servers=self.servers.split(","), **settings)
                yield client
            except ArcticError:
                raise
            except (KafkaError, OSError, ValueError) as error:
                raise ServerUnreachable(
                    f"Kafka at {self.servers} cannot be read",
                    where=self.where,
                    why="; ".join(dict.fromkeys([str(error), *logged[:_SHOWN]])),
                    fix="check servers in the source's meta.arctic or after --kafka, and kafka in the "
                    "profile; run again. Nothing was written",
                ) from error
            finally:
                if client is not None:
                    client.close()


@contextlib.contextmanager
def _logged() -> Iterator[list[str]]:
    """Collect the errors that the client only logs in this process, such as a login that was refused.

    They are a part of the error that is raised, so they are not printed as well.
    """
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger, handler = logging.getLogger("kafka"), Collector(logging.ERROR)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


__all__ = ["KafkaBroker"]
