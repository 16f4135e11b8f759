"""What a model has not read of a source, and since when: files by their times, messages by their offsets."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from dbt_arctic.brokers.api import FirstMessage, TopicOffsets
from dbt_arctic.catalog.api import ListedFile, TableState
from dbt_arctic.errors import ServerUnreachable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.sources.database_preview import TablePreview
from dbt_arctic.sources.kafka_offsets import encode
from dbt_arctic.sources.kafka_settings import parse_kafka
from dbt_arctic.sources.unread import (
    NO_POSITIONS,
    Positions,
    RefreshSize,
    Unread,
    unread_files,
    unread_messages,
    unread_rows,
)
from tests.unit.sources.test_file_pull import PROD, SOURCE, Lake, Model, file, lake_of

SETTINGS = {"from": "kafka", "servers": "here:1", "topic": "orders", "format": "text"}
TOPIC = parse_kafka("shop.orders", SETTINGS, {}, {}, "models/shop.yml")


class Timed(Lake):
    """A lake whose file lists were all written at one time."""

    at_ms = 50

    def load_table(self, schema: str, name: str) -> TableState | None:
        state = super().load_table(schema, name)
        if state is None:
            return None
        return replace(
            state, snapshots=tuple(replace(one, timestamp_ms=self.at_ms) for one in state.snapshots)
        )


def test_a_file_waits_since_its_modification_but_not_since_before_the_last_read() -> None:
    lake, model = Timed(lake_of(file("a", 10), ListedFile("/data/b", 20, 5)).folder), Model(PROD)

    def unread() -> Unread:
        return unread_files(cast(Any, lake), SOURCE, "clicks", model.name, model.consumed)

    everything = RefreshSize("file", 2, 6)
    assert unread() == Unread("landing.clicks", "file", 2, 10, 6, full_refresh=everything)
    model.run(lake)
    assert unread() == Unread("landing.clicks", "file", 0, None, 0, full_refresh=everything)
    lake.folder["/data/c"] = file("c", 70)
    assert unread().since_ms == 70
    lake.folder["/data/d"] = file("d", 30)
    assert unread().since_ms == 50, "the folder did not have it when it was read"
    del lake.folder["/data/c"]
    model.run(lake, commits=False)
    del lake.folder["/data/d"]
    assert "disappeared before clicks read it" in unread().problem


@dataclass
class Cluster:
    """A topic with the time stamps of its messages by partition; ``None`` is a gap."""

    logs: list[list[int | None]]
    starts: list[int] = field(default_factory=list)
    is_down: bool = False

    def offsets(self, topic: str, committed: bool) -> TopicOffsets:
        if self.is_down:
            raise ServerUnreachable("Kafka at here:1 cannot be read")
        starts = self.starts or [0] * len(self.logs)
        return TopicOffsets("id", tuple(starts), tuple(map(len, self.logs)))

    def first_since(self, topic: str, partitions: int, at_ms: int) -> tuple[FirstMessage | None, ...]:
        assert partitions == len(self.logs)
        found = []
        for at, log in enumerate(self.logs):
            start = self.starts[at] if self.starts else 0
            hits = ((o, ms) for o, ms in enumerate(log) if o >= start and ms is not None and ms >= at_ms)
            found.append(next((FirstMessage(*hit) for hit in hits), None))
        return tuple(found)


def unread(cluster: Cluster, read: list[int] | None, read_ms: int | None = None) -> Unread:
    last = None if read is None else Consumed("topic:id", encode(read))
    found = unread_messages(TOPIC, cast(Any, cluster), "orders", last, read_ms)
    if not found.problem:
        # What is read and what is not are the topic.
        ends, starts = list(map(len, cluster.logs)), cluster.starts or [0] * len(cluster.logs)
        assert found.full_refresh == RefreshSize("message", sum(ends) - sum(starts))
        assert found.positions == Positions(",".join(map(str, read or ())), ",".join(map(str, ends)))
    return replace(found, positions=NO_POSITIONS, full_refresh=None)


def test_messages_wait_since_the_time_stamp_of_the_oldest_one() -> None:
    cluster = Cluster([[10, 20, 90], [15, 80]])
    assert unread(cluster, None) == Unread("shop.orders", "message", 5, 10)
    assert unread(cluster, [3, 2], 85) == Unread("shop.orders", "message")
    assert unread(cluster, [2, 2], 85) == Unread("shop.orders", "message", 1, 90)
    assert unread(cluster, [2, 1], 30) == Unread("shop.orders", "message", 2, 80)
    # They arrived while the run of this commit was active, or their producer's clock is wrong.
    assert unread(cluster, [1, 1], 85) == Unread("shop.orders", "message", 3, 85)
    assert unread(cluster, [1, 2], 85) == Unread("shop.orders", "message", 2, 85)
    cluster.logs[0].append(None)
    assert unread(cluster, [3, 2], 95) == Unread("shop.orders", "message", 1, 95)
    cluster.starts = [0, 2]
    assert "no longer has messages" in unread(cluster, [3, 1], 95).problem
    assert unread(cluster, None).since_ms == 10
    cluster.is_down = True
    assert unread(cluster, [3, 1], 95).problem == "Kafka at here:1 cannot be read"


@pytest.mark.parametrize("seed", range(30))
def test_the_age_of_messages_is_exact_if_none_arrived_during_a_run(seed: int) -> None:
    choose = random.Random(seed)
    read_ms = 500
    logs: list[list[int | None]] = []
    read = []
    for _ in range(3):
        before = sorted(choose.randrange(read_ms) for _ in range(choose.randrange(4)))
        after = sorted(choose.randrange(read_ms, 1000) for _ in range(choose.randrange(4)))
        logs.append([*before, *after])
        read.append(len(before))
    waiting = [ms for log, start in zip(logs, read, strict=True) for ms in log[start:] if ms is not None]
    found = unread(Cluster(logs), read, read_ms)
    assert (found.count, found.since_ms) == (len(waiting), min(waiting, default=None))


def test_a_topic_with_markers_of_transactions_only_has_no_message_that_waits() -> None:
    assert unread(Cluster([[None, None], []]), None).since_ms is None


@pytest.mark.parametrize(
    ("preview", "since"),
    [
        (TablePreview("accounts", "crm.accounts", reads_all=True, rows=5, all_rows=5), 70),
        (TablePreview("accounts", "crm.accounts", reads_all=False, rows=2, since="10"), 70),
        (TablePreview("accounts", "crm.accounts", reads_all=False, rows=0), None),
    ],
)
def test_rows_of_a_database_wait_since_the_last_read(preview: TablePreview, since: int | None) -> None:
    expected = Unread("crm.accounts", "row", preview.rows, since)
    expected = replace(
        expected, positions=Positions(preview.since), full_refresh=RefreshSize("row", preview.all_rows)
    )
    assert unread_rows(preview, 70) == expected
    assert unread_rows(preview, None).since_ms is None
