"""``make soak-dbt``: many random projects, run with dbt on Spark.

Run as ``python -m tests.dbt.random.soak --cases 5000 --seed 1``. Each difference is printed as soon as it is
found, and its smallest form is written as a folder that a person can run. The last line is
``dbt: N runs, M models, R refused, D differences``, and the exit code is 1 if there is any difference.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path

from dbt_common.behavior_flags import BehaviorFlagRendered
from dbt_common.tests import enable_test_caching

from tests import java
from tests.conftest import dump_at_once
from tests.dbt.random.generate import draw_case
from tests.dbt.random.run import Judged, bench
from tests.dbt.random.shrink import shrink
from tests.dbt.random.written import write_case


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
    parser.add_argument("--found", type=Path, default=Path("found"), help="where failing cases are written")
    parser.add_argument("--no-shrink", action="store_true")
    given = parser.parse_args(words)
    java.choose(java.HOURS)
    quicken()
    total = Judged()
    seed, told = given.seed, 0.0
    deadline = time.monotonic() + 60 * given.minutes
    with bench() as place:
        try:
            while total.runs < given.cases and time.monotonic() < deadline:
                judged = place.judge(draw_case(seed, given.models, given.rounds))
                add(total, judged)
                for difference in judged.differences:
                    say(f"DIFFERENT: {difference}")
                    if given.no_shrink:
                        continue
                    case, smallest = shrink(place, draw_case(seed, given.models, given.rounds), difference)
                    folder = given.found / f"seed-{seed}-{difference.model or 'run'}"
                    write_case(case, folder, str(smallest))
                    say(f"  written to {folder}: {smallest}")
                seed += 1
                if time.monotonic() - told > 60:
                    told = time.monotonic()
                    say(f"{summary(total)}; seed {seed}; {dict(total.seconds)}")
        except KeyboardInterrupt:
            say("ended before all runs were made")
    say(json.dumps(dict(sorted(total.met.items()))))
    sys.stdout.write(summary(total) + "\n")
    is_complete = total.runs >= given.cases or time.monotonic() >= deadline
    return 1 if total.differences or not is_complete else 0


def summary(total: Judged) -> str:
    return (
        f"dbt: {total.runs} runs, {total.models} models, {total.refused} refused, "
        f"{len(total.differences)} differences"
    )


def add(total: Judged, one: Judged) -> None:
    total.runs += one.runs
    total.models += one.models
    total.refused += one.refused
    total.differences += one.differences
    total.met += one.met
    total.seconds += Counter(one.seconds)


def quicken() -> None:
    """What ``tests/conftest.py`` does for dbt in tests."""
    os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    enable_test_caching()
    BehaviorFlagRendered._default_source = staticmethod(lambda: "tests")  # type: ignore[method-assign]
    json.dump = dump_at_once


if __name__ == "__main__":
    sys.exit(main())
