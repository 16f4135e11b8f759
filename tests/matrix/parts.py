"""The parts of a cell in addition to its project: steps of the oracle, classes of dbt's suite, the example.

The steps run in the process of the cell, the others in processes of their own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from dbt_arctic.adapter.engines import choose_engine
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.target_session import target_session
from dbt_arctic.engine.server import read_server
from tests.model.random_stories import play_story
from tests.model.spark import SparkWorld

ROOT = Path(__file__).parents[2]
_STEPS_OF_A_STORY = 20
TARGET = "MATRIX_TARGET"
"""The variable with the file of the profile's target, for the classes of dbt's suite."""
_LONGEST_S = 900


def oracle_steps(target: Target, wanted: int) -> int:
    """Play random stories on keyed tables of this catalog and engine. Returns the number of steps."""
    with target_session(target, "matrix") as session:
        engine = choose_engine(target.credentials, str(target.project_root)).engine
        done = story = 0
        while done < wanted:
            done += play_story(
                lambda seed, tick_ms: SparkWorld(engine, session.catalog),
                1,
                _STEPS_OF_A_STORY,
                story,
                thorough=8,
                may_watch=False,
                few=True,
                tries=8,
            )
            story += 1
            print(f"oracle: {done} of {wanted} steps", flush=True)
    return done


def target_of_other_projects(project: Path) -> dict[str, Any]:
    """The target with which other projects use the same Spark: the server of this project by its address."""
    profile = yaml.safe_load((project / "profiles.yml").read_text(encoding="utf-8"))
    target: dict[str, Any] = profile["matrix"]["outputs"]["dev"]
    server = read_server(project)
    if server is None:
        return target
    definition = target["catalog"]
    own = "lake" if definition["type"] == "sqlite" else definition
    kept = {name: target[name] for name in ("type", "schema", "threads")}
    address = {"host": "sc://localhost", "port": server.port, "token": server.token}
    return {**kept, **address, "method": "connect", "catalog": own}


def classes_of_the_suite(folder: Path, target: Mapping[str, Any], has_views: bool) -> int:
    """Run classes of dbt's adapter suite with the target of the cell. Returns the number of tests."""
    file = folder / "target.json"
    file.write_text(json.dumps(target), encoding="utf-8")
    chosen = [] if has_views else ["-k", "not TestViews"]
    # The suite resets the adapter, and so leaves the connection of a catalog to the garbage collector.
    unclosed = ["-W", "ignore::pytest.PytestUnraisableExceptionWarning"]
    options = ["-q", "-x", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *unclosed]
    suite = str(Path(__file__).parent / "suite")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DBT_PRO")}
    shown = _ended([sys.executable, "-m", "pytest", suite, *options, *chosen], {**environ, TARGET: str(file)})
    found = re.search(r"^(\d+) passed", shown, re.MULTILINE)
    return int(found[1]) if found else 0


def example(folder: Path, target: Mapping[str, Any]) -> None:
    """Run the example project in a process of its own, with the target of the cell."""
    profile = {"target": "dev", "outputs": {"dev": {**target, "schema": "shop"}}}
    (folder / "example").mkdir()
    written = folder / "example" / "profiles.yml"
    written.write_text(yaml.safe_dump({"shop": profile}), encoding="utf-8")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DBT_PRO")}
    environ["DBT_PROFILES_DIR"] = str(written.parent)
    script = str(ROOT / "example_project" / "demo.py")
    options = ["--scale", "0.001", "--rounds", "1", "--dir", str(folder / "example" / "work")]
    last = _ended([sys.executable, script, *options], environ).rstrip().splitlines()[-1]
    if ", 0 differences, " not in last:
        sys.exit(f"the example ended with: {last}")


def _ended(command: list[str], environ: Mapping[str, str]) -> str:
    """Run a command to its end. Returns its output."""
    done = subprocess.run(
        command,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=_LONGEST_S,
    )
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"{' '.join(command[1:4])} ended with {done.returncode}")
    return done.stdout
