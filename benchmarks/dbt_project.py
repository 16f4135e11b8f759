"""A dbt project of a benchmark: its files, and a run of it in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner


def write_project(
    folder: Path, source: Mapping[str, Any], models: Mapping[str, str], more: Mapping[str, Any]
) -> None:
    """Write a project with one source, whose target is a Spark with two cores and a catalog in the folder.

    :param models: the SQL by name.
    :param more: further settings of the target.
    """
    target = {
        **{"type": "arctic", "method": "session", "catalog": "lake", "warehouse": str(folder / "lake")},
        **{"schema": "bench", "threads": 2, "master": "local[2]", "driver_memory": "3g"},
        **more,
    }
    files: dict[str, Any] = {
        "dbt_project.yml": {"name": "bench", "version": "1.0", "profile": "bench"},
        "profiles.yml": {"bench": {"target": "dev", "outputs": {"dev": target}}},
        "models/sources.yml": {"version": 2, "sources": [dict(source)]},
    }
    (folder / "models").mkdir()
    for path, content in files.items():
        (folder / path).write_text(yaml.safe_dump(content), encoding="utf-8")
    for name, sql in models.items():
        (folder / "models" / f"{name}.sql").write_text(sql, encoding="utf-8")


def run(folder: Path, *words: str) -> None:
    """Run the project.

    :raises RuntimeError: it failed.
    """
    reset_adapters()
    arguments = ["run", *words, "--project-dir", str(folder), "--profiles-dir", str(folder), "--quiet"]
    outcome = dbtRunner().invoke([*arguments, "--no-write-json"])
    if not outcome.success:
        messages = [str(one.message) for one in getattr(outcome.result, "results", []) or []]
        raise RuntimeError(f"{outcome.exception} {messages}")
