"""Processor time of refreshes with large statements over small tables, compared with full refreshes.

    python -m benchmarks.statement_sizes --shapes linked,years --rounds 2

How large a statement may be before one that reads all rows is cheaper: the constants of
``dbt_arctic.auto.few_rows`` are set by this and by ``benchmarks.choice.both_ways``. Each shape is a query
that reads tables of TPC-H several times, at a small scale. Each model is refreshed with ``auto: strict``
after each round of changes, and rebuilt. Round 0 warms Spark up.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.tpch.changes import Changes
from benchmarks.tpch.data import generate, load
from benchmarks.tpch.lake import Lake
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.planner.algebra.operators import walk
from dbt_arctic.refresh.config import KeyedConfig

_CUSTOMERS = (
    "SELECT o_custkey AS k, c_name AS n, sum(o_totalprice) AS s, count(*) AS c FROM orders "
    "JOIN customer ON c_custkey = o_custkey GROUP BY o_custkey, c_name"
)
_YEARS = (
    "SELECT o_custkey AS k, year(o_orderdate) AS y, sum(o_totalprice) AS s FROM orders "
    "JOIN customer ON c_custkey = o_custkey GROUP BY o_custkey, year(o_orderdate)"
)


def linked(times: int) -> str:
    """Sums by customer, joined with themselves."""
    others = "".join(f" JOIN c AS c{place} ON c{place}.k = c0.k" for place in range(1, times))
    return f"WITH c AS ({_CUSTOMERS}) SELECT c0.k, c0.s + c{times - 1}.c AS s FROM c AS c0{others}"


def years(times: int) -> str:
    """Sums by customer and year, next to those of some years before."""
    listed = "".join(f", y{place}.s AS s{place}" for place in range(1, times))
    others = "".join(
        f" LEFT JOIN y AS y{place} ON y{place}.k = y0.k AND y{place}.y = y0.y - {place}"
        for place in range(1, times)
    )
    return f"WITH y AS ({_YEARS}) SELECT y0.k, y0.y, y0.s{listed} FROM y AS y0{others}"


def united(parts: int) -> str:
    """Parts of a UNION of joins, with a window over them."""
    each = " UNION ALL ".join(
        f"SELECT {place} AS part, o_orderkey AS id, c_nationkey AS nation, o_totalprice * {place + 1} AS p "
        f"FROM orders JOIN customer ON c_custkey = o_custkey WHERE o_orderkey % {parts} = {place}"
        for place in range(parts)
    )
    return f"SELECT part, id, p, sum(p) OVER (PARTITION BY part, nation) AS s FROM ({each})"


def scalars(values: int) -> str:
    """Counts of all rows, each in a subquery."""
    listed = ", ".join(f"v{place}" for place in range(values))
    each = " CROSS JOIN ".join(
        f"(SELECT count(*) AS v{place} FROM orders JOIN customer ON c_custkey = o_custkey "
        f"WHERE c_nationkey <> {place}) AS t{place}"
        for place in range(values)
    )
    return f"SELECT {listed} FROM {each}"


_SHAPES: dict[str, tuple[Callable[[int], str], tuple[str, ...], tuple[int, ...]]] = {
    "linked": (linked, ("k",), (1, 2, 3, 4, 6, 8, 10, 12)),
    "years": (years, ("k", "y"), (1, 2, 3, 4, 5, 7)),
    "united": (united, ("part", "id"), (1, 2)),
    "scalars": (scalars, ("v0",), (2, 3, 4, 5)),
}
"""Of a shape: its query, its key, and how often it reads its tables."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", default=",".join(_SHAPES), help="for instance linked,years")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--scale", type=float, default=0.01)
    parser.add_argument("--memory", default="2g")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dbt-arctic-statements-") as folder:
        files = Path(folder) / "files"
        generate(files, given.scale)
        lake = Lake.open(Path(folder) / "lake", given.memory, "local[2]", {})
        load(lake, files, buckets=1)
        changes = Changes(lake, 1, 0.01, recent=True, dimensions=1, seed=1)
        changes.begin()
        models = []
        for shape in given.shapes.split(","):
            query, key, sizes = _SHAPES[shape]
            for size in sizes:
                name = f"{shape}_{size}"
                config = KeyedConfig(name, key, buckets=1, auto="strict", full_refresh_above=math.inf)
                models.append((config, query(size)))
                refreshed(lake, config, query(size))
        print(
            "| round | statement | operators | in all | refresh | full |\n|---|---|---|---|---|---|",
            flush=True,
        )
        for number in range(given.rounds + 1):
            changes.round(number + 1)
            lake.begin_invocation()
            for config, sql in models:
                largest, both, seconds = refreshed(lake, config, sql)
                _, _, full = refreshed(lake, config, sql, in_full=True)
                print(
                    f"| {number} | {config.model} | {largest} | {both} | {seconds:.1f} | {full:.1f} |",
                    flush=True,
                )
    return 0


def refreshed(lake: Lake, config: KeyedConfig, sql: str, *, in_full: bool = False) -> tuple[int, int, float]:
    """Refresh a model, or build another table of its query.

    :returns: the operators of the largest tree and of all trees, and the processor time in seconds.
    """
    began = lake.cpu_seconds()
    name = lake.name(config.model + "_full" * in_full)
    plan = plan_refresh(lake.catalog, name, config, sql, lake.context.query_schema, rebuild=in_full)
    sizes = [sum(1 for _ in walk(node)) for node in plan.nodes]
    run_refresh(lake.context, name, config, plan, owner="benchmark")
    return max(sizes, default=0), sum(sizes), lake.cpu_seconds() - began


if __name__ == "__main__":
    sys.exit(main())
