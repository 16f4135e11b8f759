"""dbt's metadata of hundreds of tables comes from metadata files, without starting Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner

from dbt_arctic.engine import jvm
from tests.unit.catalog.conftest import HandmadeWarehouse

TABLES = 200
NOW = datetime.now(timezone.utc)
COLUMNS = [HandmadeWarehouse.column(number, f"c{number}", doc=f"the {number}.") for number in range(1, 21)]


@dataclass
class Project:
    """A dbt project over a handmade warehouse."""

    folder: Path
    warehouse: HandmadeWarehouse

    def dbt(self, *arguments: str) -> Any:
        folders = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        return dbtRunner().invoke([*arguments, *folders, "--quiet", "--no-use-colors"])

    def sources(self, names: list[str], **config: Any) -> None:
        tables = [{"name": name} for name in names]
        source = {"name": "raw", "schema": "raw", "tables": tables, **({"config": config} if config else {})}
        self.write("models/sources.yml", {"version": 2, "sources": [source]})

    def write(self, path: str, content: Any) -> None:
        target = self.folder / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(yaml.safe_dump(content), encoding="utf-8")

    def artifact(self, name: str) -> Any:
        return json.loads((self.folder / "target" / name).read_text(encoding="utf-8"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    def start(*args: Any) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(jvm, "started_spark", start)
    monkeypatch.setenv("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")
    folder = tmp_path / "warehouse"
    folder.mkdir()
    warehouse = HandmadeWarehouse(folder)
    warehouse.create()
    for schema in ("raw", "shop"):
        warehouse.schema(schema)
    made = Project(tmp_path, warehouse)
    made.write("dbt_project.yml", {"name": "shop", "version": "1.0", "profile": "shop"})
    target = {"type": "arctic", "warehouse": str(folder), "schema": "shop", "threads": 4}
    made.write("profiles.yml", {"shop": {"target": "dev", "outputs": {"dev": target}}})
    before = os.getcwd()
    yield made
    os.chdir(before)
    reset_adapters()


def snapshots(*commits: tuple[str, int, int]) -> dict[str, Any]:
    """A table's log: operation, rows added, and hours ago."""
    listed = [
        {
            "snapshot-id": number,
            "sequence-number": number,
            "timestamp-ms": int(NOW.timestamp() * 1000) - hours * 3_600_000,
            "summary": {"operation": operation, "added-records": str(added)},
            **({"parent-snapshot-id": number - 1} if number > 1 else {}),
        }
        for number, (operation, added, hours) in enumerate(commits, start=1)
    ]
    head = len(listed)
    return {
        "snapshots": listed,
        "current_snapshot_id": head,
        "refs": {"main": {"snapshot-id": head, "type": "branch"}},
    }


def test_the_documentation_of_hundreds_of_tables_is_generated(project: Project) -> None:
    names = [f"t{number}" for number in range(TABLES)]
    schema = {"type": "struct", "schema-id": 0, "fields": COLUMNS}
    for name in names:
        project.warehouse.table("raw", name, schemas=[schema])
    project.sources(names)
    assert project.dbt("docs", "generate").success
    found = project.artifact("catalog.json")["sources"]
    assert len(found) == TABLES
    columns = found["source.shop.raw.t7"]["columns"]
    assert len(columns) == len(COLUMNS)
    assert columns["c3"] == {"type": "bigint", "index": 3, "name": "c3", "comment": "the 3."}


def test_a_sources_freshness_is_the_age_of_its_last_change_of_rows(project: Project) -> None:
    fresh = snapshots(("append", 5, 30), ("append", 5, 3), ("replace", 10, 1), ("append", 0, 0))
    project.warehouse.table("raw", "fresh", **fresh)
    project.warehouse.table("raw", "old", **snapshots(("append", 5, 30)))
    project.warehouse.table("raw", "empty")
    project.warehouse.view("raw", "view")
    limits = {"warn_after": {"count": 12, "period": "hour"}, "error_after": {"count": 60, "period": "hour"}}
    project.sources(["fresh", "old", "empty", "view", "missing"], freshness=limits)
    outcome = project.dbt("source", "freshness")
    assert not outcome.success
    results = {result.node.name: result for result in outcome.result.results}
    assert {name: str(result.status) for name, result in results.items()} == {
        "fresh": "pass", "old": "warn", "empty": "error", "view": "runtime error", "missing": "runtime error",
    }  # fmt: skip
    assert int(results["fresh"].age) // 3600 == 3
    assert "loaded_at_field" in results["view"].message
    assert "does not exist" in results["missing"].message
