"""Counts how often the refresh that was chosen was the faster one, incremental or full.

    python -m benchmarks.choice --scale 0.1 --rounds 3

Models: the queries of TPC-H, the example project's models over the same tables, and analytical queries. After
each round of changes, each model is refreshed as the product chooses, and the other way: rebuilt if the
product chose an incremental refresh, and ``auto: strict`` if it chose a full one. Full refreshes for which
there is no incremental plan are not counted, as they are no choice. Prints the most expensive wrong choices.
The exit code is 1 if a model differs from its query, too few choices were right, or a refresh took longer
than it may.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from benchmarks.choice.queries import KEYS, QUERIES
from benchmarks.choice.verdict import Measured, report, verdict_of
from benchmarks.tpch.__main__ import arguments, models_of
from benchmarks.tpch.changes import Changes
from benchmarks.tpch.data import generate, load
from benchmarks.tpch.lake import Lake
from benchmarks.tpch.models import Model, Refreshed
from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.config import KeyedConfig

CHOSEN_CODES = frozenset(
    ["costly-guard", "few-rows", "found-late", "guard", "many-changes", "many-keys", "slower", "small"]
)
"""Codes of full refreshes of models that have an incremental plan as well."""
STRICT = "_strict"


@dataclass(frozen=True)
class Both:
    """A model that is refreshed as the product chooses, and the same model with ``auto: strict``."""

    chosen: Model
    strict: Model


def own_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=0.1, help="scale factor of TPC-H, from 0.01")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--changed", type=float, default=0.01, help="share of the orders of a round")
    parser.add_argument("--models", default="", help="for instance q01,share_of_total (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--cpu", action="store_true", help="compare processor time, on a busy machine")
    parser.add_argument("--worst", type=int, default=10, help="how many losses are printed")
    parser.add_argument("--json", type=Path, help="write everything that was measured to this file")
    return parser.parse_args()


def both_of(given: argparse.Namespace) -> list[Both]:
    known = dict(models_of(arguments(["--full", "keyed"])))
    accept = frozenset({"ties"})
    known |= {
        name: Model(name, sql, KeyedConfig(name, KEYS[name], accept=accept)) for name, sql in QUERIES.items()
    }
    wanted = given.models.split(",") if given.models else [*known]
    found = []
    for name in wanted:
        one = known[name]
        own = replace(one.config, model=name + STRICT, auto="strict", full_refresh_above=math.inf)
        found.append(Both(one, Model(name + STRICT, one.sql, own)))
    return found


def measure(lake: Lake, models: Sequence[Both], number: int) -> Iterator[Measured]:
    for both in models:
        found = both.chosen.refresh(lake, "keyed")
        if found.differences:
            raise SystemExit(f"{both.chosen.query} differs from its query in {found.differences} rows")
        assert found.full_seconds is not None
        strict = _strictly(lake, both.strict)
        if found.strategy == "incremental":
            yield Measured(
                both.chosen.query,
                number,
                "incremental",
                found.reason or "keys",
                found.seconds,
                found.full_seconds,
            )
        elif found.reason in CHOSEN_CODES and strict is not None and strict.strategy == "incremental":
            yield Measured(both.chosen.query, number, "full", found.reason, found.seconds, strict.seconds)
        else:
            _tell(f"  {both.chosen.query}: {found.strategy} ({found.reason}), no choice")


def _strictly(lake: Lake, model: Model) -> Refreshed | None:
    """An incremental refresh; ``None`` if there can be none."""
    try:
        return model.refresh(lake, "no")
    except ConfigError as error:
        _tell(f"  {model.query}: {error.what}")
        return None


def main() -> int:
    given = own_arguments()
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory(prefix="dbt-arctic-choice-") as folder:
        files = Path(folder) / "files"
        generate(files, given.scale)
        lake = Lake.open(Path(folder) / "lake", given.memory, given.master, {})
        if given.cpu:
            lake.clock = lake.cpu_seconds
        load(lake, files, buckets=2)
        changes = Changes(lake, 2, given.changed, recent=True, dimensions=2, seed=given.seed)
        changes.begin()
        models = both_of(given)
        for both in models:
            both.chosen.build(lake)
            both.strict.build(lake)
            _tell(f"{both.chosen.query} built")
        for number in range(1, given.rounds + 1):
            rows = changes.round(number)
            _tell(f"round {number}: {rows} changed rows")
            lake.begin_invocation()
            for one in measure(lake, models, number):
                measured.append(one)
                mark = "" if one.is_right else ", wrong"
                _tell(f"  {one.model}: {one.chosen} ({one.why}) {one.seconds:.2f} s, {one.other:.2f} s{mark}")
    verdict = verdict_of(measured)
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in measured], indent=1), encoding="utf-8")
    sys.stdout.write(report(verdict, given.worst) + "\n")
    return 0 if verdict.holds else 1


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
