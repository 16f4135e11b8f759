"""Check a public dbt project with its SQL as it is and its models switched to automatic ones.

    python benchmarks/public_projects.py path/to/jaffle_shop_duckdb
    python benchmarks/public_projects.py path/to/dbt_github/integration_tests \\
        --packages path/to/dbt_github path/to/dbt-utils path/to/dbt_fivetran_utils path/to/spark-utils \\
        --keys benchmarks/public_keys/dbt_github.yml --schema github_integration_tests_1

Works on a copy in a temporary folder. A model is switched in ``dbt_project.yml``, if a test of the project
says which of its columns are unique (or ``--keys`` or ``--key`` does); other models stay what they are. Then
the seeds are loaded, and ``dbt-arctic check`` changes them at random, in rounds, and compares each model with
its query.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

LEFT_OUT = shutil.ignore_patterns(".git", "target", "dbt_packages", "dbt_modules", "logs", "profiles.yml")


def prepare(project: Path, packages: list[Path], folder: Path, schema: str, as_it_is: bool = False) -> Path:
    """Copy a project and its packages, with a profile of ours; no package is downloaded.

    :param as_it_is: leave ``target.type`` in the project's settings.
    """
    copy = folder / "project"
    shutil.copytree(project, copy, ignore=LEFT_OUT)
    for name in ("packages.yml", "dependencies.yml", "package-lock.yml"):
        (copy / name).unlink(missing_ok=True)
    for package in packages:
        name = _read(package / "dbt_project.yml")["name"]
        ignored = shutil.ignore_patterns(".git", "target", "integration_tests", "docs", "packages.yml")
        shutil.copytree(package, copy / "dbt_packages" / name, ignore=ignored)
    target = {
        "type": "arctic",
        "warehouse": "./lake",
        "schema": schema,
        "master": "local[2]",
        "driver_memory": "1g",
        "threads": 2,
        "spark_conf": {"spark.sql.shuffle.partitions": 2, "spark.sql.codegen.wholeStage": False},
    }
    # What asks for an engine by name, for the types of seeds for instance, means Spark.
    path = copy / "dbt_project.yml"
    if not as_it_is:
        text = path.read_text(encoding="utf-8").replace("target.type", "env_var('DBT_ENGINE', 'spark')")
        path.write_text(text, encoding="utf-8")
    settings = _read(path)
    profile = {settings.get("profile", "default"): {"target": "arctic", "outputs": {"arctic": target}}}
    (copy / "profiles.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    return copy


def unique_keys(manifest: dict[str, Any]) -> dict[str, list[str]]:
    """By model, the columns that a test of the project calls unique."""
    found: dict[str, list[str]] = {}
    for node in manifest["nodes"].values():
        test = node.get("test_metadata") or {}
        model = str(node.get("attached_node") or "")
        if test.get("name") == "unique" and node.get("column_name"):
            found[model] = [node["column_name"]]
        elif test.get("name") == "unique_combination_of_columns":
            found.setdefault(model, test["kwargs"]["combination_of_columns"])
    return found


def switch(
    project: Path, manifest: dict[str, Any], keys: dict[str, list[str]], ties: str | None = None
) -> list[str]:
    """Make models automatic in ``dbt_project.yml``; returns what stays as it is, and why."""
    settings = _read(project / "dbt_project.yml")
    stay = []
    for unique_id, node in manifest["nodes"].items():
        if node["resource_type"] != "model":
            continue
        key = keys.get(node["name"]) or keys.get(unique_id)
        if key is None or node["config"]["materialized"] == "ephemeral":
            why = "no test says what is unique" if key is None else "ephemeral"
            stay.append(f"{node['name']} ({node['config']['materialized']}): {why}")
            continue
        place = settings.setdefault("models", {})
        for part in node["fqn"]:
            place = place.setdefault(part, {})
        chosen: dict[str, Any] = {"materialized": "incremental", "incremental_strategy": "auto"}
        chosen["unique_key"] = key
        if ties is not None:
            chosen["auto"] = {"ties": ties}
        # A misspelled setting would be an error, and so is one that is set in two ways.
        place.update({f"+{name}": value for name, value in {**chosen, "buckets": 1}.items()})
    (project / "dbt_project.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    return stay


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("project", type=Path)
    parser.add_argument("--packages", type=Path, nargs="*", default=[])
    parser.add_argument("--schema", default="public_project")
    parser.add_argument("--keys", type=Path, help="YAML: the columns of each model that identify a row")
    parser.add_argument("--key", action="append", default=[], metavar="MODEL=COLUMN,...")
    parser.add_argument("--ties", choices=["by_key"], help="decide ties, in all automatic models")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    by_hand: dict[str, list[str]] = _read(given.keys) if given.keys else {}
    by_hand |= {name: columns.split(",") for name, _, columns in (pair.partition("=") for pair in given.key)}
    with tempfile.TemporaryDirectory() as folder:
        project = prepare(given.project, given.packages, Path(folder), given.schema)
        _run(project, "dbt", "parse", "--quiet")
        manifest = json.loads((project / "target" / "manifest.json").read_text(encoding="utf-8"))
        for line in switch(project, manifest, unique_keys(manifest) | by_hand, given.ties):
            print(f"left as it is: {line}")
        _run(project, "dbt", "seed", "--quiet")
        return _run(
            project,
            "dbt-arctic",
            "check",
            "--rounds",
            str(given.rounds),
            "--seed",
            str(given.seed),
            check=False,
        )


def _run(project: Path, command: str, *arguments: str, check: bool = True) -> int:
    program = str(Path(sys.executable).with_name(command))
    done = subprocess.run(
        [program, *arguments, "--project-dir", str(project), "--profiles-dir", str(project)],
        cwd=project,
        check=False,
    )
    if check and done.returncode:
        sys.exit(done.returncode)
    return done.returncode


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    sys.exit(main())
