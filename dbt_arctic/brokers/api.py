"""The interface of a message broker for the rest of dbt-arctic."""

from __future__ import annotations

from typing import NamedTuple, Protocol

REGISTRY_PREFIX = "schema.registry."
"""Begins those properties of the profile's ``kafka`` that configure a schema registry."""


class TopicOffsets(NamedTuple):
    """What a topic holds at one point in time.

    :param topic_id: assigned by the broker when the topic was created; empty if it does not have ids.
    :param starts: by partition, the offset of the oldest message that is retained.
    :param ends: by partition, the offset after the newest message.
    """

    topic_id: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


class FirstMessage(NamedTuple):
    """The first message of a partition at or after a point in time: its offset and its timestamp."""

    offset: int
    at_ms: int


class Message(NamedTuple):
    """The key and the value of a message; ``None`` if it has none."""

    key: bytes | None
    value: bytes | None


class Broker(Protocol):
    """A cluster of message brokers."""

    def offsets(self, topic: str, committed: bool) -> TopicOffsets:
        """Look up the offsets of all partitions of a topic, the ends after the starts.

        :param committed: whether a partition ends before the first message of an open transaction.
        :raises UnknownRelation: there is no such topic.
        :raises ServerUnreachable: the broker does not answer, or refuses.
        """
        ...

    def newest_ms(self, topic: str) -> int | None:
        """The largest timestamp of the messages of a topic; ``None`` if it has none.

        :raises UnknownRelation: there is no such topic.
        :raises ServerUnreachable: the broker does not answer, or refuses.
        """
        ...

    def first_since(self, topic: str, partitions: int, at_ms: int) -> tuple[FirstMessage | None, ...]:
        """By partition, the first message that is not older than a point in time; ``None`` for none.

        :param partitions: the number of partitions, as ``offsets`` has found it.
        :raises ServerUnreachable: the broker does not answer, or refuses.
        """
        ...


class SchemaRegistry(Protocol):
    """The schemas with which messages were written."""

    def schema(self, number: int) -> str | None:
        """The schema of Avro with an id, as JSON; ``None`` if there is none.

        :raises ServerUnreachable: the registry does not answer, or refuses.
        :raises ConfigError: the schema is not one of Avro.
        """
        ...


__all__ = ["Broker", "FirstMessage", "Message", "SchemaRegistry", "TopicOffsets"]
