"""The 22 queries of TPC-H as automatic models: refreshed after rounds of changes, compared with the query.

If full refreshes are timed as well, the example project's automatic models are timed too, over the same
tables.

    python -m benchmarks.tpch --scale 0.01 --rounds 50
    python -m benchmarks.tpch --scale 1 --rounds 3 --full keyed --keys recent --changed 0.01

Sources are keyed tables, refreshes are those of the adapter (only dbt is left out). The exit code is 1 where
a model differs from its query.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.tpch.changes import Changes
from benchmarks.tpch.data import KEYS, generate, load
from benchmarks.tpch.example import example_models
from benchmarks.tpch.lake import Lake
from benchmarks.tpch.models import Model
from benchmarks.tpch.report import as_json, last_line, print_table
from dbt_arctic.auto import few_rows, nested_view
from dbt_arctic.auto.auxiliary_tables import state_name
from dbt_arctic.compaction.major import compact_major
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.store.state import find_keyed
from tests.planner import tpch_data

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For a scale below 0.1: what costs is to plan and to compile."""


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """:param words: those of the command line without its name; without them, this process's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--scale", type=float, default=0.01, help="scale factor, from 0.01; 1 is a gigabyte")
    add("--rounds", type=int, default=2)
    add(
        "--changed",
        type=float,
        default=0.01,
        help="share of the orders that a round changes, with their lines",
    )
    add("--keys", choices=("recent", "uniform"), default="recent", help="which orders")
    add("--dimensions", type=int, help="other tables change every so many rounds (0: never)")
    add(
        "--full",
        choices=("no", "keyed", "plain"),
        default="no",
        help="time a full refresh beside each refresh",
    )
    add(
        "--above",
        type=float,
        help="full_refresh_above (default: 0.3 with --full, else never)",
    )
    add("--compact-every", type=int, default=5, help="compact all tables every so many rounds (0: never)")
    add("--queries", default="", help="for instance q01,q05,dwd_orders")
    add("--buckets", type=int, default=8, help="of the sources")
    add("--model-buckets", type=int, help="of the models (default: what the product chooses)")
    add("--seed", type=int, default=1)
    add("--memory", default="2g")
    add("--master", default="local[2]")
    add("--conf", action="append", default=[], metavar="KEY=VALUE", help="of Spark")
    add("--dir", type=Path, help="generated files stay here; the lake does not (default: a temporary folder)")
    add("--lake", type=Path, help="a lake that stays; one that is there is gone on from")
    add("--json", type=Path, help="write everything that was measured to this file")
    given = parser.parse_args(words)
    timing = given.full != "no"
    if given.dimensions is None:
        given.dimensions = 0 if timing else 2
    if given.above is None:
        given.above = KeyedConfig.full_refresh_above if timing else math.inf
    return given


def main() -> int:
    given = arguments()
    timing = given.full != "no"
    known = models_of(given)
    wanted = given.queries.split(",") if given.queries else [*known] if timing else [*tpch_data.QUERIES]
    folder = given.dir or Path(tempfile.mkdtemp(prefix="dbt-arctic-tpch-"))
    if given.lake:
        warehouse = given.lake.resolve()
    else:
        warehouse = Path(tempfile.mkdtemp(prefix="lake-", dir=folder)) if given.dir else folder / "lake"
    conf = SMALL if given.scale < 0.1 and not timing else {}
    if given.scale < 1:
        # What large tables get is tried on small ones.
        nested_view.WORTH_ROWS = 1
        few_rows.MAX_EXTRA_SECONDS = math.inf
    try:
        generate(folder / f"scale-{given.scale:g}", given.scale)
        lake = Lake.open(
            warehouse, given.memory, given.master, {**conf, **dict(pair.split("=", 1) for pair in given.conf)}
        )
        models = [known[name] for name in wanted]
        run(lake, models, given, folder / f"scale-{given.scale:g}")
    finally:
        if not given.lake:
            shutil.rmtree(warehouse if given.dir else folder, ignore_errors=True)
        elif not given.dir:
            shutil.rmtree(folder, ignore_errors=True)
    title = f"scale {given.scale:g}, {given.changed:.2%} of the orders changed, {given.keys} keys"
    print_table(models, title)
    if given.json:
        settings = {name: str(value) for name, value in vars(given).items()}
        given.json.write_text(json.dumps(as_json(models, settings), indent=1), encoding="utf-8")
    print(last_line(models, given.rounds))
    return 1 if any(entry.differences for model in models for entry in model.rounds) else 0


def models_of(given: argparse.Namespace) -> dict[str, Model]:
    """By name: the queries, and the example's models in their order."""

    def config(name: str, key: tuple[str, ...], **more: Any) -> KeyedConfig:
        # TPC-H leaves open which rows come first where the order leaves them equal.
        accept = frozenset({"ties"})
        above = given.above
        return KeyedConfig(
            name, key, buckets=given.model_buckets, full_refresh_above=above, accept=accept, **more
        )

    models = {
        name: Model(name, sql, config(name, tpch_data.KEYS[name])) for name, sql in tpch_data.QUERIES.items()
    }
    for name, one in example_models().items():
        own = config(name, one.key, bucket_by=one.bucket_by, before_images=one.is_read)
        models[name] = Model(name, one.sql, own, is_query=False)
    return models


def run(lake: Lake, models: list[Model], given: argparse.Namespace, files: Path) -> None:
    began = time.perf_counter()
    load(lake, files, given.buckets)
    _tell(f"loaded in {time.perf_counter() - began:.0f} s")
    changes = Changes(
        lake, given.buckets, given.changed, given.keys == "recent", given.dimensions, given.seed
    )
    changes.begin()
    lake.models = [lake.name(model.query) for model in models]
    for model in models:
        began = time.perf_counter()
        model.build(lake)
        _tell(f"{model.query} built in {time.perf_counter() - began:.1f} s")
    for number in range(1, given.rounds + 1):
        began = time.perf_counter()
        rows = changes.round(number)
        lake.begin_invocation()
        _tell(f"round {number}: {rows} changed orders and lines in {time.perf_counter() - began:.1f} s")
        for model in models:
            found = model.refresh(lake, given.full)
            full = "" if found.full_seconds is None else f", in full {found.full_seconds:.2f} s"
            wrong = f", {found.differences} DIFFERENCES" if found.differences else ""
            keys = found.reason if found.keys is None else f"{found.keys} keys"
            _tell(
                f"  {model.query} {found.strategy} ({keys}), {found.rows} rows "
                f"in {found.seconds:.2f} s{full}{wrong}"
            )
        if given.compact_every and number % given.compact_every == 0:
            for name in (*map(lake.name, KEYS), *lake.models, *map(state_name, lake.models)):
                if find_keyed(lake.catalog, name) is not None:
                    compact_major(lake.context, name, trim_grace_seconds=0)


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
