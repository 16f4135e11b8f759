"""``python -m benchmarks.small_project --dir FOLDER``: seconds of whole ``dbt run``s, and of their models.

All products use the same Spark, whose settings are those of dbt-arctic's profile. Each reads the same
sources, and after each run their tables must have the same rows. dbt and Spark are warm: a run does not start
them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner

from benchmarks.small_project import sources
from benchmarks.small_project.models import ABOUT, MODELS, PEERS, Peer
from benchmarks.small_project.project import write_project
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.settings import SparkSettings


@dataclass(frozen=True)
class Measured:
    """One ``dbt run``.

    :param models: the seconds of each model.
    :param cpu: seconds of this process and of Spark's.
    """

    seconds: float
    cpu: float
    models: dict[str, float]


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small_project")
    parser.add_argument("--dir", type=Path, required=True, help="an empty folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="1 for 1,000 to 100,000 rows")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--no-small-data", action="store_true", help="without `small_data` in the profile")
    given = parser.parse_args()
    peers = [peer for peer in PEERS if peer in given.peers.split(",")]
    os.environ["DBT_SEND_ANONYMOUS_USAGE_STATS"] = "false"
    folder = given.dir.resolve()
    warehouse = folder / "warehouse"
    small_data = not given.no_small_data
    settings = SparkSettings(
        catalog="lake",
        warehouse=str(warehouse),
        master="local[2]",
        driver_memory="2g",
        small_data=small_data,
    )
    connection = SessionEngine(settings).connect()
    run = _runner(connection)
    sources.create(run, given.scale)
    for peer in peers:
        write_project(folder / peer, warehouse, peer, small_data=small_data)
    found: dict[str, dict[str, Measured]] = {}
    for number in range(given.rounds + 1):
        if number:
            sources.change(run, given.scale, number)
        # The first product of a round would pay for what the next ones find cached.
        turn = number % len(peers)
        for peer in peers[turn:] + peers[:turn]:
            measured = _run(folder / peer)
            found.setdefault(peer, {})["build" if not number else f"round {number}"] = measured
        _require_equal(run, peers)
    for step in ("unchanged", "unchanged again"):
        for peer in peers:
            found[peer][step] = _run(folder / peer)
    _print(found, given.rounds)
    connection.close()


def _runner(connection: SessionConnection) -> Callable[[str], list[Any]]:
    def run(sql: str) -> list[Any]:
        cursor = connection.cursor()
        cursor.execute(sql)
        return cursor.fetchall()

    return run


def _run(folder: Path) -> Measured:
    reset_adapters()
    before, cpu = time.monotonic(), _cpu()
    arguments = ["run", "--project-dir", str(folder), "--profiles-dir", str(folder), "--quiet"]
    outcome = dbtRunner().invoke([*arguments, "--no-write-json"])
    seconds, cpu = time.monotonic() - before, _cpu() - cpu
    if not outcome.success:
        messages = [str(one.message) for one in getattr(outcome.result, "results", []) or []]
        raise RuntimeError(f"{folder}: {outcome.exception} {messages}")
    return Measured(seconds, cpu, {one.node.name: one.execution_time for one in outcome.result.results})


def _cpu() -> float:
    """The CPU seconds of this process and of the processes that it has started."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    ticks = os.sysconf("SC_CLK_TCK")
    parents = {os.getpid()}
    stats = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            stats.append((int(entry.name), int(fields[1]), sum(map(int, fields[11:15])) / ticks))
    for pid, parent, used in sorted(stats):
        if parent in parents:
            parents.add(pid)
            total += used
    return total


def _require_equal(run: Callable[[str], list[Any]], peers: Sequence[Peer]) -> None:
    for model in MODELS:
        rows: dict[str, Any] = {}
        for peer in peers:
            table = f"lake.{peer}.{model.name}"
            columns = sorted(row[0] for row in run(f"DESCRIBE {table}") if row[0] and row[0][0] != "#")
            hashed = f"XXHASH64({', '.join(columns)})"
            rows[peer] = columns, run(f"SELECT COUNT(*), SUM(CAST({hashed} AS DECIMAL(38))) FROM {table}")
        if len({repr(one) for one in rows.values()}) > 1:
            raise RuntimeError(f"{model.name} has other rows: {rows}")


def _print(found: dict[str, dict[str, Measured]], rounds: int) -> None:
    steps = {"build": ["build"], "1 % changed": [f"round {one + 1}" for one in range(rounds)]}
    steps["unchanged"] = ["unchanged", "unchanged again"]
    for peer, runs in found.items():
        print(f"{peer}: {ABOUT[peer]}")
        for title, names in steps.items():
            measured = [runs[name] for name in names]
            whole = min(one.seconds for one in measured)
            cpu = min(one.cpu for one in measured)
            print(f"  {title}: {whole:.1f} s, {cpu:.1f} CPU s, of models:", end="")
            for kind in ("staging", "rows", "sums", "view", "table"):
                kept = [one.name for one in MODELS if one.kind == kind]
                each = [statistics.mean(one.models[name] for name in kept) for one in measured]
                print(f" {kind} {min(each):.2f}", end="")
            print()
    values = {
        peer: {step: [one.seconds, one.cpu, one.models] for step, one in runs.items()}
        for peer, runs in found.items()
    }
    print(json.dumps(values))


if __name__ == "__main__":
    main()
