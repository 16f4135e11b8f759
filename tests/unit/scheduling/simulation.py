"""A simulated warehouse that ``decide`` keeps current, with a simulated clock."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from dbt_arctic.scheduling.scheduler import (
    Compact,
    Compaction,
    KeptModel,
    ModelState,
    Refresh,
    RunHistory,
    Wait,
    decide,
)

POLL_S = 1.0
OVERHEAD_S = 0.5


@dataclass
class Commit:
    at: float
    events: frozenset[int]


@dataclass
class Table:
    """The commits of a model or source, and up to which commit of each upstream it has read."""

    commits: list[Commit] = field(default_factory=list)
    read: dict[str, int] = field(default_factory=dict)
    ran_at: float | None = None
    is_built: bool = False
    arrived: dict[int, float] = field(default_factory=dict)
    """By event, when it became visible here."""


@dataclass
class Acted:
    """An action, with what was true when it was decided."""

    at: float
    action: Refresh | Compact
    ready: bool = False


@dataclass
class World:
    """Sources with arriving changes, models, and one process that acts.

    :param inputs: the sources and models that each model reads.
    :param duration: the time of one refresh of a model.
    :param fails: whether a refresh of a model fails at a time.
    :param debt: when a compaction becomes due, and how long it takes.
    """

    models: list[KeptModel]
    inputs: dict[str, list[str]]
    duration: Callable[[str], float]
    fails: Callable[[str, float], bool] = lambda model, at: False
    debt: list[tuple[float, float]] = field(default_factory=list)
    now: float = 0.0
    smallest: float = 0.0
    """The smallest target lag, the unit of time of a test."""
    arrivals: list[tuple[float, str]] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=lambda: defaultdict(Table))
    histories: dict[str, RunHistory] = field(default_factory=dict)
    acted: list[Acted] = field(default_factory=list)
    failed: list[tuple[float, str]] = field(default_factory=list)
    compacted: list[float] = field(default_factory=list)
    compaction_since: float | None = None
    arrived: int = 0

    def events_of(self, model: str) -> dict[int, float]:
        """The arrived events that a model has to contain, with their times."""
        sources, waiting = set(), [model]
        while waiting:
            name = waiting.pop()
            if name in self.inputs:
                waiting += self.inputs[name]
            else:
                sources.add(name)
        return {event: at for event, (at, source) in enumerate(self.arrivals) if source in sources}

    def arrive(self) -> None:
        while self.arrived < len(self.arrivals) and self.arrivals[self.arrived][0] <= self.now:
            at, source = self.arrivals[self.arrived]
            self.tables[source].commits.append(Commit(at, frozenset({self.arrived})))
            self.arrived += 1

    def seen(self, model: str) -> ModelState:
        table = self.tables[model]
        if not table.is_built:
            return ModelState(must_run=True)
        waiting = {}
        for name in self.inputs[model]:
            unread = self.tables[name].commits[table.read.get(name, 0) :]
            if unread:
                waiting[name] = unread[0].at
        return ModelState(waiting, ran_at=table.ran_at)

    def run(self, until: float) -> None:
        while self.now < until:
            self.arrive()
            looked = {one.model: self.seen(one.model) for one in self.models}
            owed = [cost for at, cost in self.debt[len(self.compacted) :] if at <= self.now]
            if owed and self.compaction_since is None:
                self.compaction_since = self.now
            due = Compaction(owed[0], self.compaction_since or 0.0) if owed else None
            action = decide(self.now, self.models, looked, self.histories, due, OVERHEAD_S)
            if isinstance(action, Wait):
                # The loop around it looks again in any case.
                self.now = min(max(action.until, self.now), self.now + POLL_S)
                continue
            without = decide(self.now, self.models, looked, self.histories, None, OVERHEAD_S)
            self.acted.append(Acted(self.now, action, isinstance(without, Refresh)))
            if isinstance(action, Compact):
                assert owed
                self.now += owed[0]
                self.compacted.append(self.now)
                self.compaction_since = None
            else:
                self.refresh(action, looked)

    def refresh(self, action: Refresh, looked: dict[str, ModelState]) -> None:
        self.now += OVERHEAD_S
        skipped: set[str] = set()
        for model in action.models:
            memory = self.histories.get(model, RunHistory())
            if skipped & set(self.inputs[model]):
                skipped.add(model)
                continue
            began = self.now
            self.arrive()
            table = self.tables[model]
            ends = {name: len(self.tables[name].commits) for name in self.inputs[model]}
            self.now += self.duration(model)
            if self.fails(model, began):
                skipped.add(model)
                self.failed.append((self.now, model))
                self.histories[model] = memory.failed(self.now)
                continue
            events: set[int] = set()
            for name, end in ends.items():
                for commit in self.tables[name].commits[table.read.get(name, 0) : end]:
                    events |= commit.events
                table.read[name] = end
            events -= table.arrived.keys()
            if events or not table.is_built:
                table.commits.append(Commit(self.now, frozenset(events)))
                table.arrived |= dict.fromkeys(events, self.now)
            table.is_built, table.ran_at = True, self.now
            self.histories[model] = memory.succeeded(self.now, self.now - began, looked[model])

    def lags(self, model: str) -> dict[int, float]:
        """How long each event took to arrive in a model; infinite if it has not."""
        arrived = self.tables[model].arrived
        return {event: arrived.get(event, math.inf) - at for event, at in self.events_of(model).items()}


def arrivals(
    choose: random.Random, sources: list[str], until: float, every_s: float
) -> list[tuple[float, str]]:
    """Changes at random times, with bursts and quiet times."""
    found, at = [], 0.0
    while at < until:
        at += choose.expovariate(1 / every_s) * choose.choice([0.05, 1, 1, 4])
        found.append((at, choose.choice(sources)))
    return found
