"""What each cell of the matrix does, in a process of its own.

``python -m tests.matrix.story PROJECT ENGINE STEPS`` runs it; with 0 steps, one round with one fault. It
knows dbt's commands and an oracle in plain Python, and nothing of the catalog behind the profile. The last
line of its output is JSON: what the catalog can do, and what was run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner

from dbt_arctic.adapter.doctor import results_of
from dbt_arctic.adapter.project import Target, load_target
from dbt_arctic.adapter.target_session import target_session
from dbt_arctic.cli.main import main
from dbt_arctic.engine.doctor import Check
from tests.matrix import parts

Rows = dict[int, tuple[str, int]]

ROUNDS: list[Rows] = [
    {1: ("north", 10), 2: ("south", 20), 3: ("north", 30)},
    {1: ("south", 11), 3: ("north", 30), 4: ("east", 40)},
    {2: ("east", 22), 4: ("east", 41), 5: ("it's", 50)},
]
"""The rows of the seed, by id: (region, amount)."""
VIEW = "{{ config(materialized='view') }} SELECT * FROM {{ ref('raw') }}"
FAULTS = ("upsert", "publish_view")
"""Steps that fail once: the only statement of an upsert, and the last one of a full refresh."""


class Oracle:
    """What the tables contain after some rounds."""

    def __init__(self) -> None:
        self.orders: Rows = {}
        self.versions: set[tuple[int, str, int]] = set()

    def take(self, rows: Rows) -> None:
        self.orders |= rows
        self.versions |= {(key, *row) for key, row in rows.items()}

    @property
    def tables(self) -> dict[str, list[tuple[Any, ...]]]:
        by_region: dict[str, list[int]] = {}
        for region, amount in self.orders.values():
            by_region.setdefault(region, []).append(amount)
        orders = sorted((key, *row) for key, row in self.orders.items())
        return {
            "orders": orders,
            "merged": orders,
            "totals": sorted((region, len(found), sum(found)) for region, found in by_region.items()),
            "history": sorted(self.versions),
        }


COLUMNS = {
    "orders": "id, region, amount",
    "merged": "id, region, amount",
    "totals": "region, orders, amount",
    "history": "id, region, amount",
}


def dbt(*arguments: str, fails: bool = False) -> Any:
    print("dbt", *arguments, flush=True)
    outcome = dbtRunner().invoke([*arguments, "--quiet", "--no-use-colors"])
    if outcome.success is fails:
        told = [str(one.message) for one in getattr(outcome.result, "results", [])]
        sys.exit(f"dbt {' '.join(arguments)}: success is {outcome.success}; {outcome.exception or told}")
    return outcome.result


def arctic(*arguments: str) -> None:
    print("dbt-arctic", *arguments, flush=True)
    ended = main(arguments, standalone_mode=False)
    if ended:
        sys.exit(f"dbt-arctic {' '.join(arguments)} ended with {ended}")


def compare(oracle: Oracle, names: tuple[str, ...]) -> None:
    """Compare tables with the oracle, in one query."""
    parts = [
        f"SELECT '{name}' AS name, to_json(struct({COLUMNS[name]})) AS line FROM {{{{ ref('{name}') }}}}"
        for name in names
    ]
    (entry,) = dbt("show", "--inline", " UNION ALL ".join(parts), "--limit", "1000").results
    found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in names}
    for name, line in entry.agate_table.rows:
        found[name].append(tuple(json.loads(line).values()))
    for name in names:
        if sorted(found[name]) != oracle.tables[name]:
            sys.exit(f"{name} contains {sorted(found[name])} instead of {oracle.tables[name]}")


def seed(rows: Rows) -> None:
    lines = ["id,region,amount", *(f"{key},{region},{amount}" for key, (region, amount) in rows.items())]
    Path("seeds").mkdir(exist_ok=True)  # an empty folder is not kept in git
    Path("seeds/raw.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


@contextmanager
def failing_at(step: str) -> Iterator[None]:
    os.environ["MATRIX_FAILS_AT"] = step
    yield
    del os.environ["MATRIX_FAILS_AT"]


def rounds(oracle: Oracle) -> None:
    """Keyed, automatic and plain models and a snapshot; faults; and the commands of an operator."""
    names = tuple(COLUMNS)
    for rows in ROUNDS[:2]:
        seed(rows)
        oracle.take(rows)
        dbt("build")
        compare(oracle, names)
    seed(ROUNDS[2])
    for step in FAULTS:
        options = ["--full-refresh"] if step == "publish_view" else []
        with failing_at(step):
            if not options:
                dbt("seed")
            dbt("run", "--select", "orders", *options, fails=True)
        compare(oracle, ("orders", "totals"))
    oracle.take(ROUNDS[2])
    dbt("build")
    compare(oracle, names)
    arctic("compact")
    arctic("status")
    arctic("verify")
    arctic("clean", "--files", "--dry-run")  # lists the folders of all tables in the store
    compare(oracle, names)
    dbt("docs", "generate")


def short_rounds(oracle: Oracle) -> None:
    """Two builds, and between them a full refresh that fails before its last statement."""
    seed(ROUNDS[0])
    oracle.take(ROUNDS[0])
    dbt("build")
    seed(ROUNDS[1])
    with failing_at("publish_view"):
        dbt("run", "--select", "orders", "--full-refresh", fails=True)
    oracle.take(ROUNDS[1])
    dbt("build")
    compare(oracle, tuple(COLUMNS))
    arctic("verify")


def without_views() -> None:
    """A view is refused and leaves nothing. Keyed tables have a record instead of a view."""
    Path("models/merged_view.sql").write_text(VIEW, encoding="utf-8")
    (entry,) = dbt("run", "--select", "merged_view", fails=True).results
    if "AR-301" not in str(entry.message) or "no views" not in str(entry.message):
        sys.exit(f"a view is refused with: {entry.message}")
    with target_session(load_target(), "matrix") as session:
        found = {entry.name: entry.properties for entry in session.catalog.list_relations("matrix")}
        stored = {row[1] for row in session.query("SHOW TABLES IN lake.matrix")}
    if "merged_view" in found or not found["orders"]:
        sys.exit(f"the schema contains {found}")
    if "orders" in stored or "orders__arctic_keyed" not in stored:
        sys.exit(f"the catalog contains {stored}")


def executors() -> list[Any]:
    """The executors that the Spark of this process has had, as Spark's own summaries."""
    from pyspark import SparkContext

    context: Any = SparkContext._active_spark_context
    listed = context._jsc.sc().statusStore().executorList(False)
    found = (listed.apply(at) for at in range(listed.size()))
    return [one for one in found if one.id() != "driver"]


