"""A few real kills; ``make soak`` makes more of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dbt_arctic.engine.session import SessionEngine
from tests.extent import extent
from tests.faults.kills import COMPACTIONS, KINDS, Kills


@pytest.mark.parametrize(
    ("kinds", "ways"),
    [
        # What is cut off after a statement has landed, the tests in memory have too.
        pytest.param(KINDS, extent(("catalog",), ("landed", "catalog")), id="of what writes"),
        pytest.param(
            (*COMPACTIONS, "upsert", "upsert"),
            ("catalog", "before"),
            id="of what compacts",
            marks=pytest.mark.long,
        ),
    ],
)
def test_nothing_is_lost_or_doubled_by_kills(
    engine: SessionEngine, warehouse: Path, kinds: tuple[str, ...], ways: tuple[str, ...]
) -> None:
    kills = Kills(engine, warehouse, random.Random(5), sequence=False, kinds=kinds)
    victim = kills.victim()
    try:
        for place, way in enumerate(ways):
            killed, following = victim, kills.victim() if place + 1 < len(ways) else None
            kills.kill(killed, way)
            victim = following or killed
    finally:
        victim.kill()
        kills.story.world.close()
    assert kills.done == len(ways)
