"""The folder of a dbt project with the models, for one product."""

from __future__ import annotations

from pathlib import Path

import yaml

from benchmarks.small_project.models import MODELS, Peer, text_of
from benchmarks.small_project.sources import ROWS, SCHEMA


def write_project(folder: Path, warehouse: Path, peer: Peer, *, small_data: bool) -> None:
    """Write the project and its profile."""
    (folder / "models").mkdir(parents=True)
    for model in MODELS:
        (folder / "models" / f"{model.name}.sql").write_text(text_of(model, peer), encoding="utf-8")
    settings = {"name": f"small_{peer}", "version": "1.0", "profile": "small"}
    profile = {"type": "spark", "method": "session", "host": "NA", "schema": peer, "threads": 1}
    if peer == "arctic":
        profile = profile_of(warehouse, peer, small_data=small_data)
    raw = {"name": "raw", "schema": SCHEMA, "tables": [{"name": name} for name in ROWS]}
    _yaml(folder / "dbt_project.yml", settings)
    _yaml(folder / "profiles.yml", {"small": {"target": "dev", "outputs": {"dev": profile}}})
    _yaml(folder / "models" / "sources.yml", {"version": 2, "sources": [raw]})


def profile_of(warehouse: Path, schema: str, *, small_data: bool) -> dict[str, object]:
    """The target of dbt-arctic in the profile."""
    return {
        "type": "arctic",
        "method": "session",
        "catalog": "lake",
        "warehouse": str(warehouse),
        "schema": schema,
        "threads": 1,
        "master": "local[2]",
        "driver_memory": "2g",
        "small_data": small_data,
    }


def _yaml(file: Path, content: object) -> None:
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
