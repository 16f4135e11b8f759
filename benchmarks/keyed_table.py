"""What a keyed table costs, against the same rows in ``MERGE`` on Iceberg, in one Spark and one run.

    python benchmarks/keyed_table.py --rows 20000000 --dir /path/with/space

Measured: an upsert of 1 % of the rows (80 % updates, 10 % inserts, 10 % deletes) into a large and
into a small keyed table, the same changes by the statement that dbt-spark's `merge` strategy runs
(a table as dbt-spark creates it, Iceberg's defaults, and one with deletion vectors), reads with 1 %
pending, lookups of a key by Spark and by `dbt_arctic.read`, and compaction. Ratios hold on any machine;
seconds do not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.compaction.major import compact_major
from dbt_arctic.engine.session import SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance.table_read import read_table
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.upsert import upsert
from dbt_arctic.store.context import Context

COLUMNS = "id, customer, status, price, quantity, ordered_on, comment"


def rows(first: int, last: int) -> str:
    """Order-like rows with the ids of a range."""
    return f"""SELECT id, id % 99991 AS customer, CASE WHEN id % 3 = 0 THEN 'O' ELSE 'F' END AS status,
  CAST(id % 100000 / 7 AS DECIMAL(12,2)) AS price, CAST(id % 50 AS INT) AS quantity,
  date_add(DATE'2020-01-01', CAST(id % 2000 AS INT)) AS ordered_on,
  concat('comment on order ', id, ' ', md5(CAST(id AS STRING))) AS comment
FROM range({first}, {last})"""


def changes(table_rows: int, count: int, seed: int) -> str:
    """``count`` changes, spread over the table: 80 % updates, 10 % deletes, 10 % new rows."""
    step = table_rows // count
    return f"""SELECT CASE WHEN n % 10 = 9 THEN {table_rows} + {seed} * {count} + n
    ELSE n * {step} + {seed} % {step} END AS id,
  n % 77 AS customer, CASE WHEN n % 10 = 8 THEN 'GONE' ELSE 'U' END AS status,
  CAST({seed} AS DECIMAL(12,2)) AS price, 1 AS quantity, DATE'2026-01-01' AS ordered_on,
  concat('changed ', n) AS comment
FROM (SELECT id AS n FROM range(0, {count}))"""


class Bench:
    def __init__(self, folder: Path, memory: str, buckets: int) -> None:
        settings = SparkSettings("lake", str(folder), driver_memory=memory)
        self.connection = SessionEngine(settings).connect()
        self.catalog = EmbeddedCatalog("lake", str(folder))
        self.buckets = buckets
        self.context = Context(self.catalog, self.run, self.connection.query_schema, self.query)
        self.seconds: dict[str, list[float]] = {}

    def run(self, step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return cursor.known_rows

    def query(self, sql: str) -> list[tuple[object, ...]]:
        cursor = self.connection.cursor()
        cursor.execute(sql)
        return cursor.fetchall()

    def timed(self, name: str, action: Callable[[], object]) -> None:
        started = time.perf_counter()
        action()
        taken = time.perf_counter() - started
        self.seconds.setdefault(name, []).append(taken)
        Console(stderr=True).print(f"  {name}: {taken:.2f} s")

    def median(self, name: str) -> float:
        return statistics.median(self.seconds[name])


def config(name: str, buckets: int) -> KeyedConfig:
    return KeyedConfig(name, ("id",), buckets=buckets, delete_when="status = 'GONE'")


def merge_statement(target: str, source: str) -> str:
    """The statement of dbt-spark's `merge` strategy, with the delete clause that a user would add."""
    return f"""MERGE INTO {target} AS DBT_INTERNAL_DEST USING ({source}) AS DBT_INTERNAL_SOURCE
ON DBT_INTERNAL_DEST.id = DBT_INTERNAL_SOURCE.id
WHEN MATCHED AND DBT_INTERNAL_SOURCE.status = 'GONE' THEN DELETE
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED AND DBT_INTERNAL_SOURCE.status <> 'GONE' THEN INSERT *"""


