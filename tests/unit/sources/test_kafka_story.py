"""Random stories of models over a simulated topic: each message is read once, or its loss is reported."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from dbt_arctic.brokers.api import TopicOffsets
from dbt_arctic.engine.api import SourceRead
from dbt_arctic.errors import VersionUnavailable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.sources import kafka_pull
from dbt_arctic.sources.kafka_pull import KafkaPlanner
from dbt_arctic.sources.kafka_settings import KafkaSource, OnDataLoss
from dbt_arctic.store.context import Context

STORIES, STEPS = 60, 60
ACTS = [*["produce", "run"] * 3, "gap", "open", "close", "partition", "retention", "recreate"]
ACTS += ["end", "rollback", "clone", "full"]
Message = tuple[str, int, int]
"""The id of its topic, its partition and its offset."""


@dataclass
class Cluster:
    """A topic: of each partition, where it starts, and which offsets have a message (others are gaps).

    :param meanwhile: what happens while a run looks up offsets and reads.
    """

    ids: int = 0
    starts: list[int] = field(default_factory=lambda: [0])
    logs: list[list[bool]] = field(default_factory=lambda: [[]])
    open_at: dict[int, int] = field(default_factory=dict)
    lookups: int = 0
    meanwhile: Callable[[], None] = lambda: None
    read: list[Message] = field(default_factory=list)

    @property
    def topic_id(self) -> str:
        return f"id{self.ids}"

    def offsets(self, topic: str, committed: bool) -> TopicOffsets:
        assert committed
        self.lookups += 1
        ends = [self.open_at.get(at, len(log)) for at, log in enumerate(self.logs)]
        seen = TopicOffsets(self.topic_id, tuple(self.starts), tuple(ends))
        self.meanwhile()
        return seen

    def retained(self) -> set[Message]:
        """The messages that the topic has."""
        return {
            (self.topic_id, at, offset)
            for at, log in enumerate(self.logs)
            for offset in range(self.starts[at], len(log))
            if log[offset]
        }

    def create_source_view(self, name: str, source: SourceRead) -> None:
        """Spark's reader: exactly the planned offsets, and an error if one is no longer there."""
        begin, end = (json.loads(source.options[f"{one}Offsets"])["orders"] for one in ("starting", "ending"))
        self.read = []
        for at in map(int, begin):
            first, last = begin[str(at)], end[str(at)]
            if first < self.starts[at]:
                raise MessagesDeleted(at)
            self.read += [
                (self.topic_id, at, offset) for offset in range(first, last) if self.logs[at][offset]
            ]


class MessagesDeleted(Exception):
    """Spark found that messages were deleted between the plan and the read."""


class Ended(Exception):
    """The process ended here."""


@dataclass
class Table:
    """The commits of a model's table: the rows after each, and what it had consumed."""

    commits: list[tuple[tuple[Message, ...], dict[str, Consumed]]] = field(default_factory=lambda: [((), {})])

    def run(
        self, cluster: Cluster, *, full: bool = False, ends: str = "", on_loss: OnDataLoss = "fail"
    ) -> list[str]:
        source = KafkaSource(
            "shop.orders", "broker:1", "orders", "text", {"value": "string"}, on_data_loss=on_loss
        )
        context = Context(cast(Any, None), cast(Any, None), cast(Any, None), cast(Any, None))
        planner = KafkaPlanner(context, lambda: cast(Any, cluster), cast(Any, cluster), source)
        rows, consumed = ((), {}) if full else self.commits[-1]
        cluster.lookups, cluster.read = 0, []
        planned = planner.plan(consumed, "orders", "consume")
        assert cluster.lookups == 1
        if ends == "planned":
            raise Ended
        if planned.pull.changed:
            made = {**consumed, planned.pull.upstream.dotted: planned.pull.consumed}
            self.commits.append(((*rows, *cluster.read), made))
        else:
            assert not cluster.read
        if ends == "committed":
            raise Ended
        return list(planned.warnings)


def play_story(seed: int) -> str:
    """A story. Returns what went wrong; empty if nothing did."""
    chance = random.Random(seed)
    cluster, tables = Cluster(), [Table()]
    for step in range(STEPS):
        act = chance.choice(ACTS)
        at, table = chance.randrange(len(cluster.logs)), chance.choice(tables)
        if act == "produce":
            cluster.logs[at] += [True] * chance.randrange(1, 4)
        elif act == "gap":  # the marker of a transaction, or messages that were compacted or aborted
            cluster.logs[at] += [False] * chance.randrange(1, 3)
        elif act == "open":
            cluster.open_at.setdefault(at, len(cluster.logs[at]))
        elif act == "close":
            cluster.open_at.pop(at, None)
        elif act == "partition" and len(cluster.logs) < 5:
            cluster.logs.append([])
            cluster.starts.append(0)
        elif act == "retention":
            cluster.starts[at] = chance.randint(cluster.starts[at], len(cluster.logs[at]))
        elif act == "recreate" and chance.random() < 0.3:
            cluster.ids += 1
            cluster.starts, cluster.logs, cluster.open_at = [0], [[]], {}
        elif act == "rollback" and len(table.commits) > 1:
            del table.commits[chance.randrange(1, len(table.commits)) :]
        elif act == "clone":
            tables.append(Table(list(table.commits)))
        elif act in ("run", "end", "full"):
            full, ends = act == "full", chance.choice(["planned", "committed"]) if act == "end" else ""
            is_late = chance.random() < 0.1

            def meanwhile(is_late: bool = is_late) -> None:
                cluster.logs[0].append(True)
                if is_late:
                    cluster.starts[0] = len(cluster.logs[0]) - 1

            cluster.meanwhile = meanwhile
            found = _run(cluster, table, full=full, ends=ends)
            cluster.meanwhile = lambda: None
            if found:
                return f"step {step}, {act}: {found}"
    return ""


