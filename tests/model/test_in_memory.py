"""Thousands of random operations on keyed tables in a lake that is held in memory: nothing lost or doubled.

What runs is dbt-arctic itself; only Spark and Iceberg's commits are modelled. ``make soak`` runs more of it.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import Tally, make_machine
from tests.model.world import MemoryWorld

STORIES = 100
STEPS = 30


def test_whatever_is_done_in_whatever_order_the_tables_are_what_they_must_be() -> None:
    tally = Tally()
    run_state_machine_as_test(
        make_machine(MemoryWorld, tally),
        settings=settings(
            max_examples=STORIES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert tally.steps > STORIES * STEPS / 3
