"""Random dbt projects on Spark: a run that succeeds leaves the oracle's rows, one that fails the old ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dbt.random.generate import draw_case
from tests.dbt.random.project import KINDS
from tests.dbt.random.run import Bench, Judged, bench
from tests.dbt.random.soak import add
from tests.extent import extent

SEEDS = extent(range(40, 43), range(40, 60))
"""From the first on, three cases have every kind of model, a cut-off run, a retry and a full refresh."""


@pytest.fixture(scope="module")
def place() -> Iterator[Bench]:
    with bench() as made:
        yield made


def test_random_projects_hold_what_the_oracle_says(place: Bench) -> None:
    total = Judged()
    for seed in SEEDS:
        add(total, place.judge(draw_case(seed, models=12, rounds=3)))
    assert [str(one) for one in total.differences] == []
    assert total.refused > total.models // 50
    assert {kind for kind in KINDS if total.met[f"{kind}: written"]} == set(KINDS)


def test_a_seed_draws_the_same_case_again() -> None:
    assert draw_case(7) == draw_case(7)
