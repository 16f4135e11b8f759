"""Which offsets of a topic a model reads, in cases that random stories seldom or never have."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dbt_arctic.brokers.api import TopicOffsets
from dbt_arctic.errors import ConfigError, VersionUnavailable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.sources.kafka_offsets import Range, plan_offsets
from dbt_arctic.sources.kafka_pull import KafkaPlanner
from dbt_arctic.sources.kafka_settings import KafkaSource

SOURCE = KafkaSource("shop.orders", "a:1", "orders", "text", {"value": "string"})
SKIPPING = KafkaSource("shop.orders", "a:1", "orders", "text", {"value": "string"}, on_data_loss="skip")


def consumed(*offsets: int, topic: str = "id") -> Consumed:
    return Consumed(f"topic:{topic}", "offsets:" + ",".join(map(str, offsets)))


def test_messages_deleted_beyond_an_open_transaction_are_neither_read_twice_nor_lost_twice() -> None:
    # A transaction is open at offset 3, and everything before offset 8 was deleted.
    plan = plan_offsets(SOURCE, TopicOffsets("id", (8,), (3,)), None, "m")
    assert plan.ranges == ()
    assert plan.consumed == consumed(8)
    assert "partition 0: offsets 0 to 7" in plan.warnings[0]
    again = plan_offsets(SOURCE, TopicOffsets("id", (8,), (3,)), plan.consumed, "m")
    assert (again.ranges, again.consumed, again.warnings) == ((), consumed(8), ())
    later = plan_offsets(SOURCE, TopicOffsets("id", (8,), (11,)), plan.consumed, "m")
    assert later.ranges == (Range(0, 8, 11),)


@pytest.mark.parametrize("source", [SOURCE, SKIPPING])
@pytest.mark.parametrize(
    ("topic", "told"),
    [
        (TopicOffsets("id", (0, 0), (5, 4)), "partition 1 ends at offset 4, and m has read up to 9"),
        (TopicOffsets("id", (0,), (5,)), "the number of its partitions is 1, and m has read 2"),
    ],
)
def test_a_topic_that_has_become_shorter_is_an_error_in_any_case(
    source: KafkaSource, topic: TopicOffsets, told: str
) -> None:
    with pytest.raises(VersionUnavailable) as error:
        plan_offsets(source, topic, consumed(5, 9), "m")
    assert told in str(error.value)
    assert "--full-refresh --select m" in error.value.fix


def test_a_loss_names_its_offsets_and_skipping_it_is_a_warning() -> None:
    topic = TopicOffsets("id", (7, 0, *([3] * 9)), (9, 9, *([3] * 9)))
    with pytest.raises(VersionUnavailable) as error:
        plan_offsets(SOURCE, topic, consumed(5, 9), "m")
    assert "partition 0: offsets 5 to 6, partition 2: offsets 0 to 2" in error.value.what
    assert error.value.what.endswith("and those of 5 other partitions")
    assert "on_data_loss: skip" in error.value.fix
    plan = plan_offsets(SKIPPING, topic, consumed(5, 9), "m")
    assert plan.ranges == (Range(0, 7, 9),)
    assert plan.consumed == consumed(9, 9, *([3] * 9))
    assert "partition 0: offsets 5 to 6" in plan.warnings[0]


def test_a_topic_without_an_id_is_known_by_its_name() -> None:
    topic = TopicOffsets("", (0,), (2,))
    first = plan_offsets(SOURCE, topic, None, "m")
    assert first.consumed == consumed(2, topic="orders")
    assert plan_offsets(SOURCE, topic, first.consumed, "m").ranges == ()
    with pytest.raises(VersionUnavailable, match="its id has changed"):
        plan_offsets(SOURCE, topic, consumed(2), "m")


def test_a_topic_that_was_read_as_another_source_is_not_read_again() -> None:
    class Broker:
        def offsets(self, topic: str, committed: bool) -> TopicOffsets:
            return TopicOffsets("id", (0,), (2,))

    planner = KafkaPlanner(cast(Any, None), cast(Any, None), cast(Any, Broker()), SOURCE)
    with pytest.raises(ConfigError) as error:
        planner.plan({"kafka.old.orders": consumed(1)}, "m", "consume")
    assert "as the source old.orders, and not as shop.orders" in str(error.value)
    # The text of the SQL alone needs no broker.
    silent = KafkaPlanner(cast(Any, None), cast(Any, None), cast(Any, None), SOURCE)
    assert "WHERE false" in silent.plan({}, "m", "describe").pull.sql
