"""Thousands of random operations on keyed tables in a lake that is held in memory: nothing lost or doubled.

What runs is dbt-arctic itself; only Spark and Iceberg's commits are modelled. ``make soak`` runs more of it.
"""

from __future__ import annotations

import pytest

from tests.extent import extent
from tests.model.random_stories import play_story
from tests.model.world import MemoryWorld, MemoryWorldWithoutViews

STORIES = extent(18, 100)
WITHOUT_VIEWS = extent(7, 50)
STEPS = 30


@pytest.mark.parametrize(
    ("world", "stories"), [(MemoryWorld, STORIES), (MemoryWorldWithoutViews, WITHOUT_VIEWS)]
)
def test_whatever_is_done_in_whatever_order_the_tables_are_what_they_must_be(
    world: type[MemoryWorld], stories: int
) -> None:
    assert play_story(world, stories, STEPS) > stories * STEPS / 2
