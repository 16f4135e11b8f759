"""Thousands of random operations on keyed tables in a lake that is held in memory: nothing lost or doubled.

What runs is dbt-arctic itself; only Spark and Iceberg's commits are modelled. ``make soak`` runs more of it.
"""

from __future__ import annotations

from tests.extent import extent
from tests.model.random_stories import play_story
from tests.model.world import MemoryWorld

STORIES = extent(25, 100)
STEPS = 30


def test_whatever_is_done_in_whatever_order_the_tables_are_what_they_must_be() -> None:
    assert play_story(MemoryWorld, STORIES, STEPS) > STORIES * STEPS / 2
