"""A history and its oracle: the intervals that follow from the set of events of a key, in plain Python.

The oracle knows nothing of batches. It takes each event that any batch had, and goes through them in order.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dbt_arctic.compaction.major import compact_major
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.finding import Finding
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.maintenance.rollback import roll_back
from dbt_arctic.maintenance.verify import verify_schema
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.history import HistoryModel, build_history, write_history
from dbt_arctic.refresh.history_config import parse_history
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.state import current_version, load_keyed
from tests.model.world import Disturbance, Process, World

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS


class Event(NamedTuple):
    """:param at: its time, which need not grow with the sequence."""

    key: int
    sequence: int
    at: int
    status: str | None
    note: str | None
    action: str = "U"


class Interval(NamedTuple):
    """A row of the table, as far as a reader needs it to be right."""

    key: int
    sequence: int
    status: str | None
    note: str | None
    valid_from: int
    valid_to: int | None
    updated_at: int
    is_deleted: str


@dataclass(frozen=True)
class Rules:
    """The settings that a story varies."""

    ignores_note: bool = True
    records_deletes: bool = False
    has_times: bool = False
    open_until: int | None = None
    deduplicate_by: str | None = None
    tombstone_retention: str = "400 days"
    buckets: int | None = None
    partition_by: str | None = None

    @property
    def config(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "unique_key": "id",
            "incremental_strategy": "history",
            "sequence_by": "seq",
            "tombstone_retention": self.tombstone_retention,
            "deduplicate_by": self.deduplicate_by,
            "buckets": self.buckets,
            "partition_by": self.partition_by,
        }
        if self.ignores_note:
            found["ignore_cols"] = ["note"]
        if self.records_deletes:
            found["hard_deletes"] = "new_record"
        if self.has_times:
            found["updated_at"] = "at"
        if self.open_until is not None:
            found["dbt_valid_to_current"] = str(self.open_until)
        return found

    def time_of(self, event: Event) -> int:
        return event.at if self.has_times else event.sequence


def expected(events: Iterable[Event], rules: Rules) -> list[Interval]:
    """The intervals of all events, in whatever batches they came."""
    by_key: dict[int, dict[int, Event]] = defaultdict(dict)
    for event in events:
        there = by_key[event.key].get(event.sequence)
        if there is None or event.action == "D":
            by_key[event.key][event.sequence] = event
    return [one for key in sorted(by_key) for one in _of_key(by_key[key], rules)]


def _of_key(events: dict[int, Event], rules: Rules) -> list[Interval]:
    found: list[Interval] = []
    is_open = False
    for event in (events[sequence] for sequence in sorted(events)):
        time = rules.time_of(event)
        last = found[-1] if found else None
        if event.action == "D":
            if last is None:
                continue
            if last.is_deleted == "True":
                found[-1] = last._replace(updated_at=time)
            elif is_open:
                found[-1] = last._replace(valid_to=time)
                if rules.records_deletes:
                    row = Interval(
                        event.key, event.sequence, last.status, last.note, time, None, time, "True"
                    )
                    found.append(row)
            is_open = False
            continue
        tracked = (event.status,) if rules.ignores_note else (event.status, event.note)
        if is_open and last is not None:
            before = (last.status,) if rules.ignores_note else (last.status, last.note)
            if before == tracked:
                found[-1] = last._replace(note=event.note, updated_at=time)
                continue
        if last is not None and (is_open or last.is_deleted == "True"):
            found[-1] = last._replace(valid_to=time)
        row = Interval(event.key, event.sequence, event.status, event.note, time, None, time, "False")
        found.append(row)
        is_open = True
    return [one._replace(valid_to=rules.open_until) if one.valid_to is None else one for one in found]


@dataclass
class HistoryStory:
    """One history table, and every event that it has got."""

    world: World
    rules: Rules = field(default_factory=Rules)
    got: list[Event] = field(default_factory=list)
    runs: int = 0
    versions: list[tuple[str, int]] = field(default_factory=list)
    """Versions of the current generation, and how many events they have."""

    @property
    def name(self) -> Name:
        return self.world.name("accounts")

    def process(self, disturbance: Disturbance | None = None) -> Process:
        self.runs += 1
        return self.world.process(f"run-{self.runs}", disturbance)

    def model(self, batch: Sequence[Event]) -> HistoryModel:
        config = self.rules.config
        return HistoryModel(
            parse_config("accounts", config),
            parse_history("accounts", config),
            events_sql(batch, self.rules.has_times),
            scd_id,
        )

    def build(self, batch: Sequence[Event]) -> Outcome:
        self.got = list(batch)
        self.versions.clear()
        made = build_history(self.process().context, self.name, self.model(batch), {}, owner="model.test")
        self._note()
        return made

    def write(self, batch: Sequence[Event], process: Process | None = None) -> Outcome:
        self.got += batch
        context = (process or self.process()).context
        made = write_history(context, self.name, self.model(batch), Consumption())
        self._note()
        return made

    def compact(self) -> None:
        compact_major(self.process().context, self.name, 0)

    def roll_back(self, version: str, events: int) -> None:
        roll_back(self.process().context, self.name, version)
        self.got = self.got[:events]
        self.versions.clear()
        self._note()

    def stored(self) -> list[tuple[Any, ...]]:
        """The hidden rows: events that are remembered and not shown."""
        table = load_keyed(self.world.catalog, self.name)
        return self.world.query(
            f"SELECT id, seq, _arctic_deleted FROM {table.change.sql} WHERE _action = 'D'"
        )

    def _note(self) -> None:
        table = load_keyed(self.world.catalog, self.name)
        self.versions.append((current_version(self.world.catalog, table).token, len(self.got)))

    def rows(self) -> list[Interval]:
        """What a reader of the view sees."""
        deleted = "dbt_is_deleted" if self.rules.records_deletes else "'False'"
        time = "at" if self.rules.has_times else "seq"
        found = self.world.query(
            f"SELECT id, seq, status, note, dbt_valid_from, dbt_valid_to, dbt_updated_at, {deleted}, "
            f"dbt_scd_id, {time} FROM {self.name.sql}"
        )
        assert len({row[8] for row in found}) == len(found), "each interval has its own id"
        assert all(row[9] == row[4] for row in found), "an interval has the time of its first event"
        return sorted((Interval(*row[:8]) for row in found), key=lambda one: one[:2])

    def findings(self) -> list[Finding]:
        """What ``dbt-arctic verify`` finds."""
        catalog = self.world.catalog
        inventory = take_inventory(catalog, "lake", self.world.schema)
        return verify_schema(catalog, inventory, self.world.now_ms(), lambda path: None, self.world.query)

    def check(self) -> None:
        assert self.rows() == expected(self.got, self.rules)


def scd_id(columns: Sequence[str]) -> str:
    texts = ", '|', ".join(f"CAST({column} AS STRING)" for column in columns)
    return f"md5(concat({texts}))"


def events_sql(batch: Sequence[Event], has_times: bool) -> str:
    """A model that returns these events."""
    rows = [
        f"({one.key}L, {one.sequence}L, {one.at}L, {_text(one.status)}, {_text(one.note)}, '{one.action}')"
        for one in batch or [Event(0, 0, 0, None, None)]
    ]
    where = "" if batch else "\nWHERE id < 0"
    return (
        f"SELECT id, seq, {'at, ' if has_times else ''}CAST(status AS STRING) AS status,\n"
        "  CAST(note AS STRING) AS note, _action\n"
        f"FROM (VALUES {', '.join(rows)}) AS t(id, seq, at, status, note, _action){where}"
    )


def _text(value: str | None) -> str:
    return "NULL" if value is None else f"'{value}'"


def random_events(chance: random.Random, keys: int, count: int) -> list[Event]:
    """Events without two of one key and sequence that differ, in the order of their sequence."""
    found = []
    for sequence in range(1, count + 1):
        key, deletes = chance.randrange(keys), chance.random() < 0.25
        at = sequence * 10 + chance.randrange(3)
        status, note = chance.choice(("a", "b", None)), chance.choice(("x", "y", None))
        if deletes:
            found.append(Event(key, sequence, at, None, None, "D"))
        else:
            found.append(Event(key, sequence, at, status, note))
    return found


def cut(chance: random.Random, events: Sequence[Event], batches: int) -> list[list[Event]]:
    """Batches in which some events are late, and some come again, in the same batch or a later one."""
    found: list[list[Event]] = [[] for _ in range(batches)]
    for place, event in enumerate(events):
        batch = place * batches // len(events)
        if chance.random() < 0.3:
            batch = chance.randrange(batch, batches)
        found[batch].append(event)
        if chance.random() < 0.2:
            found[chance.randrange(batch, batches)].append(event)
    for batch in found:
        chance.shuffle(batch)
    return found


__all__ = ["Event", "HistoryStory", "Interval", "Rules", "cut", "expected", "random_events"]
