"""``make soak``: random stories for as long as asked, in memory and on Spark, and real kills.

Run as ``python -m tests.model.soak STEPS SEED [SPARK [KILLS]]``. The last line tells what was done, and the
exit code is 1 if anything was lost or doubled. Each difference is told with the shortest script found for it.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.errors import ArcticError
from tests.faults.child import settings_for
from tests.faults.kills import WAYS, Kills
from tests.model.machine import Tally, make_machine
from tests.model.script import NewWorld, failure_of, shortened
from tests.model.spark import SparkWorld
from tests.model.world import MemoryWorld

STEPS_EACH = 40
STORIES_AT_ONCE = 25
ROUNDS_PER_SCHEMA = 8


def say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


class Soak:
    """:param begun_with: the seed; everything that is drawn follows from it, except when a kill hits."""

    def __init__(self, begun_with: int) -> None:
        self.seed = begun_with
        self.differences = 0

    def stories(self, steps: int, new_world: NewWorld, what: str, is_watched: bool, stories: int) -> int:
        """Stories until there are enough steps; how many there were."""
        done = batch = 0
        while done < steps:
            tally = Tally()
            machine = make_machine(new_world, tally, thorough=4 if is_watched else 8, may_watch=is_watched)
            drawn = seed(self.seed * 1_000_003 + batch)(machine)
            batch += 1
            wanted = settings(
                max_examples=stories,
                stateful_step_count=STEPS_EACH,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
                print_blob=False,
            )
            try:
                run_state_machine_as_test(drawn, settings=wanted)
            except (AssertionError, ArcticError, LookupError, TypeError, ValueError) as error:
                self.tell(tally, new_world, what, error)
            done += tally.steps
            say(f"{what}: {done} of {steps} steps, {self.differences} differences")
        return done

    def tell(self, tally: Tally, new_world: NewWorld, what: str, error: Exception) -> None:
        self.differences += 1
        script = tally.last
        if script is not None and failure_of(script, new_world):
            script = shortened(script, new_world, tries=400 if what == "in memory" else 12)
        say(f"difference {what}, seed {self.seed}: {type(error).__name__}: {error}\n{script}")

    def kills(self, wanted: int, engine: SessionEngine, warehouse: Path) -> int:
        chance = random.Random(self.seed)
        done = landed = 0
        while done < wanted:
            kills = Kills(engine, warehouse, chance, sequence=chance.random() < 0.3)
            rounds = min(ROUNDS_PER_SCHEMA, wanted - done)
            victim = kills.victim()
            try:
                for left in reversed(range(rounds)):
                    killed, victim = victim, kills.victim() if left else victim
                    kills.kill(killed, chance.choice(WAYS))
                    say(f"kills: {done + kills.done} of {wanted}, {self.differences} differences")
            except (AssertionError, ArcticError) as error:
                self.differences += 1
                last = "\n".join(kills.story.trace[-40:])
                say(f"difference after a kill, seed {self.seed}: {type(error).__name__}: {error}\n{last}")
                kills.done += 1
            finally:
                victim.kill()
                kills.story.world.close()
            done += kills.done
            landed += kills.landed
        say(f"kills: of {done} that were cut off, {landed} had landed before they were told")
        return done


def main() -> int:
    numbers = [int(text) for text in sys.argv[1:] if text]
    steps, begun_with = numbers[0], numbers[1]
    on_spark = numbers[2] if len(numbers) > 2 else steps // 10
    kills = numbers[3] if len(numbers) > 3 else steps // 200
    soak = Soak(begun_with)
    done = soak.stories(steps, MemoryWorld, "in memory", True, STORIES_AT_ONCE)
    spark = killed = 0
    if on_spark or kills:
        warehouse = Path(tempfile.mkdtemp(prefix="soak-"))
        engine = SessionEngine(settings_for(warehouse))
        try:
            spark = soak.stories(
                on_spark, lambda seed, tick_ms: SparkWorld(engine, warehouse), "on Spark", False, 4
            )
            killed = soak.kills(kills, engine, warehouse)
        finally:
            engine.close()
            shutil.rmtree(warehouse, ignore_errors=True)
    sys.stdout.write(
        f"soak: {done + spark} steps, {spark} on spark, {killed} kills, {soak.differences} differences\n"
    )
    return 1 if soak.differences else 0


if __name__ == "__main__":
    sys.exit(main())
