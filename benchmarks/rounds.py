"""Many small rounds of changes with the default settings of compaction: what reads cost meanwhile, and what
compaction takes, against the same rounds by ``MERGE``, in one Spark and one run.

    python -m benchmarks.rounds --rows 2000000 --rounds 100 --dir /path/with/space

Each round changes 0.5 % of the rows (80 % updates, 10 % inserts, 10 % deletes), reads all rows once, and runs
what ``dbt-arctic compact`` would run. A round counts as a quarter of an hour, so that the grace and the
trigger ``age`` take part. Ratios hold on any machine; seconds do not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.keyed_table import Bench, changes, config, merge_statement, rows
from dbt_arctic.compaction.plan import most_valuable_first
from dbt_arctic.compaction.run import run_operations
from dbt_arctic.compaction.settings import CompactionSettings
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.look import look
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.upsert import upsert

ROUND_MS = 15 * 60 * 1000
READ = "SELECT count(*), sum(price), max(comment), max(id) FROM {}"
SAME = "SELECT count(*), sum(id), sum(price), sum(hash(comment)) FROM {}"


def measure(bench: Bench, size: int, rounds: int) -> dict[str, float]:
    bench.run("schema", "CREATE SCHEMA IF NOT EXISTS lake.bench")
    name, count = Name("lake", "bench", "orders"), size // 200
    model = config("orders", bench.buckets)
    began = bench.edge.now_ms
    build_generation(bench.edge, name, model, rows(0, size), {}, owner="")
    bench.run("create", f"CREATE TABLE lake.bench.merged USING iceberg AS {rows(0, size)}")
    for _ in range(3):  # what runs first pays for the classes that it loads
        bench.query(READ.format("lake.bench.orders__base_1"))
    for _ in range(5):
        bench.timed("read of a fresh table", lambda: bench.query(READ.format("lake.bench.orders__base_1")))
    for number in range(rounds):
        edge = replace(bench.edge, now_ms=lambda number=number: began() + number * ROUND_MS)
        change = changes(size, count, number)
        bench.timed("upsert", lambda edge=edge, change=change: upsert(edge, name, model, change))
        (seen,) = look(
            bench.catalog,
            "lake",
            ["bench"],
            edge.now_ms(),
            lambda *_: CompactionSettings(),
            frozenset([name]),
        )
        for done in run_operations(edge, most_valuable_first(seen.due)):
            bench.seconds.setdefault("compaction", []).append(done.seconds)
            bench.seconds.setdefault(f"of it {done.operation.kind}", []).append(done.seconds)
        bench.timed("read", lambda: bench.query(READ.format("lake.bench.orders")))
        bench.timed(
            "MERGE", lambda change=change: bench.run("", merge_statement("lake.bench.merged", change))
        )
    found = {repr(bench.query(SAME.format(f"lake.bench.{table}"))) for table in ("orders", "merged")}
    if len(found) != 1:
        raise SystemExit(f"the tables differ after the same changes: {found}")
    fresh = bench.median("read of a fresh table")
    total = {what: sum(taken) for what, taken in bench.seconds.items()}
    return {
        "95th percentile of reads / fresh": statistics.quantiles(bench.seconds["read"], n=20)[-1] / fresh,
        "median of reads / fresh": bench.median("read") / fresh,
        "compaction / MERGE, in total": total.get("compaction", 0.0) / total["MERGE"],
        "upserts and compaction / MERGE, in total": (total["upsert"] + total.get("compaction", 0.0))
        / total["MERGE"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--buckets", type=int, default=8)
    parser.add_argument("--memory", default="4g")
    parser.add_argument(
        "--dir", type=Path, help="an empty folder with enough space (default: a temporary one)"
    )
    arguments = parser.parse_args()
    folder = Path(arguments.dir or tempfile.mkdtemp(prefix="dbt-arctic-bench-"))
    bench = Bench(folder, arguments.memory, arguments.buckets)
    try:
        ratios = measure(bench, arguments.rows, arguments.rounds)
    finally:
        if arguments.dir is None:
            shutil.rmtree(folder, ignore_errors=True)
    table = Table("what", "seconds in total", "median", "times", title=f"{arguments.rows:,} rows")
    for what, taken in bench.seconds.items():
        table.add_row(what, f"{sum(taken):.1f}", f"{bench.median(what):.2f}", str(len(taken)))
    for what, ratio in ratios.items():
        table.add_row(f"[bold]{what}", f"[bold]{ratio:.2f}", "", "")
    Console().print(table)
    print(json.dumps({"rows": arguments.rows, "seconds": bench.seconds, "ratios": ratios}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
