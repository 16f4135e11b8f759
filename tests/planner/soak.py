"""Many random cases: ``python -m tests.planner.soak --cases 100000 --seed 1``.

The last line is ``planner: N cases, I incremental, F full, D differences``. A difference is printed as soon
as it is found, with its seed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence

from tests.planner.random_queries import OPERATORS
from tests.planner.tally import Tally, tally

_CHUNK = 250
_OF_TYPES = 5
"""Of so many chunks one is of columns of several types."""


def soak(cases: int, seed: int, processes: int) -> Tally:
    """Judge ``cases`` seeds from ``seed`` on."""
    chunks = [range(first, min(first + _CHUNK, seed + cases)) for first in range(seed, seed + cases, _CHUNK)]
    done, began, told = Tally(), time.monotonic(), 0.0
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for one in pool.imap_unordered(_tally, enumerate(chunks)):
            done.add(one)
            for wrong in one.wrong:
                _say(f"DIFFERENT: {wrong}\n")
            now = time.monotonic() - began
            if now - told > 60:
                told = now
                _say(f"{done.cases} cases in {now:.0f} s, {len(done.wrong)} differences")
    return done


def _tally(numbered: tuple[int, range]) -> Tally:
    number, seeds = numbered
    return tally(seeds, typed=number % _OF_TYPES == _OF_TYPES - 1)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    done = soak(given.cases, given.seed, given.processes)
    _say("cases run incrementally with a difference that is not empty, by operator:")
    for name in sorted(OPERATORS, key=lambda name: done.operators[name]):
        _say(f"  {done.operators[name]:7} {name}")
    for kind, counted in (("full", done.full), ("not for DuckDB", done.not_run)):
        for why, count in counted.most_common():
            _say(f"  {count:7} {kind}: {why}")
    full = sum(done.full.values())
    _say(
        f"planner: {done.cases} cases, {done.incremental} incremental, {full} full, "
        f"{len(done.wrong)} differences"
    )
    return 1 if done.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
