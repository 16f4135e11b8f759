"""What the Javas of tests are told, unless whoever runs them has told it themselves."""

from __future__ import annotations

import os

COLLECTOR = "-XX:+UseSerialGC"
"""Without threads of its own: two Sparks share two cores."""

STAYS = f"{COLLECTOR} -XX:ReservedCodeCacheSize=512m"
"""Of a Spark that a worker keeps for all its tests: after two minutes, code that is compiled with care saves
a tenth of each test and a fifth of its CPU. The code of an hour needs room, or is thrown away and compiled
again.
"""

ENDS_SOON = f"-XX:TieredStopAtLevel=1 {COLLECTOR} -XX:ReservedCodeCacheSize=256m"
"""Of a child that runs a few statements: a quick compiler halves its work."""

_OPTIONS = "JAVA_TOOL_OPTIONS"


def choose() -> None:
    os.environ.setdefault(_OPTIONS, STAYS)


def environment_of_child() -> dict[str, str]:
    chosen = os.environ.get(_OPTIONS, STAYS)
    return {**os.environ, _OPTIONS: ENDS_SOON if chosen == STAYS else chosen}
