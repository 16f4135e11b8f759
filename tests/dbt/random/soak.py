"""``make soak-dbt``: many random projects, run with dbt on Spark.

Run as ``python -m tests.dbt.random.soak --cases 5000 --seed 1``. Each difference is printed as soon as it is
found, and its smallest form is written as a folder that a person can run. The last line is
``dbt: N runs, M models, R refused, D differences``, and the exit code is 1 if there is any difference.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.util import Finalize
from pathlib import Path

from dbt_common.behavior_flags import BehaviorFlagRendered
from dbt_common.tests import enable_test_caching

from tests import java
from tests.conftest import dump_at_once
from tests.dbt.random.case_folder import write_case
from tests.dbt.random.generate import draw_case
from tests.dbt.random.run import Bench, CaseResult, bench
from tests.dbt.random.shrink import shrink

_WORKER: dict[str, Bench] = {}
"""The Spark of this process, for as long as the process lives."""


@dataclass(frozen=True)
class Task:
    """:param found: where differing cases are written; ``None`` to leave them as they are."""

    seed: int
    models: int
    rounds: int
    found: Path | None


@dataclass
class CaseOutput:
    """:param lines: what to say about the case."""

    task: Task
    judged: CaseResult
    lines: list[str] = field(default_factory=list)


def say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=5000, help="how many runs of dbt")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no new case after so many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--models", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--processes", type=int, default=1, help="how many, each with a Spark of 2 GiB")
    parser.add_argument("--found", type=Path, default=Path("found"), help="where failing cases are written")
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args(words)
    total = CaseResult()
    began = told = time.monotonic()
    deadline = began + 60 * given.minutes
    found = None if given.no_shrink else given.found
    tasks = (Task(seed, given.models, given.rounds, found) for seed in itertools.count(given.seed))
    with closing(judged_in(given.processes, tasks)) as cases:
        try:
            for done in cases:
                add(total, done.judged)
                for line in done.lines:
                    say(line)
                if total.runs >= given.cases or time.monotonic() >= deadline:
                    break
                if time.monotonic() - told > 60:
                    told = time.monotonic()
                    say(f"{summary(total)}; seed {done.task.seed}; {costs(total, told - began)}")
        except KeyboardInterrupt:
            say("ended before all runs were made")
    say(json.dumps(dict(sorted(total.met.items()))))
    sys.stdout.write(summary(total) + "\n")
    is_complete = total.runs >= given.cases or time.monotonic() >= deadline
    return 1 if total.differences or not is_complete else 0


def judged_in(processes: int, tasks: Iterable[Task]) -> Generator[CaseOutput, None, None]:
    """The cases of tasks, as they end; in this process, or in several others."""
    if processes == 1:
        quicken()
        with bench() as place:
            for task in tasks:
                yield judged_at(place, task)
        return
    remaining = iter(tasks)
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=begin) as pool:
        running = {pool.submit(judged_here, task) for task in itertools.islice(remaining, processes)}
        try:
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for one in ended:
                    running.add(pool.submit(judged_here, next(remaining)))
                    yield one.result()
        finally:
            pool.shutdown(cancel_futures=True)


def begin() -> None:
    """Start the Spark of a process of a pool."""
    quicken()
    stack = ExitStack()
    _WORKER["bench"] = stack.enter_context(bench())
    Finalize(None, stack.close, exitpriority=100)


def judged_here(task: Task) -> CaseOutput:
    return judged_at(_WORKER["bench"], task)


def judged_at(place: Bench, task: Task) -> CaseOutput:
    """Run a case; of a difference, find the smallest case and write it."""
    case = draw_case(task.seed, task.models, task.rounds)
    done = CaseOutput(task, place.judge(case))
    for difference in done.judged.differences:
        done.lines.append(f"DIFFERENT: {difference}")
        if task.found is None:
            continue
        smaller, smallest = shrink(place, case, difference)
        folder = task.found / f"seed-{task.seed}-{difference.model or 'run'}"
        write_case(smaller, folder, str(smallest))
        done.lines.append(f"  written to {folder}: {smallest}")
    return done


def costs(total: CaseResult, seconds: float) -> str:
    """What a run has taken so far, and its parts."""
    parts = ", ".join(f"{name} {taken / total.runs:.2f}" for name, taken in total.seconds.most_common())
    return f"{seconds / total.runs:.2f} s a run ({parts})"


def summary(total: CaseResult) -> str:
    return (
        f"dbt: {total.runs} runs, {total.models} models, {total.refused} refused, "
        f"{len(total.differences)} differences"
    )


def add(total: CaseResult, one: CaseResult) -> None:
    total.runs += one.runs
    total.models += one.models
    total.refused += one.refused
    total.differences += one.differences
    total.met += one.met
    total.seconds += Counter(one.seconds)


def quicken() -> None:
    """What ``tests/conftest.py`` does for dbt in tests, and Java's options.

    Statements differ, so the optimising compiler is never done: after 180 runs, it had taken a third of the
    CPU of Java. A run took 3.6 CPU seconds with it, and 2.3 without.
    """
    java.choose()
    os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    enable_test_caching()
    BehaviorFlagRendered._default_source = staticmethod(lambda: "tests")  # type: ignore[method-assign]
    json.dump = dump_at_once


if __name__ == "__main__":
    sys.exit(main())
