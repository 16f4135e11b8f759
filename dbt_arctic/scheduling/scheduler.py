"""Decides what ``dbt-arctic keep`` does next. Pure: the time, the lags and the measured durations are values.

One action runs at a time. The refresh with the earliest deadline goes first (EDF), with the models that it
reads before it, so a model that waits becomes the first one sooner or later. Compaction gets the time that is
left. Times are in seconds, of any clock that all values share.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import NamedTuple

from dbt_arctic.scheduling.settings import KeepSettings

UNKNOWN_S = 5.0
"""The assumed duration of a refresh that was not measured yet."""
MARGIN = 1.5
"""Durations may exceed the measured ones by this factor."""
MEASURED = 5
OVERHEADS = 5
"""A run of several models may take this many times the overhead of a run, even if a target lag is shorter."""
FIRST_RETRY_S, LAST_RETRY_S = 10.0, 300.0
STALLED_S = 60.0
COMPACTION_S = 300.0
"""The longest time for several compactions in a row, after which lags are looked at again."""
SHED_AT_MOST_S = 3600.0
"""After this time, compaction takes precedence once: reads that become ever slower would stop everything."""


@dataclass(frozen=True)
class KeptModel:
    """A model that is refreshed.

    :param reads: the other models that are refreshed and that this one reads, directly or through views.
    """

    model: str
    settings: KeepSettings
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModelState:
    """What is known of a model at one point in time.

    :param waiting: by upstream, since when a change has been waiting there.
    :param must_run: whether it has to run in any case: it is not built, or its lag is unknown.
    :param ran_at: when it ran last; ``None`` if unknown.
    """

    waiting: Mapping[str, float] = field(default_factory=dict)
    must_run: bool = False
    ran_at: float | None = None


@dataclass(frozen=True)
class RunHistory:
    """What a process remembers of its refreshes of a model. Without it, a refresh may run once more.

    :param seconds: of the last refreshes.
    :param failures: in a row.
    :param overtakes: in a row: another process was faster, or builds the model.
    :param retry_at: it does not run before this time.
    :param before: what was known of it before its last refresh, if that succeeded.
    """

    seconds: tuple[float, ...] = ()
    failures: int = 0
    retry_at: float = -math.inf
    overtakes: int = 0
    before: ModelState | None = None
    ended_at: float = -math.inf

    @property
    def expected_s(self) -> float:
        """The expected duration of a refresh."""
        return median(self.seconds) if self.seconds else UNKNOWN_S

    def succeeded(self, now: float, seconds: float, before: ModelState) -> RunHistory:
        """After a refresh that succeeded. The first build of a model says nothing about its refreshes."""
        measured = self.seconds if before.must_run else (*self.seconds, seconds)[-MEASURED:]
        return RunHistory(measured, before=before, ended_at=now)

    def failed(self, now: float) -> RunHistory:
        """After a refresh that failed. The time to the next one doubles."""
        wait = min(FIRST_RETRY_S * 2.0**self.failures, LAST_RETRY_S)
        return replace(self, failures=self.failures + 1, retry_at=now + wait, before=None, ended_at=now)

    def overtaken(self, now: float) -> RunHistory:
        """After another process has refreshed the model. The time to the next try doubles."""
        wait = min(2.0**self.overtakes, LAST_RETRY_S)
        return replace(self, overtakes=self.overtakes + 1, retry_at=now + wait, before=None, ended_at=now)

    def is_stalled(self, seen: ModelState) -> bool:
        """Whether the last refresh succeeded, and the same changes are waiting as before."""
        before = self.before
        return (
            before is not None
            and (seen.must_run or bool(seen.waiting))
            and (seen.must_run, seen.waiting) == (before.must_run, before.waiting)
        )

    def blocked_until(self, seen: ModelState) -> float:
        """The time before which the model does not run."""
        return max(self.retry_at, self.ended_at + STALLED_S if self.is_stalled(seen) else -math.inf)


@dataclass(frozen=True)
class Compaction:
    """The most valuable compaction that is due.

    :param cost_s: its estimated duration.
    :param since: since when this process knows that compaction is due, and has not compacted.
    """

    cost_s: float
    since: float


@dataclass(frozen=True)
class Refresh:
    """Refresh models.

    :param models: in the order of the graph.
    :param due: those that are due themselves, with their deadlines. The others are read by them.
    """

    models: tuple[str, ...]
    due: Mapping[str, float]


@dataclass(frozen=True)
class Compact:
    """Compact within a budget; ``None`` for one operation, however long it takes."""

    budget_s: float | None


@dataclass(frozen=True)
class Wait:
    """Do nothing until a time, unless a change arrives before."""

    until: float


Action = Refresh | Compact | Wait


class _Due(NamedTuple):
    """A model that has to be refreshed.

    :param start: the time at which its refresh has to start.
    """

    deadline: float
    start: float


def decide(
    now: float,
    models: Sequence[KeptModel],
    seen: Mapping[str, ModelState],
    histories: Mapping[str, RunHistory],
    compaction: Compaction | None = None,
    overhead_s: float = 1.0,
) -> Action:
    """What to do now.

    :param models: in the order of the graph: a model after those that it reads.
    :param histories: of the models that were refreshed.
    :param compaction: ``None`` if none is due.
    :param overhead_s: the time of a refresh apart from that of its models.
    """
    known = {one.model: histories.get(one.model, RunHistory()) for one in models}
    blocked = {
        name: until for name, memory in known.items() if (until := memory.blocked_until(seen[name])) > now
    }
    stuck = _stuck(models, seen, blocked)
    origins = _origins(models, seen, blocked, stuck)
    round_s = _round_s(models, known, overhead_s)
    due = {
        one.model: found
        for one in models
        if one.model not in stuck and (found := _due(one, seen[one.model], origins, round_s)) is not None
    }
    ready = {name: one.deadline for name, one in due.items() if one.start <= now}
    starts = (one.start for one in due.values() if one.start > now)
    later = min((*blocked.values(), *starts), default=math.inf)
    is_overdue = compaction is not None and now - compaction.since >= SHED_AT_MOST_S
    if compaction is not None and not ready:
        room = min(later - now, _room(models, round_s))
        if compaction.cost_s <= room:
            return Compact(min(room, max(COMPACTION_S, compaction.cost_s)))
    if is_overdue:
        return Compact(None)
    if not ready:
        return Wait(later)
    return _batch(models, ready, {name for name in origins if name not in stuck}, known, overhead_s)


def effective_targets(models: Sequence[KeptModel]) -> dict[str, float]:
    """The smallest target lag of each model and the models that read it, directly and indirectly.

    A model with a schedule, and those that are read by no model with a target lag, have none.
    """
    found: dict[str, float] = {}
    for one in reversed(models):
        if one.settings.every_s is not None:
            continue
        if one.settings.target_lag_s is not None:
            found[one.model] = min(found.get(one.model, math.inf), one.settings.target_lag_s)
        for upstream in one.reads if one.model in found else ():
            found[upstream] = min(found.get(upstream, math.inf), found[one.model])
    scheduled = {one.model for one in models if one.settings.every_s is not None}
    return {name: target for name, target in found.items() if name not in scheduled}


def _origins(
    models: Sequence[KeptModel],
    seen: Mapping[str, ModelState],
    blocked: Mapping[str, float],
    stuck: Collection[str],
) -> dict[str, float]:
    """The earliest time of the changes that each model does not contain, as far as a refresh can bring them.

    A commit of a model may contain changes as old as the model's effective target lag. Models that cannot run
    do not count towards this target. Changes do not propagate through a model that is blocked or has a
    schedule.
    """
    targets = effective_targets([one for one in models if one.model not in stuck])
    passes: dict[str, float] = {}
    found: dict[str, float] = {}
    for one in models:
        waiting = seen[one.model].waiting.items()
        times = [since - targets.get(upstream, 0.0) for upstream, since in waiting]
        times += [passes[upstream] for upstream in one.reads if upstream in passes]
        if seen[one.model].must_run:
            times.append(0.0)
        if not times:
            continue
        found[one.model] = min(times)
        if one.model not in blocked and one.settings.every_s is None:
            passes[one.model] = found[one.model]
    return found


def _stuck(
    models: Sequence[KeptModel], seen: Mapping[str, ModelState], blocked: Collection[str]
) -> frozenset[str]:
    """The models that cannot run now: they are blocked, or the first build of a model that they need is.

    :param models: in the order of the graph.
    """
    found: set[str] = set()
    for one in models:
        needs = one.reads if seen[one.model].must_run else ()
        if one.model in blocked or any(other in found and seen[other].must_run for other in needs):
            found.add(one.model)
    return frozenset(found)


def _due(one: KeptModel, seen: ModelState, origins: Mapping[str, float], round_s: float) -> _Due | None:
    """When the refresh of a model is due; ``None`` if it is not by itself."""
    if seen.must_run:
        return _Due(0.0, -math.inf)
    if one.settings.every_s is not None:
        at = 0.0 if seen.ran_at is None else seen.ran_at + one.settings.every_s
        return _Due(at, at)
    if one.settings.target_lag_s is None or one.model not in origins:
        return None
    deadline = origins[one.model] + one.settings.target_lag_s
    return _Due(deadline, deadline - round_s)


def _round_s(models: Iterable[KeptModel], known: Mapping[str, RunHistory], overhead_s: float) -> float:
    """The time that may pass before a model is refreshed.

    It is that of one refresh of each model, and of the longest model with a schedule, which may have just
    started.
    """
    lags = [known[one.model].expected_s for one in models if one.settings.every_s is None]
    scheduled = [known[one.model].expected_s for one in models if one.settings.every_s is not None]
    return MARGIN * (sum(lags) + max(scheduled, default=0.0)) + 2 * overhead_s


def _room(models: Iterable[KeptModel], round_s: float) -> float:
    """The time for a compaction so that a change that arrives right now is refreshed in time."""
    targets = [one.settings.target_lag_s for one in models if one.settings.target_lag_s is not None]
    return min(targets) - round_s if targets else math.inf


def _batch(
    models: Sequence[KeptModel],
    ready: Mapping[str, float],
    changing: Collection[str],
    known: Mapping[str, RunHistory],
    overhead_s: float,
) -> Refresh:
    """The first model by its deadline, with what it needs; and the next ones, if they do not take long.

    Models that were not measured yet join: at the start, one run builds all of them.

    :param changing: the models that do not contain a change, and can run.
    """
    by_name = {one.model: one for one in models}
    order = {one.model: place for place, one in enumerate(models)}
    targets = [one.settings.target_lag_s for one in models if one.settings.target_lag_s is not None]
    most_s = max(min(targets, default=math.inf) / 2, OVERHEADS * overhead_s)
    chosen: set[str] = set()
    due: dict[str, float] = {}
    for name in sorted(ready, key=lambda one: (ready[one], order[one])):
        needed = _with_upstreams(name, by_name, changing) | chosen
        if chosen and sum(known[one].expected_s for one in needed if known[one].seconds) > most_s:
            break
        chosen, due[name] = needed, ready[name]
    return Refresh(tuple(sorted(chosen, key=lambda one: order[one])), due)


def _with_upstreams(name: str, models: Mapping[str, KeptModel], changing: Collection[str]) -> set[str]:
    """A model, and the models that it reads and that can bring a change to it."""
    found, waiting = {name}, [name]
    while waiting:
        for upstream in models[waiting.pop()].reads:
            is_bound = models[upstream].settings.every_s is not None
            if upstream not in found and upstream in changing and not is_bound:
                found.add(upstream)
                waiting.append(upstream)
    return found


__all__ = [
    "Action",
    "Compact",
    "Compaction",
    "KeptModel",
    "ModelState",
    "Refresh",
    "RunHistory",
    "Wait",
    "decide",
    "effective_targets",
]
