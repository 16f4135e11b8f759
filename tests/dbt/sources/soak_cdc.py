"""``make soak-cdc``: random stories of models that follow tables of a real PostgreSQL and MariaDB.

Run as ``python -m tests.dbt.sources.soak_cdc --steps 2000 --seed 1``. A difference is printed with its story
as soon as it is found. The last line is ``cdc: N steps, L ddl, K kills, D differences``, and the exit code is
1 if there is any difference.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.dbt.keyed.database_servers import running_server
from tests.dbt.keyed.kafka_topics import add_reader
from tests.dbt.sources.log_story import LogStory, opened_log_story
from tests.dbt.sources.project import Parts, running_parts
from tests.dbt.sources.soak_loop import arguments, played, soak

STEPS_EACH = 80


def play(parts: Parts, mariadb: Any, seed: int, steps: int, processes: float = 0.0) -> tuple[LogStory, str]:
    """A story, and the difference that it has found; empty if there is none."""
    with opened_log_story(parts, mariadb, seed, processes) as story:
        return story, played(story, steps)


def main(words: list[str] | None = None) -> int:
    given = arguments(words)
    with (
        running_parts() as parts,
        running_server("mariadb") as mariadb,
        tempfile.TemporaryDirectory(prefix="soak-cdc-") as folder,
    ):
        add_reader(parts.connection, Path(folder), "mariadb")

        def one(seed: int, steps: int) -> tuple[Mapping[str, int], str]:
            story, difference = play(parts, mariadb, seed, steps, given.killed_processes)
            return {"steps": story.steps, "ddl": story.log.ddl, "kills": story.kills}, difference

        return soak("cdc", given, STEPS_EACH, one)


if __name__ == "__main__":
    sys.exit(main())
