"""Many random cases: ``python -m tests.planner.soak --cases 100000 --seed 1``.

The last line is ``planner: N cases, I incremental, F full, D differences``. A difference is printed as soon
as it is found, with its seed. Ctrl-C ends it with what was found until then. The exit code is 1 if there is
any, if an operator was met too rarely, if too few cases were run incrementally, or not all were run.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import signal
import sys
import time
from collections.abc import Sequence
from math import sqrt

from tests.planner.case_kinds import KINDS, OPERATORS
from tests.planner.tally import Tally, tally

OF_EACH_OPERATOR = 0.01
"""Of the cases: that have it, are run incrementally and have a difference that is not empty."""
INCREMENTAL = 0.9
LONG = 20_000
"""From so many cases on it is not chance that an operator is rare."""

_CHUNK = 250


def soak(cases: int, seed: int, processes: int) -> Tally:
    """Judge ``cases`` seeds from ``seed`` on, or as many as there is patience for."""
    chunks = [range(first, min(first + _CHUNK, seed + cases)) for first in range(seed, seed + cases, _CHUNK)]
    done, began, told = Tally(), time.monotonic(), 0.0
    with multiprocessing.get_context("spawn").Pool(processes, _begin) as pool:
        try:
            for one in pool.imap_unordered(tally, chunks):
                done.add(one)
                for wrong in one.wrong:
                    _say(f"DIFFERENT: {wrong}\n")
                now = time.monotonic() - began
                if now - told > 60:
                    told = now
                    _say(f"{done.cases} cases in {now:.0f} s, {len(done.wrong)} differences")
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    return done


def floor(share: float, cases: int) -> float:
    """How many of the cases must be of a kind that is to be a share of them: of few, what chance allows."""
    expected = share * cases
    return expected if cases >= LONG else expected - 4 * sqrt(expected * (1 - share))


def missing(done: Tally) -> list[str]:
    """What these cases do not prove, though nothing differs."""
    rare = done.rare(OPERATORS, floor(OF_EACH_OPERATOR, done.cases))
    found = [f"{name} was met by {count} cases only" for name, count in rare.items()]
    if done.incremental < floor(INCREMENTAL, done.cases):
        found.append(f"{done.incremental} of {done.cases} cases were run incrementally, which is too few")
    return found


def _begin() -> None:
    """Trees are many small objects, which live as long as a case: to look for cycles often takes long."""
    gc.set_threshold(100_000, 20, 20)
    # The parent process is interrupted, and prints the results.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


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
    _say("cases by kind, and of these run incrementally:")
    for kind in KINDS:
        cases = sum(count for (name, _), count in done.kinds.items() if name == kind)
        _say(f"  {cases:7} {kind}, {done.kinds[kind, 'incremental']}")
    for what, counted in (("full", done.full), ("not for DuckDB", done.not_run)):
        for why, count in counted.most_common():
            _say(f"  {count:7} {what}: {why}")
    not_proved = missing(done)
    if done.cases < given.cases:
        not_proved.append(f"{given.cases - done.cases} of {given.cases} cases were not run")
    for one in not_proved:
        _say(f"TOO FEW: {one}")
    full = sum(done.full.values())
    _say(
        f"planner: {done.cases} cases, {done.incremental} incremental, {full} full, "
        f"{len(done.wrong)} differences"
    )
    return 1 if done.wrong or not_proved else 0


if __name__ == "__main__":
    sys.exit(main())
