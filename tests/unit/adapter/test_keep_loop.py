"""The loop of ``keep`` does what the scheduler decides, reports it, and forgets no failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, cast

import pytest

from dbt_arctic.adapter import keep_loop
from dbt_arctic.adapter.keep_actions import ActionOutcome, Observation, completed
from dbt_arctic.adapter.keep_loop import KeepLoop, Totals
from dbt_arctic.compaction.plan import Operation
from dbt_arctic.compaction.run import FAILED, OperationResult
from dbt_arctic.errors import ArcticError, CatalogUnavailable
from dbt_arctic.keyed.names import Name
from dbt_arctic.scheduling.scheduler import KeptModel, ModelState
from dbt_arctic.scheduling.settings import KeepSettings

ORDERS = Name("lake", "shop", "orders")
DUE = Operation("major", ORDERS, "20% of the rows are pending", 2.0, 1.0)


class World:
    """A clock, a project with one model, a keeper, a report, and what stops the loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.requested = ""
        self.waiting: dict[str, float] = {}
        self.shown: list[str] = []
        self.outcomes: Callable[[], list[ActionOutcome] | None] = lambda: [
            ActionOutcome("orders", "refreshed", 2.0, 5)
        ]
        self.problems: list[ArcticError] = []
        self.due: list[Operation] = []
        self.compaction = "compacted"
        self.models = (KeptModel("orders", KeepSettings(target_lag_s=60)),)
        self.ran_at: list[dict[str, float]] = []
        monkeypatch.setattr(keep_loop, "now_s", lambda: self.now)

    # the keeper

    def observe(self, ran_at: dict[str, float]) -> Observation:
        self.ran_at.append(dict(ran_at))
        if self.problems:
            raise self.problems.pop()
        return Observation({"orders": ModelState(dict(self.waiting)), "next": ModelState()}, {}, {})

    def refresh(self, models: Sequence[str]) -> list[ActionOutcome] | None:
        self.now += 3
        outcomes = self.outcomes()
        if outcomes and outcomes[0].status == "refreshed":
            self.waiting = {}
        return outcomes

    def due_compactions(self) -> list[Operation]:
        return self.due

    def compact(
        self, operations: Any, budget_s: float | None, report: Callable[[OperationResult], None]
    ) -> None:
        self.shown.append(f"budget {budget_s}")
        for one in operations:
            self.now += one.cost_s
            report(OperationResult(one, self.compaction, seconds=one.cost_s))
        self.due = self.due if self.compaction == FAILED else []

    # the report

    def refreshed(self, outcome: ActionOutcome, observed: Observation, retry_s: float | None) -> None:
        self.shown.append(f"{outcome.status} {outcome.model} {retry_s}")

    def compacted(self, done: OperationResult) -> None:
        self.shown.append(f"compacted {done.outcome}")

    def shed(self, operation: Operation) -> None:
        self.shown.append("shed")

    def problem(self, error: ArcticError, retry_s: float) -> None:
        self.shown.append(f"{error.code} {retry_s}")

    # what stops it

    def acting(self) -> Any:
        return nullcontext()

    def wait(self, seconds: float) -> None:
        self.now += max(seconds, 0.01)

    def run(self, seconds: float) -> Totals:
        every = cast(Any, self)
        return KeepLoop(every, every, every, every, self.now + seconds).run()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_it_is_quiet_if_nothing_is_due(world: World) -> None:
    assert world.run(600) == Totals()
    assert world.shown == []
    assert 600 / 6 <= len(world.ran_at) <= 600 / 6 + 2, "ten looks in a target lag"


def test_it_refreshes_what_is_late_before_the_deadline(world: World) -> None:
    world.waiting = {"s": 1000.0}
    totals = world.run(100)
    assert (totals.refreshes, totals.failing, world.shown) == (1, [], ["refreshed orders None"])
    assert world.ran_at[-1]["orders"] <= 1060


def test_a_failure_is_retried_later_and_is_in_the_exit_code(world: World) -> None:
    world.waiting = {"s": 900.0}
    world.outcomes = lambda: [
        ActionOutcome("orders", "failed", 1.0, message="AR-303"),
        ActionOutcome("next", "skipped"),
    ]
    totals = world.run(60)
    skipped = "skipped next None"
    assert world.shown[:4] == ["failed orders 10.0", skipped, "failed orders 20.0", skipped]
    assert (totals.failures, totals.failing) == (3, ["orders"])
    world.shown.clear()
    answers = iter([[ActionOutcome("orders", "failed", 1.0)], [ActionOutcome("orders", "refreshed", 1.0)]])
    world.outcomes = lambda: next(answers)
    assert world.run(60).failing == []


