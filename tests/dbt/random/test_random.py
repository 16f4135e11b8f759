"""Random dbt projects on Spark: a run that succeeds leaves the oracle's rows, one that fails the old ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dbt.random.generate import draw_case
from tests.dbt.random.project import KINDS
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


def test_a_seed_draws_the_same_case_again() -> None:
    # As text, because NaN is not equal to itself.
    assert repr(draw_case(7)) == repr(draw_case(7))
