"""The same random stories on real Spark and Iceberg: by the hundred instead of by the thousand."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from dbt_arctic.engine.session import SessionEngine
from tests.model.machine import Tally, make_machine
from tests.model.spark import SparkWorld

STORIES = 5
STEPS = 16


def test_whatever_is_done_in_whatever_order_the_tables_are_what_they_must_be(
    engine: SessionEngine, warehouse: Path
) -> None:
    tally = Tally()
    machine = make_machine(
        lambda seed, tick_ms: SparkWorld(engine, warehouse), tally, thorough=8, may_watch=False
    )
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=STORIES,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert tally.steps > STORIES * STEPS / 3
