"""Runs dbt's commands one after the other, on the project of this folder, in the environment of this Python.

``python steps.py VERSION first|all``: what ``dbt --version`` begins with, and how far to go. Knows only dbt.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner

ARTIFACTS = Path("built")
"""As the project's ``vars.yml`` says."""
BUILT = ["--exclude", "flaky", "by_year"]
MORE = "1,ada,11,2026-01-05 10:00:00\n5,dan,50,2026-05-05 10:00:00\n"


def dbt(*arguments: str, fails: bool = False) -> Any:
    """What a command of dbt gives; it has to succeed, or to fail."""
    print("dbt", *arguments, flush=True)
    outcome = dbtRunner().invoke([*arguments, "--no-use-colors"])
    if outcome.success is fails:
        sys.exit(f"dbt {' '.join(arguments)}: success is {outcome.success}; {outcome.exception or ''}")
    return outcome.result


def statuses(result: Any) -> dict[str, int]:
    """How many nodes ended how."""
    return dict(Counter(str(entry.status) for entry in result.results))


def expect(found: Any, expected: Any) -> None:
    if found != expected:
        sys.exit(f"expected {expected!r}, found {found!r}")


def first() -> None:
    """An adapter that was just installed is found, connects, and builds every kind of node."""
    dbt("debug")
    manifest = dbt("parse")
    expect(manifest.metadata.adapter_type, "arctic")
    result = dbt("build", *BUILT)
    expect(set(statuses(result)), {"success", "pass"})
    kinds = Counter(entry.node.resource_type.value for entry in result.results)
    expect(kinds, {"seed": 1, "model": 9, "snapshot": 1, "test": 4, "unit_test": 1})


def again() -> None:
    """A second run with changed rows, and the rest of dbt's commands."""
    seed = Path("seeds/orders.csv")
    header, _, *rest = seed.read_text(encoding="utf-8").splitlines(keepends=True)
    seed.write_text("".join([header, *rest]) + MORE, encoding="utf-8")
    result = dbt("build", *BUILT)
    expect(set(statuses(result)), {"success", "pass"})
    responses = {entry.node.name: entry.adapter_response for entry in result.results}
    expect(responses["totals"]["strategy"], "incremental")
    expect(counted("{{ ref('orders_appended') }}"), 5)
    expect(counted("{{ ref('orders_history') }}"), 6)
    # The view that dbt 1.12 makes of the latest version of a model.
    expect(counted("{{ target.schema }}.versioned"), 5)

    dbt("run", "--select", "by_year", "--event-time-start", "2026-01-01", "--event-time-end", "2027-01-01")
    expect(counted("{{ ref('by_year') }}"), 5)
    expect(statuses(dbt("run", "--select", "flaky", "totals", fails=True)), {"error": 1, "success": 1})
    os.environ["SMOKE_COLUMN"] = "order_id"
    expect(statuses(dbt("retry")), {"success": 1})

    dbt("docs", "generate")
    catalog = json.loads((ARTIFACTS / "catalog.json").read_text(encoding="utf-8"))
    types = {name.split(".")[2]: node["metadata"]["type"] for name, node in catalog["nodes"].items()}
    expect({types[name] for name in ("orders_keyed", "totals")}, {"keyed table"})
    expect(types["orders_view"], "view")
    comment = catalog["nodes"]["model.smoke.orders_table"]["metadata"]["comment"]
    expect(comment, "It's described")

    expect(statuses(dbt("source", "freshness")), {"pass": 1})
    shutil.copytree(ARTIFACTS, "state")  # dbt writes its own manifest first, for the other target
    cloned = dbt("clone", "--select", "orders_keyed", "--state", "state", "--target", "other")
    expect(statuses(cloned), {"success": 1})
    expect(set(statuses(dbt("run", "--empty", "--select", "orders_table", "totals"))), {"success"})


def counted(relation: str) -> int:
    """The number of its rows, by ``dbt show``."""
    result = dbt("show", "--inline", f"SELECT count(*) AS n FROM {relation}")
    (entry,) = result.results
    return int(entry.agate_table.rows[0]["n"])


def operator() -> None:
    """Commands of ours find and compile the project by dbt's own code."""
    from dbt_arctic.adapter.project import load_target
    from dbt_arctic.cli.main import main

    target = load_target()
    expect(target.artifacts, ARTIFACTS.resolve())
    expect(target.credentials.schema, "of_file")

    for arguments in (["plan", "totals"], ["status"], ["verify"]):
        print("dbt-arctic", *arguments, flush=True)
        main(arguments, standalone_mode=False)


if __name__ == "__main__":
    expected_version, extent = sys.argv[1:]
    if not version("dbt-core").startswith(expected_version):
        sys.exit(f"this is dbt-core {version('dbt-core')}, not {expected_version}")
    os.chdir(Path(__file__).parent)
    first()
    if extent == "all":
        again()
        operator()
