"""What small and middling keyed tables cost, by their number of buckets and by the commits that are pending.

    python -m benchmarks.small_tables --rows 1000,100000 --buckets 8,auto --dir /path/with/space

For each size, tables with these numbers of buckets (``auto``: what dbt-arctic chooses) and a plain Iceberg
table are built, changed and read in turn, in one Spark: a figure is the median of the rounds. CPU seconds are
those of the whole Java process, compiler and collector included, so that a busy machine changes them less
than the seconds of a clock. The first round is not measured.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.keyed_table import Bench, changes, rows
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.build import build_generation
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.upsert import upsert

PLAIN = "plain"
_TICKS = os.sysconf("SC_CLK_TCK")


class Measured(Bench):
    """Collects CPU and wall seconds by step, number of rows and layout."""

    def __init__(self, folder: Path, memory: str) -> None:
        super().__init__(folder, memory, 0)
        self.context = replace(self.context, cores=self.connection.settings.cores)
        self._stat = Path(
            f"/proc/{self.connection.session._jvm.java.lang.ProcessHandle.current().pid()}/stat"
        )
        self.taken: dict[tuple[str, int, str], list[tuple[float, float]]] = {}
        self.is_warm = False

    def measure(self, step: str, count: int, layout: str, action: Callable[[], object]) -> None:
        began, before = time.perf_counter(), self._cpu()
        action()
        taken = (self._cpu() - before, time.perf_counter() - began)
        if self.is_warm:
            self.taken.setdefault((step, count, layout), []).append(taken)

    def _cpu(self) -> float:
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


def reads(count: int) -> dict[str, str]:
    """The measured queries by name."""
    return {
        "narrow": "SELECT sum(quantity) FROM {}",
        "wide": "SELECT sum(price), max(comment), max(customer), max(status), max(ordered_on) FROM {}",
        "one key": f"SELECT comment FROM {{}} WHERE id = {count // 2}",
        "filtered": "SELECT sum(price) FROM {} WHERE quantity = 7 AND customer < 5000",
        "count": "SELECT count(*) FROM {}",
    }


def story(bench: Measured, count: int, layouts: Sequence[str], pending: Sequence[int], repeat: int) -> None:
    """Build, change and read a table of each layout, once unmeasured and then ``repeat`` times."""
    configs = {
        layout: KeyedConfig(layout, ("id",), buckets=None if layout == "auto" else int(layout))
        for layout in layouts
        if layout != PLAIN
    }
    few = max(15, count // 100)
    for round_ in range(repeat + 1):
        bench.is_warm = round_ > 0
        names = {one: Name("lake", "bench", f"rows_{count}_{one}_{round_}") for one in layouts}
        for layout, name in names.items():
            bench.measure("build", count, layout, partial(build, bench, name, configs.get(layout), count))
        committed = 0
        for wanted in pending:
            for seed in range(committed, wanted):
                batch = changes(max(count, few), few, seed)
                for layout, config in configs.items():
                    action = partial(upsert, bench.context, names[layout], config, batch)
                    bench.measure("upsert", count, layout, action)
            committed = wanted
            for kind, query in reads(count).items():
                for layout, name in names.items():
                    action = partial(bench.query, query.format(name.sql))
                    bench.measure(f"{kind}, {wanted} pending", count, layout, action)


def build(bench: Measured, name: Name, config: KeyedConfig | None, count: int) -> None:
    """The first build of a keyed table, or the statement that creates a plain one."""
    if config is None:
        bench.run("ctas", f"CREATE TABLE {name.sql} USING iceberg AS {rows(0, count)}")
    else:
        build_generation(bench.context, name, config, rows(0, count), {}, owner="")


def shown(bench: Measured, count: int, layouts: Sequence[str]) -> Table:
    """The medians: CPU seconds, and wall seconds in brackets."""
    table = Table("step", *layouts, title=f"{count:,} rows: CPU seconds (seconds), medians")
    for step in dict.fromkeys(step for step, of, _ in bench.taken if of == count):
        cells = []
        for layout in layouts:
            taken = bench.taken.get((step, count, layout))
            if taken is None:
                cells.append("")
                continue
            cpu, wall = (statistics.median(one[at] for one in taken) for at in (0, 1))
            cells.append(f"{cpu:.2f} ({wall:.2f})")
        table.add_row(step, *cells)
    return table


def main() -> int:
    """Run the benchmark and print its table, then the same as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", default="1000,100000")
    parser.add_argument("--buckets", default="8,auto")
    parser.add_argument("--pending", default="0,1,4,16")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--memory", default="3g")
    parser.add_argument("--dir", type=Path, help="a folder with enough space (default: a temporary one)")
    arguments = parser.parse_args()
    folder = Path(arguments.dir or tempfile.mkdtemp(prefix="dbt-arctic-bench-"))
    layouts = [PLAIN, *arguments.buckets.split(",")]
    bench = Measured(folder, arguments.memory)
    try:
        bench.run("schema", "CREATE SCHEMA IF NOT EXISTS lake.bench")
        for count in map(int, arguments.rows.split(",")):
            story(bench, count, layouts, [int(one) for one in arguments.pending.split(",")], arguments.repeat)
            Console(width=120).print(shown(bench, count, layouts))
    finally:
        if arguments.dir is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps({" / ".join(map(str, key)): taken for key, taken in bench.taken.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
