"""Draws and runs stories, one after the other. A failing story is shortened before it is shown."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from dbt_arctic.errors import ArcticError
from tests.model.machine import Tally, make_machine
from tests.model.script import MISTAKES, NewWorld, failure_of, shortened


def play_story(
    new_world: NewWorld,
    stories: int,
    steps: int,
    drawn_from: int | None = None,
    thorough: int = 4,
    may_watch: bool = True,
    few: bool = False,
    tries: int = 400,
    told: Callable[[str], None] | None = None,
) -> int:
    """Run some stories with a number of steps each. Returns the number of executed steps.

    :param drawn_from: a seed; ``None`` for the same stories each time.
    :param tries: how often a failing story is repeated, to shorten it.
    :param told: called with each difference; if missing, the difference is raised.
    """
    tally = Tally()
    machine = make_machine(new_world, tally, thorough, may_watch, few)
    wanted = settings(
        max_examples=stories,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=drawn_from is None,
        # Hypothesis would take minutes to shorten what we shorten in seconds.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
    )
    try:
        run_state_machine_as_test(
            machine if drawn_from is None else seed(drawn_from)(machine), settings=wanted
        )
    except (*MISTAKES, ArcticError) as error:
        difference = _described(tally, new_world, tries, error)
        if told is None:
            raise AssertionError(difference) from error
        told(difference)
    return tally.steps


def _described(tally: Tally, new_world: NewWorld, tries: int, error: Exception) -> str:
    script = tally.last
    assert script is not None
    failure = failure_of(script, new_world)
    if not failure:
        return f"only once: {type(error).__name__}: {error}\n{script}"
    script = shortened(script, new_world, tries)
    return f"{failure_of(script, new_world) or failure}\n{script}"
