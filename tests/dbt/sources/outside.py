"""What is outside of the warehouse: a topic, a folder and two tables of a database, and what they hold.

All of them are real. Each act also changes what an oracle knows: `Outside.now` is the state that a run must
read.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.dbt.keyed.database_servers import Server, run
from tests.dbt.keyed.kafka_topics import Topic

BEGIN_S = int(time.time()) - 86_400
"""Yesterday, where the clock of the stories begins. It goes on by a second with each act. The broker deletes
messages that are older than a week, and refuses those of the future."""
OVERLAP_S = 300
"""The default overlap of a cursor that is a time: no transaction is open for longer."""
KEYS = 6
EVENTS_EACH = 3


@dataclass(frozen=True)
class Delivered:
    """A message that a reader of committed transactions sees.

    :param at_ms: its time stamp. No two messages have the same one, except repetitions.
    :param status: ``None`` for a tombstone.
    """

    partition: int
    offset: int
    key: int
    at_ms: int
    status: str | None


@dataclass(frozen=True)
class Landed:
    """A file: what identifies it, and its rows."""

    path: str
    modified_ms: int
    rows: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class State:
    """What is there at one time.

    :param starts: the oldest offset of each partition.
    :param ends: the next offset of each partition.
    """

    sent: tuple[Delivered, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    files: tuple[Landed, ...]
    accounts: Mapping[int, str]
    events: tuple[int, ...]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(file.path for file in self.files)


@dataclass
class Outside:
    """The real components, and acts on them.

    :param folder: where files land.
    """

    chance: random.Random
    topic: Topic
    server: Server
    folder: Path
    names: str
    sent: list[Delivered] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0, 0])
    ends: list[int] = field(default_factory=lambda: [0, 0])
    files: dict[str, Landed] = field(default_factory=dict)
    away: dict[str, Landed] = field(default_factory=dict)
    accounts: dict[int, str] = field(default_factory=dict)
    events: list[int] = field(default_factory=list)
    ticks: int = 0
    numbers: int = 0
    _late: tuple[Any, int, int, str] | None = None

    def __post_init__(self) -> None:
        (self.folder / "away").mkdir(parents=True)
        (self.folder / "clicks").mkdir()
        self.server.sql(
            f"CREATE TABLE accounts_{self.names} (id int PRIMARY KEY, name text, updated_at timestamptz)",
            f"CREATE TABLE events_{self.names} (id serial PRIMARY KEY, at timestamptz)",
        )

    @property
    def now(self) -> State:
        return State(
            tuple(self.sent),
            tuple(self.starts),
            tuple(self.ends),
            tuple(self.files.values()),
            dict(self.accounts),
            tuple(self.events),
        )

    def close(self) -> None:
        if self._late is not None:
            self._late[0].close()

    def act(self, name: str) -> str:
        """Do something; what it was, for the story."""
        self.ticks += 1
        if self._late is not None and self.ticks > self._late[1] + OVERLAP_S // 2:
            self.commit()
        told = getattr(self, name)()
        return name if told is None else f"{name} {told}"

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    # Kafka

    def send(self, key: int, status: str | None, at_ms: int, producer: Any = None) -> Delivered:
        # A repetition is in the partition of the first one, as long as there are no more partitions.
        partition = key % len(self.ends)
        value = None if status is None else json.dumps({"status": status}).encode()
        made = (producer or self.topic.producer).send(
            self.topic.name, key=str(key).encode(), value=value, partition=partition, timestamp_ms=at_ms
        )
        sent = Delivered(partition, made.get(30).offset, key, at_ms, status)
        assert sent.offset == self.ends[partition]
        self.ends[partition] += 1
        return sent

    @property
    def next_ms(self) -> int:
        return (BEGIN_S + self.number()) * 1000

    def status(self) -> str | None:
        return None if self.chance.random() < 0.2 else f"s{self.number()}"

    def produce(self) -> str:
        for _ in range(self.chance.randrange(1, 5)):
            self.sent.append(self.send(self.chance.randrange(KEYS), self.status(), self.next_ms))
        return str(self.sent[-1])

    def deliver_again(self) -> None:
        """A producer repeats messages, also older ones than the newest of a key."""
        if self.sent:
            for one in self.chance.choices(self.sent, k=2):
                self.sent.append(self.send(one.key, one.status, one.at_ms))

    def transaction(self) -> str:
        """Messages and a marker in each partition; an aborted one leaves gaps only."""
        is_committed = self.chance.random() < 0.5
        with self.topic.transaction() as producer:
            keys = self.chance.choices(range(KEYS), k=2)
            sent = [self.send(key, self.status(), self.next_ms, producer) for key in keys]
            if is_committed:
                producer.commit_transaction()
                self.sent += sent
            else:
                producer.abort_transaction()
        for partition in {one.partition for one in sent}:
            self.ends[partition] += 1
        # The coordinator writes markers after it has answered.
        while self.topic.ends() != self.ends:
            time.sleep(0.01)
        return "committed" if is_committed else "aborted"

    def add_partition(self) -> None:
        if len(self.ends) < 4:
            self.topic.add_partition()
            self.ends.append(0)
            self.starts.append(0)

    def retention(self) -> str:
        partition = self.chance.randrange(len(self.ends))
        start = self.chance.randint(self.starts[partition], self.ends[partition])
        if start > self.starts[partition]:
            self.topic.delete_before(partition, start)
        self.starts[partition] = start
        self.sent = [one for one in self.sent if one.partition != partition or one.offset >= start]
        return f"partition {partition} before {start}"

    # Files

    def _write(self, path: str, modified_ms: int) -> Landed:
        number = int(path.partition(".")[0].rpartition("f")[2])
        rows = tuple((number * 10 + at, f"c{self.number()}") for at in range(self.chance.randrange(1, 4)))
        target = self.folder / "clicks" / path
        target.parent.mkdir(exist_ok=True)
        hidden = target.with_name(f"_{target.name}")
        text = "".join(json.dumps({"id": key, "city": city}) + "\n" for key, city in rows)
        hidden.write_text(text, encoding="utf-8")
        os.utime(hidden, (modified_ms / 1000, modified_ms / 1000))
        hidden.rename(target)
        return Landed(path, modified_ms, rows)

    def add_file(self) -> str:
        """Some come late, with an old time stamp."""
        number = self.number()
        path = f"day=2026-01-0{1 + number % 3}/f{number}.json"
        is_late = self.chance.random() < 0.3
        self.files[path] = self._write(path, number if is_late else (BEGIN_S + number) * 1000)
        return path

    def change_file(self) -> str:
        if not self.files:
            return ""
        path = self.chance.choice(sorted(self.files))
        self.files[path] = self._write(path, (BEGIN_S + self.number()) * 1000)
        return path

    def vanish(self) -> str:
        if not self.files:
            return ""
        path = self.chance.choice(sorted(self.files))
        (self.folder / "clicks" / path).rename(self._aside(path))
        self.away[path] = self.files.pop(path)
        return path

    def come_back(self) -> str:
        if not self.away:
            return ""
        path = self.chance.choice(sorted(self.away))
        self._aside(path).rename(self.folder / "clicks" / path)
        self.files[path] = self.away.pop(path)
        return path

    def _aside(self, path: str) -> Path:
        return self.folder / "away" / path.replace("/", "_")

    # The database

    @property
    def time(self) -> str:
        return f"to_timestamp({BEGIN_S + self.ticks})"

    def write_row(self) -> str:
        name = f"n{self.number()}"
        key = self.chance.randrange(KEYS)
        if self._late is not None and key == self._late[2]:
            return "locked"
        self.server.sql(self._put(key, name, self.time))
        self.accounts[key] = name
        return f"{key} {name}"

    def _put(self, key: int, name: str, time: str) -> str:
        return (
            f"INSERT INTO accounts_{self.names} VALUES ({key}, '{name}', {time}) "
            f"ON CONFLICT (id) DO UPDATE SET name = '{name}', updated_at = {time}"
        )

    def delete_row(self) -> None:
        keys = sorted(set(self.accounts) - {self._late[2] if self._late else -1})
        if keys:
            key = self.chance.choice(keys)
            self.server.sql(f"DELETE FROM accounts_{self.names} WHERE id = {key}")
            del self.accounts[key]

    def begin(self) -> None:
        """A transaction chooses its time now, and commits later."""
        if self._late is None:
            opened, key, name = self.server.connect(), self.chance.randrange(KEYS), f"late{self.number()}"
            run(opened, "BEGIN", self._put(key, name, self.time))
            self._late = (opened, self.ticks, key, name)

    def commit(self) -> None:
        if self._late is not None:
            opened, _, key, name = self._late
            with contextlib.closing(opened):
                run(opened, "COMMIT")
            self.accounts[key] = name
            self._late = None

    def add_events(self) -> None:
        for _ in range(self.chance.randrange(1, EVENTS_EACH)):
            ((number,),) = self.server.sql(
                f"INSERT INTO events_{self.names} (at) VALUES ({self.time}) RETURNING id"
            )
            self.events.append(number)


ACTS = (
    *(["produce"] * 4),
    *("deliver_again", "transaction", "add_partition", "retention"),
    *("add_file", "add_file", "add_file", "change_file", "vanish", "come_back"),
    *("write_row", "write_row", "write_row", "delete_row", "begin", "commit", "add_events", "add_events"),
)
DURING = ("produce", "add_file", "write_row", "delete_row", "commit", "add_events")
"""What may happen while a run reads. A file that vanishes then fails the run, which is no finding."""


__all__ = ["ACTS", "DURING", "Delivered", "Landed", "Outside", "State"]
