"""A process with its own Spark that executes commands and reports each step, until it is killed.

Run as ``python -m tests.faults.child WAREHOUSE SCHEMA``. Commands are lines of JSON on its input. It reports
by lines on its output: ``ready``; then for each operation ``begin N``, for each statement ``before STEP`` and
``landed STEP`` (it ran, but its result was not reported), and ``done N``, ``failed N`` or ``skipped N``;
``end``. If it is to be killed at a statement, it waits there.
"""

from __future__ import annotations

import base64
import json
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.errors import ArcticError
from dbt_arctic.store.state import find_keyed
from tests.model.operations import Operation, perform
from tests.model.spark import SparkWorld
from tests.model.story import Story
from tests.model.world import Disturbance, Process

RUNS_EACH = 10
"""Numbers of runs that an operation may use."""


def settings_for(warehouse: Path) -> SparkSettings:
    return SparkSettings(catalog="lake", warehouse=str(warehouse), master="local[2]", driver_memory="2g")


def encode(operations: list[Operation]) -> str:
    return base64.b64encode(pickle.dumps(operations)).decode()


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class TellingWorld(SparkWorld):
    """:param wait_at: which event of all statements to wait at, an even one before and an odd one after."""

    wait_at: int | None = None
    events = 0

    def process(self, run_id: str, disturbance: Disturbance | None = None) -> Process:
        made = super().process(run_id, disturbance)
        execute = made.execute

        def telling(sql: str) -> int:
            self._tell(f"before {sql.split(None, 1)[0]}")
            rows = execute(sql)
            self._tell(f"landed {sql.split(None, 1)[0]}")
            return rows

        made.execute = telling
        return made

    def _tell(self, event: str) -> None:
        here = self.events == self.wait_at
        self.events += 1
        say(f"{event} {'waiting' if here else ''}".strip())
        if here:
            threading.Event().wait()


def work(world: TellingWorld, order: dict[str, Any]) -> None:
    """:param order: ``sequence``, ``first`` number, ``operations`` and ``wait_at``."""
    world.wait_at = order["wait_at"]
    story = Story(world, sequence=order["sequence"], part="act")
    operations: list[Operation] = pickle.loads(base64.b64decode(order["operations"]))
    for place, operation in enumerate(operations):
        number = order["first"] + place
        story.runs = number * RUNS_EACH
        say(f"begin {number}")
        for table in (story.orders, story.copy):
            table.shown = find_keyed(world.catalog, table.name)
        if story.orders.shown is not None:
            story.versions.append(story.version())
        try:
            perform(story, operation)
        except ArcticError as error:
            say(f"failed {number} {str(error).splitlines()[0]}")
        else:
            say(f"{'done' if story.runs > number * RUNS_EACH else 'skipped'} {number}")


def main() -> None:
    warehouse = Path(sys.argv[1])
    engine = SessionEngine(settings_for(warehouse))
    world = TellingWorld(engine, EmbeddedCatalog("lake", warehouse), sys.argv[2])
    world.query("SELECT 1")
    say("ready")
    work(world, json.loads(sys.stdin.readline()))
    say("end")


if __name__ == "__main__":
    main()
