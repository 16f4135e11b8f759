"""The loop of ``dbt-arctic keep``: look, decide, act. Decisions are in ``scheduling``.

What it remembers (durations, failures) only makes its decisions better. Progress is in the commits of the
tables, so the loop may end anywhere, and several may run at the same time.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Protocol

from dbt_arctic.adapter.keep_actions import ActionOutcome, Keeper, Observation, now_s
from dbt_arctic.adapter.kept_models import KeptProject
from dbt_arctic.adapter.stop_signals import StopSignals
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.run import FAILED, OperationResult
from dbt_arctic.errors import ArcticError
from dbt_arctic.scheduling.scheduler import Compact, Compaction, Refresh, RunHistory, decide

LOOKS_PER_LAG = 10
SHORTEST_POLL_S, LONGEST_POLL_S = 1.0, 30.0
SHARE_OF_LOOKING = 5
"""Looking takes at most one part in this many of the time."""
COMPACTION_POLL_S = 30.0
SHED_REPORT_S = 60.0
"""Compaction that waits for longer than this is reported."""


class Report(Protocol):
    """Shows what the loop does."""

    def refreshed(self, outcome: ActionOutcome, observed: Observation, retry_s: float | None) -> None:
        """A model was refreshed, failed, was skipped or overtaken."""

    def compacted(self, done: OperationResult) -> None:
        """A compaction has ended."""

    def shed(self, operation: Operation) -> None:
        """Compaction is due and gets no time."""

    def problem(self, error: ArcticError, retry_s: float) -> None:
        """The catalog could not be read, or compaction failed."""


@dataclass
class Totals:
    """What a loop did.

    :param failing: models whose last refresh failed, and ``catalog`` if it could not be read in the end.
    """

    refreshes: int = 0
    compactions: int = 0
    failures: int = 0
    failing: list[str] = field(default_factory=list)


@dataclass
class KeepLoop:
    """Keeps the models of a project current until a time or a signal.

    :param until: in seconds since the epoch; ``None`` for no end.
    """

    project: KeptProject
    keeper: Keeper
    stop: StopSignals
    report: Report
    until: float | None = None
    totals: Totals = field(default_factory=Totals)
    _memories: dict[str, RunHistory] = field(default_factory=dict)
    _ran_at: dict[str, float] = field(default_factory=dict)
    _overheads: list[float] = field(default_factory=lambda: [1.0])
    _problems: int = 0
    _compaction: Compaction | None = None
    _operations: Sequence[Operation] = ()
    _compaction_at: float = 0.0
    _is_shed_reported: bool = False

    def run(self) -> Totals:
        """Run the loop."""
        # A second signal ends it at once. What was done until then is reported as usual.
        with suppress(KeyboardInterrupt):
            while not self.stop.requested and (self.until is None or now_s() < self.until):
                try:
                    self._step()
                    self._problems = 0
                except ArcticError as error:
                    self._problems += 1
                    self.totals.failures += 1
                    wait_s = min(2.0**self._problems, LONGEST_POLL_S)
                    self.report.problem(error, wait_s)
                    self._wait(wait_s)
        failing = [name for name, memory in self._memories.items() if memory.failures]
        self.totals.failing = [*failing, *(["catalog"] if self._problems else [])]
        return self.totals

    def _step(self) -> None:
        began = now_s()
        observed = self.keeper.observe(self._ran_at)
        if self.stop.requested:
            return
        self._look_at_compaction(began)
        now = now_s()
        models, overhead_s = self.project.models, median(self._overheads)
        action = decide(now, models, observed.seen, self._memories, self._compaction, overhead_s)
        if isinstance(action, Refresh):
            self._refresh(action, observed)
        elif isinstance(action, Compact):
            self._compact(action)
        else:
            poll_s = max(self._poll_s(), (now - began) * SHARE_OF_LOOKING)
            self._wait(min(action.until - now, poll_s))

    def _refresh(self, action: Refresh, observed: Observation) -> None:
        began = now_s()
        with self.stop.acting():
            outcomes = self.keeper.refresh(action.models)
        if outcomes is None:
            raise KeyboardInterrupt
        now = now_s()
        self._overheads = [*self._overheads, max(now - began - sum(one.seconds for one in outcomes), 0.1)][
            -5:
        ]
        for outcome in outcomes:
            self._remember(outcome, observed, now)

    def _remember(self, outcome: ActionOutcome, observed: Observation, now: float) -> None:
        name, memory = outcome.model, self._memories.get(outcome.model, RunHistory())
        if name not in observed.seen:
            self._remember_hook(outcome, observed, now)
            return
        if outcome.status == "refreshed":
            memory = memory.succeeded(now, outcome.seconds, observed.seen[name])
            self.totals.refreshes += 1
        elif outcome.status == "failed":
            memory = memory.failed(now)
            self.totals.failures += 1
        elif outcome.status == "overtaken":
            memory = memory.overtaken(now)
        if outcome.status != "skipped":
            self._memories[name] = memory
        if outcome.status == "refreshed":
            self._ran_at[name] = now
        retry_s = memory.retry_at - now if outcome.status in ("failed", "overtaken") else None
        self.report.refreshed(outcome, observed, retry_s)

    def _remember_hook(self, outcome: ActionOutcome, observed: Observation, now: float) -> None:
        """A hook of the project runs with each refresh. Only its failure is reported."""
        if outcome.status != "failed":
            self._memories.pop(outcome.model, None)
            return
        self.totals.failures += 1
        self._memories[outcome.model] = RunHistory().failed(now)
        self.report.refreshed(outcome, observed, None)

    def _look_at_compaction(self, now: float) -> None:
        if now >= self._compaction_at:
            self._operations = self.keeper.due_compactions()
            self._compaction_at = now + COMPACTION_POLL_S
        if not self._operations:
            self._compaction, self._is_shed_reported = None, False
            return
        since = now if self._compaction is None else self._compaction.since
        self._compaction = Compaction(self._operations[0].cost_s, since)
        if now - since >= SHED_REPORT_S and not self._is_shed_reported:
            self._is_shed_reported = True
            self.report.shed(self._operations[0])

    def _compact(self, action: Compact) -> None:
        operations, self._operations = self._operations, ()
        self._compaction, self._compaction_at, self._is_shed_reported = None, 0.0, False

        def report(done: OperationResult) -> None:
            if done.outcome == FAILED:
                self._compaction_at = now_s() + COMPACTION_POLL_S
            if done.was_tried:
                self.totals.compactions += done.outcome != FAILED
                self.totals.failures += done.outcome == FAILED
                self.report.compacted(done)

        with self.stop.acting():
            self.keeper.compact(operations, action.budget_s, report)

    def _poll_s(self) -> float:
        lags = [one.settings.target_lag_s or one.settings.every_s for one in self.project.models]
        shortest = min((lag for lag in lags if lag), default=LONGEST_POLL_S)
        return min(max(shortest / LOOKS_PER_LAG, SHORTEST_POLL_S), LONGEST_POLL_S)

    def _wait(self, seconds: float) -> None:
        left = seconds if self.until is None else min(seconds, self.until - now_s())
        self.stop.wait(max(left, 0.0))


__all__ = ["KeepLoop", "Report", "Totals"]