def _run(cluster: Cluster, table: Table, *, full: bool, ends: str) -> str:
    known = set(table.commits[-1][0])
    missing, is_short = _missing(cluster, table), any(cluster.starts)
    try:
        warnings = table.run(cluster, full=full, ends=ends)
    except Ended:
        warnings = []
    except MessagesDeleted:
        return "" if set(table.commits[-1][0]) == known else "a run that failed has consumed messages"
    except VersionUnavailable as error:
        if not missing:
            return f"nothing was lost, and the run failed: {error}"
        if "shorter" in str(error) or full:
            return f"unexpected: {error}"
        cluster.meanwhile = lambda: cluster.logs[0].append(True)
        warnings = table.run(cluster, on_loss="skip")
        if not warnings:
            return "a loss was skipped without a warning"
        missing, ends = [], ""
    rows = list(table.commits[-1][0])
    if len(set(rows)) != len(rows):
        return "a message was read twice"
    if missing and not full and not ends:
        return f"a loss was not reported: {missing}"
    if full and not ends and is_short != any("oldest message" in one for one in warnings):
        return f"what is not available was not reported: {warnings}"
    if ends == "planned":
        return "" if set(rows) == known else "a run that was cut off has consumed messages"
    visible = {
        (name, at, offset)
        for name, at, offset in cluster.retained()
        if offset < cluster.open_at.get(at, len(cluster.logs[at]))
        and not (at == 0 and offset >= _before(cluster))
    }
    behind = visible - set(rows)
    return f"not read: {sorted(behind)}" if behind else ""


def _before(cluster: Cluster) -> int:
    """The end of partition 0 before the message that was written during the lookup."""
    return len(cluster.logs[0]) - 1


def _missing(cluster: Cluster, table: Table) -> list[str]:
    """What the model has lost, from the cluster's point of view."""
    consumed = table.commits[-1][1].get("kafka.shop.orders")
    if consumed is None:
        return []
    if consumed.table_id != f"topic:{cluster.topic_id}":
        return ["the topic"]
    read = [int(one) for one in consumed.version.partition(":")[2].split(",")]
    read += [0] * (len(cluster.starts) - len(read))
    return [f"{at}" for at, start in enumerate(cluster.starts) if start > read[at]]


def test_each_message_is_read_once_in_random_stories() -> None:
    assert [found for found in map(play_story, range(STORIES)) if found] == []


def _ends_looked_up_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant of Spark's `latest`: what is read and what is committed have ends of their own."""
    plan = kafka_pull.plan_offsets

    def twice(source: Any, topic: TopicOffsets, last: Any, model: str) -> Any:
        first = plan(source, topic, last, model)
        later = topic._replace(ends=tuple(end + (at == 0) for at, end in enumerate(topic.ends)))
        second = plan(source, later, last, model)
        return type(first)(first.ranges, second.consumed, first.warnings)

    monkeypatch.setattr(kafka_pull, "plan_offsets", twice)


def _offsets_apart_from_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant of a checkpoint: offsets have a place of their own, which a cut-off run reaches or not."""
    place: dict[str, Consumed] = {}
    run = Table.run

    def apart(table: Table, cluster: Cluster, **how: Any) -> list[str]:
        rows, _ = table.commits[-1]
        if not how.get("full") and place:
            table.commits[-1] = (rows, dict(place))
        try:
            return run(table, cluster, **how)
        finally:
            if how.get("ends") != "committed":
                place.update(table.commits[-1][1])

    monkeypatch.setattr(Table, "run", apart)


def _partitions_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant of a list of partitions that was made once."""
    monkeypatch.setattr(
        Cluster,
        "offsets",
        lambda cluster, topic, committed, offsets=Cluster.offsets: TopicOffsets(
            *(one if isinstance(one, str) else one[:1] for one in offsets(cluster, topic, committed))
        ),
    )


def _losses_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant of ``failOnDataLoss: false``: a run begins where the topic does."""
    plan = kafka_pull.plan_offsets

    def lenient(source: Any, topic: TopicOffsets, last: Any, model: str) -> Any:
        found = plan(KafkaSource(**{**source.__dict__, "on_data_loss": "skip"}), topic, last, model)
        return type(found)(found.ranges, found.consumed, ())

    monkeypatch.setattr(kafka_pull, "plan_offsets", lenient)


@pytest.mark.parametrize(
    "mutant", [_ends_looked_up_twice, _offsets_apart_from_rows, _partitions_forgotten, _losses_skipped]
)
def test_a_wrong_protocol_is_found_by_the_stories(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert any(map(play_story, range(STORIES)))