def test_another_process_that_was_faster_is_no_failure(world: World) -> None:
    world.waiting = {"s": 900.0}
    answers = iter([[ActionOutcome("orders", "overtaken", 1.0)], [ActionOutcome("orders", "refreshed", 1.0)]])
    world.outcomes = lambda: next(answers)
    assert world.run(60) == Totals(refreshes=1)
    assert world.shown == ["overtaken orders 1.0", "refreshed orders None"]


def test_a_hook_is_reported_only_if_it_fails(world: World) -> None:
    world.waiting = {"s": 900.0}
    hook = ActionOutcome("on-run-end-0", "failed", message="no")
    world.outcomes = lambda: [ActionOutcome("orders", "refreshed", 1.0), hook]
    totals = world.run(20)
    assert world.shown == ["refreshed orders None", "failed on-run-end-0 None"]
    assert (totals.failures, totals.failing) == (1, ["on-run-end-0"])
    world.shown.clear()
    world.waiting = {"s": 900.0}
    world.outcomes = lambda: [
        ActionOutcome("orders", "refreshed", 1.0),
        ActionOutcome("on-run-end-0", "refreshed"),
    ]
    assert world.run(20) == Totals(refreshes=1)
    assert world.shown == ["refreshed orders None"]


def test_each_model_of_a_run_has_an_outcome() -> None:
    done, skipped = ActionOutcome("a", "refreshed"), ActionOutcome("b", "skipped")
    hook = ActionOutcome("on-run-start-0", "failed", message="no")
    assert completed(["a", "b"], [done, skipped]) == [done, skipped]
    assert completed(["b"], [hook, skipped]) == [hook, ActionOutcome("b", "failed")]
    missing = completed(["a", "b"], [done])
    assert [one.status for one in missing] == ["refreshed", "failed"]
    assert "dbt did not run it" in missing[1].message


def test_an_interrupted_refresh_ends_the_loop(world: World) -> None:
    world.waiting = {"s": 900.0}
    world.outcomes = lambda: None
    assert world.run(60) == Totals()


def test_a_catalog_that_cannot_be_read_is_tried_again(world: World) -> None:
    world.problems = [CatalogUnavailable("locked"), CatalogUnavailable("locked")]
    totals = world.run(100)
    assert world.shown == ["AR-104 2.0", "AR-104 4.0"]
    assert totals == Totals(failures=2)
    world.problems = [CatalogUnavailable("locked")] * 100
    assert world.run(100).failing == ["catalog"]


def test_compaction_runs_between_refreshes_or_is_reported(world: World) -> None:
    world.due = [DUE]
    assert world.run(40) == Totals(compactions=1)
    assert world.shown == ["budget 50.5", "compacted compacted"]
    world.shown.clear()
    world.due, world.compaction = [DUE], FAILED
    assert world.run(70).failures == 3, "it is tried again after half a minute"
    world.shown.clear()
    world.compaction = "compacted"
    world.due = [Operation("full", ORDERS, "small files", 70.0, 1.0)]
    assert world.run(1000) == Totals()
    assert world.shown == ["shed"]
    world.shown.clear()
    assert world.run(4000).compactions == 1
    assert world.shown == ["shed", "budget None", "compacted compacted"]


def test_a_model_with_a_schedule_that_failed_has_not_run(world: World) -> None:
    world.models = (KeptModel("orders", KeepSettings(every_s=3600)),)
    answers = iter([[ActionOutcome("orders", "failed", 1.0)], [ActionOutcome("orders", "refreshed", 1.0)]])
    world.outcomes = lambda: next(answers)
    world.observe = lambda ran_at: Observation({"orders": ModelState(ran_at=ran_at.get("orders"))}, {}, {})  # type: ignore[method-assign]
    world.run(100)
    assert world.shown == ["failed orders 10.0", "refreshed orders None"]


def test_a_signal_while_it_looks_begins_nothing(world: World) -> None:
    world.waiting = {"s": 0.0}
    observe = world.observe

    def interrupted(ran_at: dict[str, float]) -> Observation:
        world.requested = "SIGTERM"
        return observe(ran_at)

    world.observe = interrupted  # type: ignore[method-assign]
    assert world.run(100).refreshes == 0
    assert world.shown == []
