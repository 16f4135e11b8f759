"""The same random stories on real Spark and Iceberg: by the dozen instead of by the thousand."""

from __future__ import annotations

from pathlib import Path

from dbt_arctic.engine.session import SessionEngine
from tests.extent import extent
from tests.model.random_stories import play_story
from tests.model.spark import SparkWorld, embedded_world

STORIES = extent(2, 3)
STEPS = 16


def test_whatever_is_done_in_whatever_order_the_tables_are_what_they_must_be(
    engine: SessionEngine, warehouse: Path
) -> None:
    def new_world(seed: int, tick_ms: int) -> SparkWorld:
        return embedded_world(engine, warehouse)

    steps = play_story(new_world, STORIES, STEPS, thorough=8, may_watch=False, few=True, tries=8)
    assert steps > STORIES * STEPS / 3