def probed(target: Target, project: str) -> list[Check]:
    """What ``dbt debug`` finds."""
    checks = list(results_of(target.credentials, project))
    for check in checks:
        print(f"{check.name}: {check.shown_state} ({check.detail}) {check.fix}", flush=True)
    if not all(check.ok for check in checks):
        sys.exit(f"the check of {checks[-1].name} failed")
    return checks


def more_parts(target: Target, project: Path, steps: int, has_views: bool) -> dict[str, Any]:
    """Steps of the oracle, classes of dbt's suite, and the example project.

    The example has views and loads files.
    """
    folder, others = project.parent, parts.target_of_other_projects(project)
    done = parts.oracle_steps(target, steps)
    tests = parts.classes_of_the_suite(folder, others, has_views)
    if not has_views:
        return {"steps": done, "tests": tests, "example": "has views"}
    if others.get("method") == "thrift":
        return {"steps": done, "tests": tests, "example": "loads files"}
    parts.example(folder, others)
    return {"steps": done, "tests": tests, "example": "passed"}


def run_story(project: str, engine: str, steps: int) -> None:
    """Run it.

    :param steps: of the oracle; 0 for one round only.
    """
    os.chdir(project)
    target = load_target()
    with_server = engine == "connect"
    if with_server:
        arctic("server", "start")
    try:
        checks = probed(target, project) if steps else []
        states = {check.name: check.shown_state for check in checks}
        (rounds if steps else short_rounds)(Oracle())
        has_views = states.get("views", "ok") == "ok"
        if not has_views:
            without_views()
        facts = more_parts(target, Path(project), steps, has_views) if steps else {}
        if engine == "standalone":
            tasks = {one.id(): int(one.completedTasks()) for one in executors()}
            print(f"tasks of the executors: {tasks}", flush=True)
            if len(tasks) != 2 or not all(tasks.values()):
                sys.exit(f"not both workers had tasks: {tasks}")
    finally:
        if with_server:
            arctic("server", "stop")
    details = {check.name: check.detail for check in checks if check.name == "spark"}
    print(json.dumps({"states": states, **facts, **details}))


if __name__ == "__main__":
    run_story(sys.argv[1], sys.argv[2], int(sys.argv[3]))
