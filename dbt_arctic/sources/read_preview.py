"""What the next run of a model would read of a file source or a topic, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.brokers.api import Broker
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.sources.file_settings import FileSource
from dbt_arctic.sources.kafka_offsets import plan_offsets
from dbt_arctic.sources.kafka_settings import KafkaSource, upstream_of
from dbt_arctic.sources.unread import find_unread_files
from dbt_arctic.store.rejected_table import counts, last_rejected, rejected_name


@dataclass(frozen=True)
class ReadPreview:
    """The next run of a model, as far as one source is concerned.

    :param reads_all: whether the model has read nothing of the source yet.
    :param files: how many files it would read.
    :param changed: how many files have changed since the model read them.
    :param rejected: how many rows are stored because they did not fit.
    :param dropped: how many rows were dropped because they did not fit.
    :param problem: why the run would fail; empty if nothing is in its way.
    """

    model: str
    source: str
    reads_all: bool
    files: int
    size_bytes: int
    changed: int
    rejected: int
    dropped: int
    problem: str = ""


@dataclass(frozen=True)
class TopicPreview:
    """The next run of a model, as far as one topic is concerned.

    :param reads_all: whether the model has read nothing of the topic yet.
    :param messages: how many offsets it would read. Markers of transactions count too.
    :param rejected: how many messages are stored because they did not fit.
    :param dropped: how many messages were dropped because they did not fit.
    :param problem: why the run would fail; empty if nothing is in its way.
    """

    model: str
    source: str
    reads_all: bool
    messages: int
    rejected: int
    dropped: int
    problem: str = ""


def preview_read(
    catalog: CatalogReader,
    source: FileSource,
    model: str,
    target: Name,
    consumed: Mapping[str, Consumed],
) -> ReadPreview:
    """What the next run would read.

    :param target: the table of the model.
    :param consumed: what it has consumed, by dotted name.
    """
    unread = find_unread_files(catalog, source, model, target, consumed)
    kept, dropped = count_rejected(catalog, source.name, target, consumed)
    return ReadPreview(
        model,
        source.name,
        unread.reads_all,
        len(unread.files),
        sum(file.size_bytes for file in unread.files),
        unread.changed,
        kept,
        dropped,
        unread.problem,
    )


def preview_topic(
    catalog: CatalogReader,
    source: KafkaSource,
    broker: Broker,
    model: str,
    target: Name,
    consumed: Mapping[str, Consumed],
) -> TopicPreview:
    """What the next run would read of a topic.

    :param target: the table of the model.
    :param consumed: what it has consumed, by dotted name.
    """
    last = consumed.get(upstream_of(source).dotted)
    kept, dropped = count_rejected(catalog, source.name, target, consumed)
    messages, problem = 0, ""
    try:
        topic = broker.offsets(source.topic, source.isolation == "read_committed")
        messages = sum(one.end - one.start for one in plan_offsets(source, topic, last, model).ranges)
    except ArcticError as error:
        problem = error.what
    return TopicPreview(model, source.name, last is None, messages, kept, dropped, problem)


def count_rejected(
    catalog: CatalogReader, source: str, target: Name, consumed: Mapping[str, Consumed]
) -> tuple[int, int]:
    """How many rows of a source a model has rejected: stored ones, and dropped ones."""
    rejected = last_rejected(catalog, rejected_name(target), consumed)
    return (0, 0) if rejected is None else counts(catalog, rejected).get(source, (0, 0))


__all__ = ["ReadPreview", "TopicPreview", "count_rejected", "preview_read", "preview_topic"]
