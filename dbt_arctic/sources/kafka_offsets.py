"""Decides which offsets of a topic a model has to read, and what of the topic it has lost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dbt_arctic.brokers.api import TopicOffsets
from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.version import TOPIC, Consumed
from dbt_arctic.sources.kafka_settings import KafkaSource

_OFFSETS, _TRUNCATED = "offsets:", ";truncated:"
_SHOWN = 5


class Range(NamedTuple):
    """Offsets of a partition: from ``start`` up to, but not including, ``end``."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class OffsetPlan:
    """What a model reads of a topic in one run.

    :param ranges: the partitions with something to read.
    :param consumed: the topic and the next offsets, to be committed with the rows.
    :param warnings: what is not read because the topic no longer has it.
    """

    ranges: tuple[Range, ...]
    consumed: Consumed
    warnings: tuple[str, ...] = ()


def plan_offsets(source: KafkaSource, topic: TopicOffsets, last: Consumed | None, model: str) -> OffsetPlan:
    """Plan what a model reads of a topic.

    :param topic: its offsets now.
    :param last: what the model has consumed; ``None`` if it has consumed nothing. It then reads all messages
        that the topic retains.
    :raises VersionUnavailable: the topic has lost messages that the model has not read, and the source does
        not have ``on_data_loss: skip``; or it is not known which messages the model has read.
    """
    is_other = last is not None and last.table_id != topic_key(source, topic)
    if is_other and source.on_data_loss == "fail":
        raise _other_topic(source, model)
    warnings: list[str] = []
    if is_other:
        warnings.append(
            f"The topic {source.topic} is not the one that {model} has read. It is read from its oldest "
            "message."
        )
    before = None if last is None or is_other else decode(last)
    starts = list(topic.starts)
    if before is None:
        missing = [Range(at, 0, start) for at, start in enumerate(starts) if start]
        if missing:
            warnings.append(
                f"{model} reads the topic {source.topic} from the oldest message that it retains. "
                f"Earlier ones are not available: {_shown(missing)}."
            )
    else:
        _refuse_shorter(source, topic, before, model)
        before = [*before, *([0] * (len(starts) - len(before)))]
        lost = [
            Range(at, read, start)
            for at, (read, start) in enumerate(zip(before, starts, strict=True))
            if start > read
        ]
        if lost and source.on_data_loss == "fail":
            raise _lost(source, lost, model)
        if lost:
            warnings.append(
                f"{model} skips messages of the topic {source.topic} that were deleted before it has read "
                f"them: {_shown(lost)}."
            )
        starts = [max(read, start) for read, start in zip(before, starts, strict=True)]
    # While a transaction is open, messages may be deleted beyond the end that is visible.
    ends = [max(start, end) for start, end in zip(starts, topic.ends, strict=True)]
    ranges = tuple(
        Range(at, start, end) for at, (start, end) in enumerate(zip(starts, ends, strict=True)) if end > start
    )
    truncated = "" if last is None or is_other else truncated_at(last)
    consumed = with_truncation(Consumed(topic_key(source, topic), encode(ends)), truncated)
    return OffsetPlan(ranges, consumed, tuple(warnings))


def topic_key(source: KafkaSource, topic: TopicOffsets) -> str:
    """The identity of a topic in what a model has consumed: its id, or its name if it has none."""
    return TOPIC + (topic.topic_id or source.topic)


def encode(offsets: Sequence[int]) -> str:
    """The next offset of each partition as text.

    >>> encode([1204, 0])
    'offsets:1204,0'
    """
    return _OFFSETS + ",".join(map(str, offsets))


def decode(consumed: Consumed) -> list[int]:
    """The next offset of each partition.

    >>> decode(Consumed("topic:orders", "offsets:1204,0"))
    [1204, 0]
    """
    offsets = consumed.version.removeprefix(_OFFSETS).partition(_TRUNCATED)[0]
    return [int(part) for part in offsets.split(",")]


def truncated_at(consumed: Consumed | None) -> str:
    """The place of the last truncation of the table whose changes are in a topic; empty for none.

    Events that are older than it and come later change nothing.

    >>> truncated_at(Consumed("topic:orders", "offsets:1204,0;truncated:0017.1.0042"))
    '0017.1.0042'
    """
    return "" if consumed is None else consumed.version.partition(_TRUNCATED)[2]


def with_truncation(consumed: Consumed, place: str) -> Consumed:
    """What was consumed of a topic, with the place of the last truncation; empty for none.

    >>> with_truncation(Consumed("topic:orders", "offsets:1204;truncated:0017"), "0042").version
    'offsets:1204;truncated:0042'
    """
    offsets = consumed.version.partition(_TRUNCATED)[0]
    return replace(consumed, version=f"{offsets}{_TRUNCATED}{place}" if place else offsets)


def _refuse_shorter(source: KafkaSource, topic: TopicOffsets, before: Sequence[int], model: str) -> None:
    if len(topic.ends) < len(before):
        why = f"the number of its partitions is {len(topic.ends)}, and {model} has read {len(before)}"
    else:
        short = [
            f"partition {at} ends at offset {end}, and {model} has read up to {read}"
            for at, (read, end) in enumerate(zip(before, topic.ends, strict=False))
            if end < read and topic.starts[at] < read
        ]
        if not short:
            return
        why = "; ".join(short[:_SHOWN])
    raise VersionUnavailable(
        f"the topic {source.topic} is shorter than what {model} has read of it",
        where=model,
        why=f"{why}. It was created again or truncated, or kafka.isolation.level was changed",
        fix=_read_again(model),
    )


def _other_topic(source: KafkaSource, model: str) -> VersionUnavailable:
    return VersionUnavailable(
        f"the topic {source.topic} is not the one that {model} has read",
        where=model,
        why="its id has changed: it was deleted and created again, or the source names another "
        "topic or cluster",
        fix=f"{_read_again(model)}; or keep the table and read the new topic from its oldest message: set "
        "on_data_loss: skip in the source's meta.arctic for one run",
    )


def _lost(source: KafkaSource, lost: Sequence[Range], model: str) -> VersionUnavailable:
    return VersionUnavailable(
        f"the topic {source.topic} no longer has messages that {model} has not read: {_shown(lost)}",
        where=model,
        why="they were deleted by the topic's retention, or by its owner",
        fix="keep the table without them, and read on from the oldest message: set on_data_loss: skip in the "
        f"source's meta.arctic for one run; or {_read_again(model)}",
    )


def _read_again(model: str) -> str:
    return (
        "build the table from the messages that the topic still has, without those that it had before: "
        f"dbt run --full-refresh --select {model}"
    )


def _shown(ranges: Sequence[Range]) -> str:
    shown = [f"partition {one.partition}: offsets {one.start} to {one.end - 1}" for one in ranges[:_SHOWN]]
    rest = len(ranges) - len(shown)
    return ", ".join(shown) + (f" and those of {counted(rest, 'other partition')}" if rest else "")


__all__ = [
    "OffsetPlan",
    "Range",
    "decode",
    "encode",
    "plan_offsets",
    "topic_key",
    "truncated_at",
    "with_truncation",
]
