"""A worker of a cluster is killed in the middle of a build, an upsert, a refresh and a compaction.

Run as a process of its own (``python -m tests.matrix.lost_workers FOLDER``), because a process has one Spark.
The executors of the worker are paused first. So when the driver has given them a task, the task has begun and
cannot end. A new worker replaces the lost one before the next operation. After each operation, all rows are
compared with those that Python computes. At the end, a Python model runs a function on the executors.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from dbt_arctic.adapter.project import load_target
from dbt_arctic.adapter.target_session import target_session
from tests.matrix.cluster import CORES_OF_A_WORKER, Cluster, standalone
from tests.matrix.story import arctic, dbt, executors

KEYS = 4000
REGIONS = 10
_WAIT_S = 60
_PROJECT = {
    "name": "shop",
    "version": "1.0",
    "profile": "shop",
    "flags": {"send_anonymous_usage_stats": False},
}
_PYTHON_MODEL = """
from pyspark.sql.functions import udf


def model(dbt, session):
    dbt.config(materialized="table")
    double = udf(lambda amount: 2 * amount, "bigint")
    return dbt.ref("orders").select("id", double("amount").alias("amount"))
"""
_MODELS = {
    "orders": f"""{{{{ config(materialized='incremental', unique_key='id', buckets=8) }}}}
SELECT id, id % {REGIONS} AS region, id * {{{{ var('round') }}}} AS amount
FROM range(0, {KEYS}, 1, 8)
WHERE id % {{{{ var('round') }}}} = 0
""",
    "totals": """{{ config(materialized='incremental', incremental_strategy='auto', unique_key='region') }}
SELECT region, count(*) AS orders, sum(amount) AS amount FROM {{ ref('orders') }} GROUP BY region
""",
}

Rows = dict[int, tuple[int, ...]]


def expected(rounds: int) -> tuple[Rows, Rows]:
    """The rows of both models after some rounds: a round multiplies the amounts of its multiples."""
    orders: Rows = {}
    for number in range(1, rounds + 1):
        orders |= {key: (key % REGIONS, key * number) for key in range(0, KEYS, number)}
    totals: Rows = {}
    for region, amount in orders.values():
        count, total = totals.get(region, (0, 0))
        totals[region] = (count + 1, total + amount)
    return orders, totals


def compare(operation: str, names: tuple[str, ...], rounds: int) -> None:
    """End the process if a model has other rows than it should have after some rounds."""
    wanted = dict(zip(("orders", "totals"), expected(rounds), strict=True))
    with target_session(load_target(), "compare") as session:
        for name in names:
            rows = session.query(f"SELECT * FROM lake.shop.{name}")
            found = {int(row[0]): tuple(map(int, row[1:])) for row in rows}
            if found != wanted[name] or len(rows) != len(found):
                wrong = [key for key in wanted[name] if found.get(key) != wanted[name][key]]
                sys.exit(f"{operation}: {name} has {len(rows)} rows, wrong keys: {wrong[:10]}")


class _Killer(threading.Thread):
    """Pauses the executors of a worker, and kills it once they have a task."""

    def __init__(self, cluster: Cluster, worker: int) -> None:
        super().__init__(daemon=True)
        self._cluster = cluster
        self._worker = worker
        self._of_worker = {path.name for path in (cluster.folder / f"work-{worker}").glob("app-*/*")}
        self.tasks = 0
        """The tasks that were running when it was killed."""

    def run(self) -> None:
        self._cluster.pause(self._worker)
        ends = time.monotonic() + _WAIT_S
        while not self.tasks and time.monotonic() < ends:
            time.sleep(0.02)
            self.tasks = sum(one.activeTasks() for one in executors() if one.id() in self._of_worker)
        self._cluster.kill(self._worker)


def losing(cluster: Cluster, operation: str, run: Callable[[], object]) -> int:
    """Run an operation that loses the oldest worker in the middle, and replace the worker.

    :returns: the tasks that were running on it.
    """
    _until(lambda: len(_living()) == 2, "two executors")
    killer = _Killer(cluster, len(cluster.workers) - 2)
    killer.start()
    run()
    killer.join()
    if not killer.tasks:
        sys.exit(f"{operation}: the worker had no task when it was killed")
    cluster.add_worker()
    return killer.tasks


def _living() -> list[str]:
    return [one.id() for one in executors() if one.isActive()]


def _until(holds: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + _WAIT_S
    while not holds():
        if time.monotonic() > ends:
            sys.exit(f"{what}: not within {_WAIT_S} s")
        time.sleep(0.1)


def write_project(folder: Path, master: str) -> None:
    """Write the project and its profile."""
    target: dict[str, Any] = {
        "type": "arctic",
        "schema": "shop",
        "warehouse": str(folder / "lake"),
        "threads": 1,
        "master": master,
        "driver_memory": "1g",
        "executor_memory": "512m",
        "executor_cores": CORES_OF_A_WORKER,
        "spark_conf": {
            "spark.sql.shuffle.partitions": 8,
            # Otherwise Spark does not count running tasks.
            "spark.ui.liveUpdate.period": "10ms",
        },
    }
    profile = {"shop": {"target": "dev", "outputs": {"dev": target}}}
    (folder / "models").mkdir()
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    (folder / "dbt_project.yml").write_text(yaml.safe_dump(_PROJECT), encoding="utf-8")
    for name, sql in _MODELS.items():
        (folder / "models" / f"{name}.sql").write_text(sql, encoding="utf-8")
    (folder / "models" / "doubled.py").write_text(_PYTHON_MODEL, encoding="utf-8")


def main(folder: Path) -> None:
    project = folder / "project"
    project.mkdir()
    with standalone(folder) as cluster:
        write_project(project, cluster.component.address)
        os.environ |= {"DBT_PROFILES_DIR": str(project), "DBT_PROJECT_DIR": str(project)}
        os.chdir(project)

        def build(model: str, number: int) -> Callable[[], object]:
            variables = json.dumps({"round": number})
            return lambda: dbt("run", "--select", model, "--vars", variables)

        dbt("show", "--inline", "SELECT count(*) AS found FROM range(0, 100, 1, 8)")  # starts Spark
        steps: list[tuple[str, Callable[[], object], tuple[str, ...], int]] = [
            ("build", build("orders", 1), ("orders",), 1),
            ("build of the automatic model", build("totals", 1), ("totals",), 1),
            ("upsert", build("orders", 2), ("orders",), 2),
            ("refresh", build("totals", 2), ("totals",), 2),
            ("compaction", lambda: arctic("compact", "orders", "--kind", "major"), ("orders", "totals"), 2),
        ]
        lost = {}
        for operation, run, names, rounds in steps:
            lost[operation] = losing(cluster, operation, run)
            compare(operation, names, rounds)
        build("orders", 3)()
        build("totals", 3)()
        compare("the next run", ("orders", "totals"), 3)
        build("doubled", 3)()
        with target_session(load_target(), "compare") as session:
            doubled = dict(session.query("SELECT id, amount FROM lake.shop.doubled"))
        if doubled != {key: 2 * amount for key, (_, amount) in expected(3)[0].items()}:
            sys.exit("the Python model has other rows than it should have")
        arctic("verify")
        idle = [one.id() for one in executors() if one.isActive() and not one.completedTasks()]
        if idle:
            sys.exit(f"executors without a task: {idle}")
    print(json.dumps(lost))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
