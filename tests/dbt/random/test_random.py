"""Random dbt projects on Spark: a run that succeeds leaves the oracle's rows, one that fails the old ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, permutations

import pytest

from tests.dbt.random.event_times import SIZES, TYPES, changes_of
from tests.dbt.random.generate import draw_case
from tests.dbt.random.project import EVENT_TIME, KINDS, batches_of
from tests.dbt.random.run import Bench, CaseResult, bench
from tests.dbt.random.soak import add
from tests.extent import extent

RUNS = extent(200, 600)
"""Of small projects."""
SEEDS = extent((573, 268, 336), range(40, 60))
"""The three cases of the short form have every kind of model, and whatever else a case may have: another time
zone, hooks, contracts, models that become others, runs that are interrupted or cancelled, retries, settings
that change or have no effect. The last one runs as it does for users.
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Bench]:
    with bench() as made:
        yield made


def test_random_projects_hold_what_the_oracle_says(place: Bench) -> None:
    total = CaseResult()
    for seed in SEEDS:
        add(total, place.judge(draw_case(seed, models=12, rounds=3)))
    assert [str(one) for one in total.differences] == []
    assert total.refused > total.models // 50
    assert {kind for kind in KINDS if total.met[f"{kind}: written"]} == set(KINDS)


def test_some_hundred_runs_of_small_projects_hold_what_the_oracle_says(place: Bench) -> None:
    total, seed = CaseResult(), 1000
    while total.runs < RUNS:
        add(total, place.judge(draw_case(seed, models=2, rounds=4)))
        assert [str(one) for one in total.differences] == []
        seed += 1


def test_cases_have_batches_of_each_size_and_event_times_of_other_types_over_changes_of_the_zone() -> None:
    sizes, changes, moved = set(), set(), set()
    for seed in range(300):
        case = draw_case(seed)
        for model in case.models:
            if "microbatch" not in model.kind:
                continue
            sizes.add(model.config["batch_size"])
            types = [one.batches[model.name].types[EVENT_TIME] for one in case.rounds]
            moved |= set(pairwise(types))
            ends = [end for one in case.rounds for batch in batches_of(model, one) for end in batch]
            changes |= {one for one in changes_of(case.zone) if min(ends) < one < max(ends)}
    assert sizes == set(SIZES)
    assert moved >= set(permutations(TYPES, 2))
    assert {one.month in (3, 4) for one in changes} == {True, False}


def test_a_seed_draws_the_same_case_again() -> None:
    # As text, because NaN is not equal to itself.
    assert repr(draw_case(7)) == repr(draw_case(7))
