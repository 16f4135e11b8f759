"""Run dbt-utils' integration tests, from a checkout of it, on this adapter: ``make dbt-utils DIR=path``.

Works on a copy in a temporary folder. What is left out, and why, is in docs/how-to/use-dbt-utils.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

EXCLUDED = (
    "test_groupby",
    "dbt_utils_equality_data_test_equality_floats_a_ref_data_test_equality_floats_b___8",
)
TARGET = {
    "type": "arctic",
    "warehouse": "./lake",
    "schema": "dbt_utils",
    "master": "local[2]",
    "driver_memory": "1g",
    "threads": 2,
    "spark_conf": {"spark.sql.shuffle.partitions": 2},
}


def prepare(checkout: Path, folder: Path) -> Path:
    """Copy package and tests into a folder, with a profile of ours; returns the tests' project."""
    tests = folder / "integration_tests"
    for name in ("macros", "integration_tests"):
        shutil.copytree(
            checkout / name, folder / name, ignore=shutil.ignore_patterns("target", "dbt_packages")
        )
    shutil.copy(checkout / "dbt_project.yml", folder)
    profile = {"integration_tests": {"target": "arctic", "outputs": {"arctic": TARGET}}}
    (tests / "profiles.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    # Their dispatch names the two projects that the adapter adds itself to when a project says nothing.
    path = tests / "dbt_project.yml"
    project = yaml.safe_load(path.read_text(encoding="utf-8"))
    del project["dispatch"]
    path.write_text(yaml.safe_dump(project), encoding="utf-8")
    return tests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    checkout: Path = parser.parse_args().checkout
    if not (checkout / "integration_tests" / "dbt_project.yml").is_file():
        parser.error(
            f"{checkout} is not a checkout of dbt-utils: there is no integration_tests project in it"
        )
    with tempfile.TemporaryDirectory() as folder:
        project = prepare(checkout, Path(folder))
        dbt = str(Path(sys.executable).with_name("dbt"))
        environment = {**os.environ, "DBT_PROFILES_DIR": str(project)}
        for arguments in (["deps"], ["build", "--exclude", *EXCLUDED]):
            done = subprocess.run([dbt, *arguments], cwd=project, env=environment, check=False)
            if done.returncode:
                return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
