"""Plays random stories until enough steps are done, prints each difference, and counts."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

from tests.dbt.random.soak import quicken, say


class Playable(Protocol):
    """A story, and what was said in it."""

    told: list[str]

    def play(self, steps: int) -> None: ...


def played(story: Playable, steps: int) -> str:
    """Play a story. Returns the difference that it has found; empty if there is none."""
    try:
        story.play(steps)
    except Exception as error:
        return "\n".join([*story.told, f"{type(error).__name__}: {error}"])
    return ""


def arguments(words: list[str] | None) -> argparse.Namespace:
    """The options of a soak."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no new story after so many")
    parser.add_argument(
        "--killed-processes", type=float, default=0.02, help="the share of runs that are killed processes"
    )
    os.environ.setdefault("DBT_LOG_LEVEL", "none")  # each cut-off run would be reported as an error
    quicken()
    return parser.parse_args(words)


def soak(
    name: str,
    given: argparse.Namespace,
    steps_each: int,
    play: Callable[[int, int], tuple[Mapping[str, int], str]],
) -> int:
    """Play stories. The last line has the counts; the exit code is 1 if there is any difference.

    :param play: plays the story of a seed with so many steps. Returns what it counts, its ``steps`` among it,
        and the difference that it has found.
    """
    counts: Counter[str] = Counter(steps=0)
    differences = 0
    began, seed = time.monotonic(), given.seed * 1_000_003
    line = ""
    while counts["steps"] < given.steps and time.monotonic() < began + 60 * given.minutes:
        found, difference = play(seed, min(steps_each, given.steps - counts["steps"]))
        counts.update(found)
        if difference:
            differences += 1
            say(f"difference, seed {seed}:\n{difference}")
        line = ", ".join(f"{counts[what]} {what}" for what in found) + f", {differences} differences"
        say(f"of {given.steps}: {line}")
        seed += 1
    sys.stdout.write(f"{name}: {line}\n")
    return 1 if differences else 0
