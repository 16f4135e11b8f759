"""The dbt project of the benchmark: one model that pulls the topic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner

from benchmarks.topics.events import COLUMNS

MODEL = """\
{{{{ config(materialized='incremental', unique_key='order_id', deduplicate_by='_source_offset'{more}) }}}}
select {columns}, _source_timestamp, _source_offset, _action
from {{{{ incremental_pull(source('shop', 'orders')) }}}}
"""


def write_project(folder: Path, servers: str, topic: str, more: str = "") -> None:
    """Write the project.

    :param more: further settings of the model, each after a comma.
    """
    arctic = {"from": "kafka", "servers": servers, "format": "json", "topic": topic, "columns": dict(COLUMNS)}
    source = {"name": "shop", "tables": [{"name": "orders", "config": {"meta": {"arctic": arctic}}}]}
    target = {
        **{"type": "arctic", "method": "session", "catalog": "lake", "warehouse": str(folder / "lake")},
        **{"schema": "bench", "threads": 2, "master": "local[2]", "driver_memory": "3g"},
    }
    files: dict[str, Any] = {
        "dbt_project.yml": {"name": "bench", "version": "1.0", "profile": "bench"},
        "profiles.yml": {"bench": {"target": "dev", "outputs": {"dev": target}}},
        "models/sources.yml": {"version": 2, "sources": [source]},
    }
    (folder / "models").mkdir()
    for path, content in files.items():
        (folder / path).write_text(yaml.safe_dump(content), encoding="utf-8")
    model = MODEL.format(more=more, columns=", ".join(COLUMNS))
    (folder / "models" / "orders.sql").write_text(model, encoding="utf-8")


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
