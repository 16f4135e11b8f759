"""``make soak-sources``: random stories of models that read a real Kafka, files and a real PostgreSQL.

Run as ``python -m tests.dbt.sources.soak --steps 2000 --seed 1``. A difference is printed with its story as
soon as it is found. The last line is ``sources: N steps, K kills, D differences``, and the exit code is 1 if
there is any difference.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time

from tests.dbt.random.soak import quicken
from tests.dbt.sources.project import Parts, opened_place, running_parts
from tests.dbt.sources.story import Story

STEPS_EACH = 60


def say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


def play(parts: Parts, seed: int, steps: int) -> tuple[Story, str]:
    """A story, and the difference that it has found; empty if there is none."""
    chance = random.Random(seed)
    with opened_place(parts, chance) as place:
        story = Story(place, chance)
        try:
            story.play(steps)
        except Exception as error:
            return story, "\n".join([*story.told, f"{type(error).__name__}: {error}"])
    return story, ""


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no new story after so many")
    given = parser.parse_args(words)
    os.environ.setdefault("DBT_LOG_LEVEL", "none")  # each cut-off run would be reported as an error
    quicken()
    done = kills = differences = 0
    began, seed = time.monotonic(), given.seed * 1_000_003
    with running_parts() as parts:
        while done < given.steps and time.monotonic() < began + 60 * given.minutes:
            story, found = play(parts, seed, min(STEPS_EACH, given.steps - done))
            done += story.steps
            kills += story.kills
            if found:
                differences += 1
                say(f"difference, seed {seed}:\n{found}")
            say(f"{done} of {given.steps} steps, {kills} kills, {differences} differences")
            seed += 1
    sys.stdout.write(f"sources: {done} steps, {kills} kills, {differences} differences\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
