"""A few real kills; ``make soak`` makes more of them."""

from __future__ import annotations

import random
from pathlib import Path

from dbt_arctic.engine.session import SessionEngine
from tests.faults.kills import Kills


def test_nothing_is_lost_or_doubled_by_kills(engine: SessionEngine, warehouse: Path) -> None:
    kills = Kills(engine, warehouse, random.Random(5), sequence=False)
    ways = ("landed", "catalog")
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
