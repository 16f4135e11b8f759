"""``make soak-sources``: random stories of models that read a real Kafka, files and a real PostgreSQL.

Run as ``python -m tests.dbt.sources.soak --steps 2000 --seed 1``. A difference is printed with its story as
soon as it is found. The last line is ``sources: N steps, K kills, D differences``, and the exit code is 1 if
there is any difference.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping

from tests.dbt.sources.project import Parts, opened_place, running_parts
from tests.dbt.sources.soak_loop import arguments, played, soak
from tests.dbt.sources.story import Story

STEPS_EACH = 60


def play(parts: Parts, seed: int, steps: int, processes: float = 0.0) -> tuple[Story, str]:
    """A story, and the difference that it has found; empty if there is none."""
    chance = random.Random(seed)
    with opened_place(parts, chance) as place:
        story = Story(place, chance, processes)
        return story, played(story, steps)


def main(words: list[str] | None = None) -> int:
    given = arguments(words)
    with running_parts() as parts:

        def one(seed: int, steps: int) -> tuple[Mapping[str, int], str]:
            story, difference = play(parts, seed, steps, given.killed_processes)
            return {"steps": story.steps, "kills": story.kills}, difference

        return soak("sources", given, STEPS_EACH, one)


if __name__ == "__main__":
    sys.exit(main())
