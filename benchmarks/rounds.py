"""Many small rounds of changes with the default settings of compaction: what reads cost meanwhile, and what
compaction takes, against the same rounds by ``MERGE``, in one Spark and one run.

    python -m benchmarks.rounds --rows 2000000 --rounds 100 --dir /path/with/space

Each round changes 0.5 % of the rows (80 % updates, 10 % inserts, 10 % deletes) and runs what
``dbt-arctic compact`` would run. Then all rows are read, in turn with those of a table with as many rows as
large that was written once: a round's figure is the one over the other, each the median of a few reads of the
same minute, so that neither warm-up nor what else the machine does is taken for it. A round counts as a
quarter of an hour, so that the grace and the trigger ``age`` take part. Ratios hold on any machine; seconds
do not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.keyed_table import Bench, changes, config, merge_statement, rows
from dbt_arctic.compaction.plan import most_valuable_first
from dbt_arctic.compaction.run import run_operations
from dbt_arctic.compaction.settings import CompactionSettings, Trigger
from dbt_arctic.compaction.status import TableStatus
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.overview import TableOverview, overview_of
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.upsert import upsert
from dbt_arctic.store.context import Context

ROUND_MS = 15 * 60 * 1000
WARM_UP = 5
READ = "SELECT count(*), sum(price), max(comment), max(id) FROM {}"
SAME = "SELECT count(*), sum(id), sum(price), sum(hash(comment)) FROM {}"


@dataclass(frozen=True)
class Round:
    """How the table was read after a round's changes and what was due, and what it was like then.

    :param pending: not merged, and :param waiting: merged and not trimmed yet; as shares of the base's rows.
    :param hidden: of the base's stored rows.
    :param estimate: what ``dbt-arctic status`` says that a read costs.
    """

    ratio: float
    read_s: float
    fresh_s: float
    done: list[str]
    pending: float
    waiting: float
    hidden: float
    base_files: int
    delete_files: int
    change_files: int
    estimate: float


def change(size: int, number: int) -> str:
    """A round's changes, with rows as large as those that they replace."""
    small = changes(size, size // 200, number)
    comment = "concat(comment, ' on order ', md5(CAST(id AS STRING))) AS comment"
    return f"SELECT * EXCEPT (comment), {comment} FROM ({small})"


def measure(
    bench: Bench, size: int, rounds: int, reads: int, trigger: Trigger
) -> tuple[dict[str, float], list[Round]]:
    bench.run("schema", "CREATE SCHEMA IF NOT EXISTS lake.bench")
    name, static = Name("lake", "bench", "orders"), Name("lake", "bench", "fresh")
    model = config("orders", bench.buckets)
    began = bench.context.now_ms
    for table in (name, static):
        build_generation(
            bench.context, table, replace(model, model=table.identifier), rows(0, size), {}, owner=""
        )
    fresh = f"{static.schema}.{static.identifier}__base_1"
    bench.run("create", f"CREATE TABLE lake.bench.merged USING iceberg AS {rows(0, size)}")
    for _ in range(WARM_UP):  # what runs first pays for the classes that it loads
        bench.query(READ.format(f"lake.{fresh}"))
        bench.query(READ.format("lake.bench.orders"))
    told: list[Round] = []
    for number in range(rounds):
        context = replace(bench.context, now_ms=lambda number=number: began() + number * ROUND_MS)
        batch = change(size, number)
        bench.timed("upsert", lambda context=context, batch=batch: upsert(context, name, model, batch))
        ran = []
        for done in run_operations(context, most_valuable_first(seen_now(bench, context, name, trigger).due)):
            bench.seconds.setdefault("compaction", []).append(done.seconds)
            bench.seconds.setdefault(f"of it {done.operation.kind}", []).append(done.seconds)
            ran.append(done.operation.kind)
        for _ in range(reads):
            bench.timed("read of a fresh table", lambda: bench.query(READ.format(f"lake.{fresh}")))
            bench.timed("read", lambda: bench.query(READ.format("lake.bench.orders")))
        told.append(as_round(bench, seen_now(bench, context, name, trigger).status, reads, ran))
        bench.timed("MERGE", lambda batch=batch: bench.run("", merge_statement("lake.bench.merged", batch)))
    found = {repr(bench.query(SAME.format(f"lake.bench.{table}"))) for table in ("orders", "merged")}
    if len(found) != 1:
        raise SystemExit(f"the tables differ after the same changes: {found}")
    ratios = [one.ratio for one in told]
    total = {what: sum(taken) for what, taken in bench.seconds.items()}
    return {
        "95th percentile of reads / fresh": statistics.quantiles(ratios, n=20)[-1],
        "median of reads / fresh": statistics.median(ratios),
        "compaction / MERGE, in total": total.get("compaction", 0.0) / total["MERGE"],
        "upserts and compaction / MERGE, in total": (total["upsert"] + total.get("compaction", 0.0))
        / total["MERGE"],
    }, told


def seen_now(bench: Bench, context: Context, name: Name, trigger: Trigger) -> TableOverview:
    settings = CompactionSettings(trigger=trigger)
    (seen,) = overview_of(
        bench.catalog, "lake", ["bench"], context.now_ms(), lambda *_: settings, frozenset([name])
    )
    return seen


def as_round(bench: Bench, status: TableStatus | None, reads: int, done: list[str]) -> Round:
    if status is None:
        raise SystemExit("the table cannot be measured")
    of_view, of_fresh = (
        statistics.median(bench.seconds[what][-reads:]) for what in ("read", "read of a fresh table")
    )
    live = status.base.live_rows
    return Round(
        ratio=of_view / of_fresh,
        read_s=of_view,
        fresh_s=of_fresh,
        done=done,
        pending=status.pending.rows / live,
        waiting=status.pending.waiting_rows / live,
        hidden=status.base.delete_ratio,
        base_files=status.base.files,
        delete_files=status.base.delete_files,
        change_files=status.change.files,
        estimate=status.read_amplification,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--reads", type=int, default=3, help="Of each table in each round.")
    parser.add_argument("--pending", type=float, default=Trigger().pending, help="The trigger of that name.")
    parser.add_argument("--buckets", type=int, default=8)
    parser.add_argument("--memory", default="4g")
    parser.add_argument(
        "--dir", type=Path, help="an empty folder with enough space (default: a temporary one)"
    )
    arguments = parser.parse_args()
    folder = Path(arguments.dir or tempfile.mkdtemp(prefix="dbt-arctic-bench-"))
    bench = Bench(folder, arguments.memory, arguments.buckets)
    try:
        trigger = Trigger(pending=arguments.pending)
        ratios, told = measure(bench, arguments.rows, arguments.rounds, arguments.reads, trigger)
    finally:
        if arguments.dir is None:
            shutil.rmtree(folder, ignore_errors=True)
    table = Table("what", "seconds in total", "median", "times", title=f"{arguments.rows:,} rows")
    for what, taken in bench.seconds.items():
        table.add_row(what, f"{sum(taken):.1f}", f"{bench.median(what):.2f}", str(len(taken)))
    for what, ratio in ratios.items():
        table.add_row(f"[bold]{what}", f"[bold]{ratio:.2f}", "", "")
    Console().print(table)
    print(
        json.dumps(
            {
                "rows": arguments.rows,
                "pending": arguments.pending,
                "seconds": bench.seconds,
                "ratios": ratios,
                "rounds": [asdict(one) for one in told],
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
