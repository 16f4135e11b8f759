"""Both ways of refreshing models over small tables, to which ``auto/few_rows.py`` is fitted.

    python -m benchmarks.choice.both_ways --scale 0.02 --rounds 2 --models q03,last_order --json found.json

Three tables of each model are refreshed after each round: incrementally (``auto: strict``), in full as by
``few-rows`` (all rows are compared with the stored ones), and by a rebuild. Prints the operators of all
statements, and seconds, of the processor and by the clock. Round 0 warms Spark up and is not recorded. The
last lines say how often the product would choose the faster of the first two ways, by default and with
``small_data``.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest import mock

from benchmarks.choice.queries import KEYS, QUERIES
from benchmarks.choice.verdict import Measured, report, verdict_of
from benchmarks.tpch.__main__ import arguments, models_of
from benchmarks.tpch.changes import Changes
from benchmarks.tpch.data import generate, load
from benchmarks.tpch.lake import Lake
from benchmarks.tpch.models import Model
from dbt_arctic.auto import few_rows
from dbt_arctic.auto.plan import OverState, RefreshPlan
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.state import load_keyed, stored_rows, total


@dataclass(frozen=True)
class Way:
    """One refresh of a model.

    :param how: what was done, as dbt's log shows it.
    :param cpu: processor time in seconds. :param wall: by the clock.
    """

    how: str
    cpu: float
    wall: float


@dataclass(frozen=True)
class BothWays:
    """A model in one round: incrementally, in full, and rebuilt.

    :param rows: the stored rows of its tables and its own; ``None`` if unknown.
    :param operators: those of the statements of the incremental refresh.
    :param expected: how much longer it is expected to take, in seconds.
    :param full_by_default: whether the product would choose the full one. :param full_if_small: the same with
        ``small_data``.
    """

    model: str
    round: int
    rows: int | None
    operators: int
    expected: float
    full_by_default: bool
    full_if_small: bool
    incremental: Way
    full: Way
    rebuilt: Way

    @property
    def is_choice(self) -> bool:
        """Whether there were two ways."""
        return self.incremental.how.startswith("INCREMENTAL") and self.full.how.startswith("FULL")

    def measured(self, in_full: bool) -> Measured:
        """What a choice of the one or the other has cost, in processor time."""
        own, other = (
            (self.full.cpu, self.incremental.cpu) if in_full else (self.incremental.cpu, self.full.cpu)
        )
        return Measured(self.model, self.round, "full" if in_full else "incremental", "", own, other)


def refreshed(lake: Lake, model: Model, config: KeyedConfig, plan: RefreshPlan | None = None) -> Way:
    """Refresh the table that the config names. :param plan: without it, the table is built."""
    cpu, wall, name = lake.cpu_seconds(), lake.clock(), lake.name(config.model)
    if plan is None:
        plan = planned(lake, model, config, rebuild=True)
    outcome = run_refresh(lake.context, name, config, plan, owner="benchmark")
    return Way(str(outcome.choice), lake.cpu_seconds() - cpu, lake.clock() - wall)


def planned(lake: Lake, model: Model, config: KeyedConfig, *, rebuild: bool = False) -> RefreshPlan:
    """The plan of a table."""
    name = lake.name(config.model)
    return plan_refresh(lake.catalog, name, config, model.sql, lake.context.query_schema, rebuild=rebuild)


def of_kind(model: Model, kind: str) -> KeyedConfig:
    """The config of one of the three tables of a model."""
    config = replace(model.config, model=f"{model.query}_{kind}")
    return replace(config, auto="strict", full_refresh_above=math.inf) if kind == "strict" else config


def refreshed_both_ways(lake: Lake, model: Model, number: int) -> BothWays:
    """Refresh the three tables of a model."""
    config = of_kind(model, "small")
    by_default, if_small = (
        planned(lake, model, replace(config, small_data=small)) for small in (False, True)
    )
    cpu, wall = lake.cpu_seconds(), lake.clock()
    plan = planned(lake, model, of_kind(model, "strict"))
    planning = lake.cpu_seconds() - cpu, lake.clock() - wall
    inner = plan.first if isinstance(plan, OverState) else plan
    own = load_keyed(lake.catalog, lake.name(config.model))
    rows = total([inner.stored_rows, stored_rows(lake.catalog, own)])
    operators = few_rows.operators_of(inner)
    expected = few_rows.extra_seconds(inner, operators, rows or 0)
    way = refreshed(lake, model, of_kind(model, "strict"), plan)
    incremental = replace(way, cpu=way.cpu + planning[0], wall=way.wall + planning[1])
    cpu, wall = lake.cpu_seconds(), lake.clock()
    with mock.patch.multiple(few_rows, MAX_EXTRA_SECONDS=-math.inf, FEW_ROWS=math.inf):
        plan = planned(lake, model, config)
        planning = lake.cpu_seconds() - cpu, lake.clock() - wall
        way = refreshed(lake, model, config, plan)
    full = replace(way, cpu=way.cpu + planning[0], wall=way.wall + planning[1])
    return BothWays(
        model.query,
        number,
        rows,
        operators,
        expected,
        by_default.action == "full",
        if_small.action == "full",
        incremental,
        full,
        refreshed(lake, model, of_kind(model, "full")),
    )


def line_of(one: BothWays) -> str:
    """A row of the table that is printed."""
    ways = (one.incremental, one.full, one.rebuilt)
    seconds = " | ".join(f"{way.cpu:.2f} ({way.wall:.2f})" for way in ways)
    chosen = "full" if one.full_by_default else "full if small" if one.full_if_small else "incremental"
    return (
        f"| {one.model} | {one.round} | {one.rows} | {one.incremental.how} | {one.full.how} | "
        f"{one.operators} | {one.expected:.1f} | {chosen} | {seconds} |"
    )


def all_models() -> dict[str, Model]:
    """The models of ``benchmarks.choice``, by name."""
    known = dict(models_of(arguments(["--full", "keyed"])))
    accept = frozenset({"ties"})
    own = {name: KeyedConfig(name, KEYS[name], accept=accept) for name in QUERIES}
    return known | {name: Model(name, sql, own[name]) for name, sql in QUERIES.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=0.02)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--changed", type=float, default=0.01)
    parser.add_argument("--models", default="", help="for instance q01,share_of_total (default: all)")
    parser.add_argument("--memory", default="2g")
    parser.add_argument("--json", type=Path, help="add everything that was measured to this file")
    given = parser.parse_args()
    known = all_models()
    models = [known[name] for name in (given.models.split(",") if given.models else known)]
    found: list[BothWays] = []
    with tempfile.TemporaryDirectory(prefix="dbt-arctic-both-") as folder:
        files = Path(folder) / "files"
        generate(files, given.scale)
        lake = Lake.open(Path(folder) / "lake", given.memory, "local[2]", {})
        load(lake, files, buckets=2)
        changes = Changes(lake, 2, given.changed, recent=True, dimensions=2, seed=1)
        changes.begin()
        for model in models:
            for kind in ("strict", "small"):
                refreshed(lake, model, of_kind(model, kind))
        for number in range(given.rounds + 1):
            changes.round(number + 1)
            lake.begin_invocation()
            for model in models:
                try:
                    one = refreshed_both_ways(lake, model, number)
                except ConfigError as error:
                    print(f"{model.query}: {error.what}", file=sys.stderr, flush=True)
                    continue
                print(line_of(one), flush=True)
                found += [one] if number else []
    choices = [one for one in found if one.is_choice]
    for setting, chosen in (("default", "full_by_default"), ("small_data", "full_if_small")):
        verdict = verdict_of(one.measured(getattr(one, chosen)) for one in choices)
        print(f"{setting}: {report(verdict, 5)}")
    if given.json:
        lines = "".join(json.dumps(asdict(one)) + "\n" for one in found)
        with given.json.open("a", encoding="utf-8") as file:
            file.write(lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
