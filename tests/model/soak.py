"""``make soak``: random stories of a given number of steps, in memory and on Spark, and real kills.

Run as ``python -m tests.model.soak STEPS SEED [SPARK [KILLS]]``. The last line contains the counts, and the
exit code is 1 if any row was lost or doubled. Each difference is printed with the shortest script found for
it.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.errors import ArcticError
from tests import java
from tests.faults.child import settings_for
from tests.faults.kills import WAYS, Kills
from tests.model.random_stories import play_story
from tests.model.script import NewWorld
from tests.model.spark import embedded_world
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

    def stories(self, steps: int, new_world: NewWorld, what: str, stories: int) -> int:
        """Stories until there are enough steps; how many there were."""
        done = batch = 0
        in_memory = new_world is MemoryWorld
        while done < steps:
            done += play_story(
                new_world,
                min(stories, -(-(steps - done) // STEPS_EACH)),
                STEPS_EACH,
                self.seed * 1_000_003 + batch,
                thorough=4 if in_memory else 8,
                may_watch=in_memory,
                few=not in_memory,
                tries=400 if in_memory else 12,
                told=lambda difference: self.differ(what, difference),
            )
            batch += 1
            say(f"{what}: {done} of {steps} steps, {self.differences} differences")
        return done

    def differ(self, what: str, difference: str) -> None:
        self.differences += 1
        say(f"difference {what}, seed {self.seed}: {difference}")

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
                last = "\n".join(kills.story.trace[-40:])
                self.differ("after a kill", f"{type(error).__name__}: {error}\n{last}")
                kills.done += 1
            finally:
                victim.kill()
                kills.story.world.close()
            done += kills.done
            landed += kills.landed
        say(f"kills: of {done} that were cut off, {landed} had landed before they were told")
        return done


def main() -> int:
    told = [*sys.argv[1:], "", ""]
    steps, begun_with = int(told[0]), int(told[1])
    on_spark = int(told[2]) if told[2] else steps // 10
    kills = int(told[3]) if told[3] else steps // 200
    java.choose(java.HOURS)
    soak = Soak(begun_with)
    done = soak.stories(steps, MemoryWorld, "in memory", STORIES_AT_ONCE)
    spark = killed = 0
    if on_spark or kills:
        warehouse = Path(tempfile.mkdtemp(prefix="soak-"))
        engine = SessionEngine(settings_for(warehouse))
        try:
            spark = soak.stories(
                on_spark, lambda seed, tick_ms: embedded_world(engine, warehouse), "on Spark", 4
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
