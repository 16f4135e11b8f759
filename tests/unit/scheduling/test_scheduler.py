"""What ``keep`` does next: random graphs, durations and arrivals against what it promises."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from typing import Any

import pytest

from dbt_arctic.scheduling import scheduler
from dbt_arctic.scheduling.scheduler import (
    Compact,
    Compaction,
    KeptModel,
    ModelState,
    Refresh,
    RunHistory,
    Wait,
    decide,
    effective_targets,
)
from dbt_arctic.scheduling.settings import KeepSettings
from tests.extent import first
from tests.unit.scheduling.simulation import OVERHEAD_S, POLL_S, World, arrivals

SEEDS = first(8, range(40))


def lag(model: str, target_s: int, *reads: str) -> KeptModel:
    return KeptModel(model, KeepSettings(target_lag_s=target_s), reads)


def downstream(model: str, *reads: str) -> KeptModel:
    return KeptModel(model, KeepSettings(is_downstream=True), reads)


def every(model: str, seconds: int, *reads: str) -> KeptModel:
    return KeptModel(model, KeepSettings(every_s=seconds), reads)


def random_world(choose: random.Random, load: float, **more: Any) -> World:
    """Models whose refreshes take ``load`` times the smallest target lag, all of them together."""
    count = choose.randint(2, 8)
    names = [f"m{number}" for number in range(count)]
    inputs = {
        name: [f"s{choose.randrange(3)}", *(other for other in names[:at] if choose.random() < 0.4)]
        for at, name in enumerate(names)
    }
    smallest = choose.choice([30, 60])
    models = []
    for at, name in enumerate(names):
        reads = tuple(one for one in inputs[name] if one in names)
        is_read = any(name in inputs[other] for other in names[at + 1 :])
        kind = choose.random()
        if kind < 0.25 and is_read:
            models.append(downstream(name, *reads))
        elif kind < 0.4:
            models.append(every(name, smallest * choose.randint(2, 9), *reads))
        else:
            models.append(lag(name, smallest * choose.randint(1, 6), *reads))
    if not any(one.settings.target_lag_s for one in models):
        models[-1] = lag(names[-1], smallest, *models[-1].reads)
    parts = [choose.uniform(0.2, 1) for _ in names]
    mean = {name: load * smallest * part / sum(parts) for name, part in zip(names, parts, strict=True)}
    world = World(models, inputs, lambda name: mean[name] * choose.uniform(0.8, 1.2), **more)
    world.arrivals = arrivals(choose, ["s0", "s1", "s2"], 40 * smallest, smallest / 5)
    # Durations were measured before.
    world.histories = {name: RunHistory((mean[name],)) for name in names}
    world.smallest = smallest
    return world


def add_debt(world: World, choose: random.Random, count: int, until: float, longest: float) -> None:
    """Compactions that become due at random times, in units of the smallest target lag."""
    debt = [(choose.uniform(0, until), choose.uniform(0.1, longest)) for _ in range(count)]
    world.debt = sorted((at * world.smallest, cost * world.smallest) for at, cost in debt)


def bound_by_schedule(world: World, model: str) -> bool:
    """Whether a change reaches a model only with the schedule of another one."""
    by_name = {one.model: one for one in world.models}
    waiting = [one for one in world.inputs[model] if one in by_name]
    while waiting:
        one = by_name[waiting.pop()]
        if one.settings.every_s is not None:
            return True
        waiting += [name for name in world.inputs[one.model] if name in by_name]
    return False


@pytest.mark.parametrize("seed", SEEDS)
def test_each_lag_is_met_if_the_capacity_allows_it(seed: int) -> None:
    choose = random.Random(seed)
    world = random_world(choose, load=0.15)
    add_debt(world, choose, 6, until=30, longest=0.4)
    last = max(at for at, _ in world.arrivals)
    world.run(last + 12 * world.smallest)
    for one in world.models:
        target = one.settings.target_lag_s
        if target is None or bound_by_schedule(world, one.model):
            continue
        worst = max(world.lags(one.model).values())
        assert worst <= target, (one, worst)
    assert len(world.compacted) == len(world.debt), "there was time for every compaction"


@pytest.mark.parametrize("seed", SEEDS)
def test_no_model_starves_under_any_load(seed: int) -> None:
    choose = random.Random(seed)
    load = choose.choice([0.5, 1.5, 4.0])
    world = random_world(choose, load)
    # More changes than there is time for, until the end.
    world.arrivals = arrivals(choose, ["s0", "s1", "s2"], 60 * world.smallest * load, world.smallest / 20)
    round_s = 1.2 * load * world.smallest + len(world.models) * OVERHEAD_S
    slowest = max(one.settings.every_s or 0 for one in world.models)
    world.run(world.arrivals[-1][0] + 10 * round_s + slowest)
    for one in world.models:
        if bound_by_schedule(world, one.model) or one.settings.is_downstream:
            continue
        worst = max(world.lags(one.model).values())
        assert worst <= (one.settings.target_lag_s or one.settings.every_s or 0) + 5 * round_s, (one, worst)
    refreshes = [acted.action for acted in world.acted if isinstance(acted.action, Refresh)]
    ran = {model for action in refreshes for model in action.models}
    assert ran == {one.model for one in world.models}


@pytest.mark.parametrize("seed", SEEDS)
def test_models_run_in_the_order_of_the_graph_with_what_they_need(seed: int) -> None:
    choose = random.Random(seed)
    world = random_world(choose, load=choose.choice([0.1, 0.6, 2.0]))
    order = {one.model: at for at, one in enumerate(world.models)}
    reads = {one.model: one for one in world.models}
    decided: list[tuple[Refresh, dict[str, ModelState]]] = []
    refresh = world.refresh
    world.refresh = lambda action, looked: (decided.append((action, looked)), refresh(action, looked))  # type: ignore[assignment, func-returns-value]
    world.run(20 * world.smallest)
    assert decided
    for action, looked in decided:
        assert list(action.models) == sorted(action.models, key=lambda one: order[one])
        assert action.due
        assert set(action.due) <= set(action.models)
        for model in action.models:
            # What has a change and feeds a model of this action is in it, too.
            for upstream in reads[model].reads:
                is_waiting = bool(looked[upstream].waiting) or looked[upstream].must_run
                if is_waiting and reads[upstream].settings.every_s is None:
                    assert upstream in action.models
            is_needed = any(model in reads[other].reads for other in action.models)
            assert model in action.due or is_needed


@pytest.mark.parametrize("seed", SEEDS)
def test_compaction_is_shed_first_but_not_forever(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(seed)
    world = random_world(choose, load=choose.choice([0.3, 3.0]))
    smallest = world.smallest
    shed_s = 10 * smallest
    monkeypatch.setattr(scheduler, "SHED_AT_MOST_S", shed_s)
    add_debt(world, choose, 3, until=20, longest=3)
    world.run(80 * smallest)
    since: dict[int, float] = {}
    done = 0
    for acted in world.acted:
        if isinstance(acted.action, Compact):
            at = max(world.debt[done][0], world.compacted[done - 1] if done else 0)
            since[done] = acted.at - at
            if acted.ready:  # a refresh was due, and had to wait
                assert since[done] >= shed_s - POLL_S
                assert acted.action.budget_s is None
            done += 1
    assert done == 3, "compaction runs in the end"
    longest = max(4 * smallest * 6, shed_s) + 4 * smallest
    assert max(since.values()) <= shed_s + longest


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_that_fails_does_not_stop_the_others(seed: int) -> None:
    choose = random.Random(seed)
    world = random_world(choose, load=0.1)
    broken = choose.choice(world.models).model
    world.fails = lambda model, at: model == broken
    until = max(at for at, _ in world.arrivals) + 12 * world.smallest
    world.run(until)

    def needs(model: str) -> bool:
        return model == broken or any(needs(one) for one in world.inputs[model] if one in world.inputs)

    for one in world.models:
        target = one.settings.target_lag_s
        if target is not None and not needs(one.model) and not bound_by_schedule(world, one.model):
            assert max(world.lags(one.model).values()) <= target
    assert {model for _, model in world.failed} == {broken}
    times = [at for at, _ in world.failed]
    gaps = [after - before for before, after in pairwise(times)]
    assert all(gap >= min(10 * 2**at, 300) for at, gap in enumerate(gaps))
    assert len(times) <= 6 + until / 300


def test_the_failure_of_a_time_is_forgotten_after_a_success() -> None:
    memory = RunHistory().failed(0)
    again = memory.failed(10)
    assert [memory.retry_at, again.retry_at, again.failed(30).retry_at] == [10, 30, 70]
    assert memory.succeeded(20, 3.0, ModelState()) == RunHistory((3.0,), before=ModelState(), ended_at=20)
    assert memory.succeeded(20, 300.0, ModelState(must_run=True)).seconds == ()
    late = RunHistory()
    for at in range(20):
        late = late.failed(at)
    assert late.retry_at - late.ended_at == 300
    assert memory.overtaken(50).failures == 1


def test_nothing_is_done_if_nothing_waits() -> None:
    models = [lag("a", 60), lag("b", 60, "a"), downstream("c", "a")]
    assert decide(100, models, {one.model: ModelState() for one in models}, {}) == Wait(math.inf)
    waiting = {"a": ModelState({"s": 100.0}), "b": ModelState(), "c": ModelState()}
    known = {one.model: RunHistory((2.0,)) for one in models}
    round_s = 1.5 * 6 + 2
    assert decide(100, models, waiting, known) == Wait(100 + 60 - round_s)
    assert decide(149, models, waiting, known) == Refresh(("a", "b"), {"a": 160.0, "b": 160.0})


def test_a_model_brings_what_it_reads_only_if_that_has_a_change() -> None:
    models = [downstream("a"), downstream("b"), lag("c", 60, "a", "b")]
    seen = {"a": ModelState({"s": 0.0}), "b": ModelState(), "c": ModelState()}
    assert decide(55, models, seen, {}) == Refresh(("a", "c"), {"c": 60.0})
    assert decide(55, models[:2], seen, {}) == Wait(math.inf), "a is read by no model with a lag"


def test_a_schedule_is_not_overruled_by_the_lag_of_a_reader() -> None:
    models = [every("a", 3600), lag("b", 60, "a")]
    seen = {"a": ModelState({"s": 0.0}, ran_at=0.0), "b": ModelState()}
    assert decide(1000, models, seen, {}) == Wait(3600)
    assert decide(3600, models, seen, {}) == Refresh(("a",), {"a": 3600.0})
    seen = {"a": ModelState(ran_at=3600.0), "b": ModelState({"a": 3600.0})}
    assert decide(3660, models, seen, {}) == Refresh(("b",), {"b": 3660.0})


def test_a_change_counts_from_before_the_commit_of_a_model_that_brought_it() -> None:
    """What the commit of a model with a lag of one minute contains is up to one minute old."""
    models = [lag("a", 60), lag("b", 300, "a")]
    known = {one.model: RunHistory((1.0,)) for one in models}
    seen = {"a": ModelState(), "b": ModelState({"a": 1000.0})}
    assert decide(1000, models, seen, known) == Wait(1000 - 60 + 300 - 5)
    assert effective_targets(models) == {"a": 60, "b": 300}
    assert effective_targets([lag("a", 600), every("b", 5, "a"), lag("c", 30, "a"), lag("d", 9, "b")]) == {
        "a": 30,
        "c": 30,
        "d": 9,
    }


def test_a_refresh_without_effect_is_not_repeated_at_once() -> None:
    models = [lag("a", 10)]
    seen = {"a": ModelState({"s": 0.0})}
    histories = {"a": RunHistory().succeeded(100, 1.0, seen["a"])}
    assert decide(100, models, seen, histories) == Wait(160)
    assert decide(160, models, seen, histories) == Refresh(("a",), {"a": 10.0})
    assert isinstance(decide(100, models, {"a": ModelState({"s": 1.0})}, histories), Refresh)


def test_a_model_does_not_run_before_the_first_build_of_what_it_reads() -> None:
    models = [lag("a", 6), lag("b", 6, "a")]
    seen = {"a": ModelState(must_run=True), "b": ModelState(must_run=True)}
    assert decide(0, models, seen, {}) == Refresh(("a", "b"), {"a": 0.0, "b": 0.0})
    assert decide(0, models, seen, {"a": RunHistory().failed(0)}) == Wait(10)
    chain = [*models, lag("c", 6, "b")]
    assert decide(0, chain, {**seen, "c": ModelState(must_run=True)}, {"a": RunHistory().failed(0)}) == Wait(
        10
    )


def test_the_time_to_the_next_try_doubles_while_another_process_builds_a_model() -> None:
    memory, waits = RunHistory(), []
    for _ in range(10):
        memory = memory.overtaken(0)
        waits.append(memory.retry_at)
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == 300
    assert memory.succeeded(0, 1.0, ModelState()).overtaken(0).retry_at == 1


def test_compaction_takes_the_time_that_no_change_can_need() -> None:
    models = [lag("a", 100)]
    known = {"a": RunHistory((8.0,))}
    quiet, waiting = {"a": ModelState()}, {"a": ModelState({"s": 50.0})}
    round_s = 1.5 * 8 + 2

    def then(cost_s: float, seen: dict[str, ModelState], now: float = 60.0) -> Any:
        return decide(now, models, seen, known, Compaction(cost_s, 0.0))

    assert then(80, quiet) == Compact(100 - round_s)
    assert then(90, quiet) == Wait(math.inf)
    assert then(76, waiting) == Compact(50 + 100 - round_s - 60)
    assert then(77, waiting) == Wait(50 + 100 - round_s)
    assert then(1, waiting, now=140) == Refresh(("a",), {"a": 150.0})
    assert then(90, waiting, now=3600) == Compact(None)
    assert decide(
        0, [every("a", 900)], {"a": ModelState(ran_at=0.0)}, known, Compaction(400, 0.0)
    ) == Compact(400)
    assert decide(0, [every("a", 900)], {"a": ModelState(ran_at=0.0)}, known, Compaction(4, 0.0)) == Compact(
        300
    )


def test_a_long_refresh_is_not_joined_with_others() -> None:
    models = [lag("a", 60), every("b", 900), lag("c", 60)]
    seen = {"a": ModelState({"s": 0.0}), "b": ModelState(ran_at=-900.0), "c": ModelState({"s": 1.0})}
    known = {"a": RunHistory((1.0,)), "b": RunHistory((40.0,)), "c": RunHistory((1.0,))}
    assert decide(50, models, seen, known) == Refresh(("b",), {"b": 0.0})
    seen["b"] = ModelState(ran_at=50.0)
    assert decide(50, models, seen, known) == Refresh(("a", "c"), {"a": 60.0, "c": 61.0})


def test_the_overhead_is_part_of_a_round() -> None:
    models = [lag("a", 100)]
    seen = {"a": ModelState({"s": 0.0})}
    assert decide(0, models, seen, {"a": RunHistory((2.0,))}, overhead_s=10) == Wait(100 - 3 - 20)
    assert OVERHEAD_S < 1