def measure(bench: Bench, large: int, repeat: int) -> dict[str, float]:
    small, count = 1_000_000, large // 100
    bench.run("schema", "CREATE SCHEMA IF NOT EXISTS lake.bench")
    names = {"large": Name("lake", "bench", "large"), "small": Name("lake", "bench", "small")}
    for size, name in ((large, names["large"]), (small, names["small"])):
        bench.timed(
            f"build of {size:,} rows",
            lambda name=name, size=size: build_generation(
                bench.context, name, config(name.identifier, bench.buckets), rows(0, size), {}, owner=""
            ),
        )
    vectors = ", ".join(f"'write.{kind}.mode'='merge-on-read'" for kind in ("merge", "update", "delete"))
    for table, properties in (("plain", ""), ("vectors", f"TBLPROPERTIES ('format-version'='3', {vectors})")):
        bench.run("create", f"CREATE TABLE lake.bench.{table} USING iceberg {properties} AS {rows(0, large)}")

    aggregate = "SELECT count(*), sum(price), max(comment), max(id) FROM {}"
    base = "lake.bench.large__base_1"
    # Once unmeasured: what runs first pays for the JIT compiler and for the classes it loads.
    bench.query(aggregate.format(base))
    upsert(bench.context, names["small"], config("small", bench.buckets), changes(small, count, 99))
    for seed in range(repeat):
        bench.timed(
            f"upsert of {count:,} into {small:,}",
            lambda seed=seed: upsert(
                bench.context, names["small"], config("small", bench.buckets), changes(small, count, seed)
            ),
        )
        if seed > 0:
            compact_major(bench.context, names["large"], trim_grace_seconds=0)
        bench.timed(
            f"upsert of {count:,} into {large:,}",
            lambda seed=seed: upsert(
                bench.context, names["large"], config("large", bench.buckets), changes(large, count, seed)
            ),
        )
        for _ in range(2):
            bench.timed("read of the base", lambda: bench.query(aggregate.format(base)))
            bench.timed("read with 1 % pending", lambda: bench.query(aggregate.format("lake.bench.large")))
        for key in range(seed, large, large // 5):
            sql = f"SELECT * FROM lake.bench.large WHERE id = {key}"
            bench.timed("lookup of a key, by Spark", lambda sql=sql: bench.query(sql))
            bench.timed(
                "lookup of a key, by read",
                lambda key=key: read_table(bench.catalog, names["large"], keys=[key]),
            )
        columns = ["id", "quantity"]
        bench.timed(
            f"{small:,} rows of two columns, by read",
            lambda columns=columns: read_table(bench.catalog, names["small"], columns),
        )
        for table in ("plain", "vectors"):
            bench.timed(
                f"MERGE into {table}",
                lambda seed=seed, table=table: bench.run(
                    "merge", merge_statement(f"lake.bench.{table}", changes(large, count, seed))
                ),
            )
    same = "SELECT count(*), sum(id), sum(price), sum(hash(comment)) FROM {}"
    found = {name: bench.query(same.format(f"lake.bench.{name}")) for name in ("large", "plain", "vectors")}
    if len({repr(rows) for rows in found.values()}) != 1:
        raise SystemExit(f"the tables differ after the same changes: {found}")
    bench.timed("compaction", lambda: compact_major(bench.context, names["large"], trim_grace_seconds=0))
    into_large = bench.median(f"upsert of {count:,} into {large:,}")
    return {
        "merge / upsert": bench.median("MERGE into plain") / into_large,
        "merge with deletion vectors / upsert": bench.median("MERGE into vectors") / into_large,
        "upsert into large / into small": into_large / bench.median(f"upsert of {count:,} into {small:,}"),
        "read with 1 % pending / base": bench.median("read with 1 % pending")
        / bench.median("read of the base"),
        "lookup by Spark / by read": bench.median("lookup of a key, by Spark")
        / bench.median("lookup of a key, by read"),
        "merge with deletion vectors / compaction": bench.median("MERGE into vectors")
        / bench.median("compaction"),
    }


def run(doc: str | None, measure: Callable[[Bench, int, int], dict[str, float]], repeat: int) -> int:
    """The command line of a benchmark of one keyed table.

    :param measure: takes the number of rows and of repetitions, and returns ratios.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--buckets", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=repeat)
    parser.add_argument("--memory", default="4g")
    parser.add_argument(
        "--dir", type=Path, help="an empty folder with enough space (default: a temporary one)"
    )
    arguments = parser.parse_args()
    folder = Path(arguments.dir or tempfile.mkdtemp(prefix="dbt-arctic-bench-"))
    bench = Bench(folder, arguments.memory, arguments.buckets)
    try:
        ratios = measure(bench, arguments.rows, arguments.repeat)
    finally:
        if arguments.dir is None:
            shutil.rmtree(folder, ignore_errors=True)
    table = Table(
        "what", "seconds (median)", "runs", title=f"{arguments.rows:,} rows, {arguments.buckets} buckets"
    )
    for name in bench.seconds:
        table.add_row(name, f"{bench.median(name):.3f}", str(len(bench.seconds[name])))
    for name, ratio in ratios.items():
        table.add_row(f"[bold]{name}", f"[bold]{ratio:.2f}", "")
    Console().print(table)
    print(json.dumps({"rows": arguments.rows, "seconds": bench.seconds, "ratios": ratios}))
    return 0


if __name__ == "__main__":
    sys.exit(run(__doc__, measure, repeat=3))
