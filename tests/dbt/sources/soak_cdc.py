"""``make soak-cdc``: random stories of models that follow tables of a real PostgreSQL and MariaDB.

Run as ``python -m tests.dbt.sources.soak_cdc --steps 2000 --seed 1``. A difference is printed with its story
as soon as it is found. The last line is ``cdc: N steps, L ddl, K kills, D differences``, and the exit code is
1 if there is any difference.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from tests.dbt.keyed.database_servers import running_server
from tests.dbt.random.soak import quicken
from tests.dbt.sources.log_story import LogStory, opened_log_story
from tests.dbt.sources.project import Parts, running_parts
from tests.dbt.sources.soak import say

STEPS_EACH = 80


def play(parts: Parts, mariadb: Any, seed: int, steps: int) -> tuple[LogStory, str]:
    """A story, and the difference that it has found; empty if there is none."""
    with opened_log_story(parts, mariadb, seed) as story:
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
    os.environ.setdefault("DBT_LOG_LEVEL", "none")  # each run that is cut off would be reported as an error
    quicken()
    done = ddl = kills = differences = 0
    began, seed = time.monotonic(), given.seed * 1_000_003
    with running_parts() as parts, running_server("mariadb") as mariadb:
        while done < given.steps and time.monotonic() < began + 60 * given.minutes:
            story, found = play(parts, mariadb, seed, min(STEPS_EACH, given.steps - done))
            done += story.steps
            ddl += story.log.ddl
            kills += story.kills
            if found:
                differences += 1
                say(f"difference, seed {seed}:\n{found}")
            say(f"{done} of {given.steps} steps, {ddl} ddl, {kills} kills, {differences} differences")
            seed += 1
    sys.stdout.write(f"cdc: {done} steps, {ddl} ddl, {kills} kills, {differences} differences\n")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
