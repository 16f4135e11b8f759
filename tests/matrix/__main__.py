"""``make matrix CELLS=all|name,..``: runs cells one after the other, and writes docs/reference/matrix.md.

The results are kept in ``results.json``. So the page has the last result of each cell that was run with the
same versions, and lists the cells that were not.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from tests.java import choose
from tests.matrix.cells import ALL, AWS, Cell, running
from tests.matrix.components import NotRun
from tests.matrix.page import Result, keep, stored_results, write_page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "matrix.md"
RESULTS = Path(__file__).parent / "results.json"
LONGEST_S = 2400
STEPS = 300
"""At least this many random operations of a cell are compared with the oracle."""


def chosen(text: str) -> list[Cell]:
    if text == "all":
        return list(ALL)
    by_name = {cell.name: cell for cell in ALL}
    unknown = [name for name in text.split(",") if name not in by_name]
    if unknown:
        sys.exit(f"there is no cell {unknown[0]}; the cells are: {', '.join(by_name)}")
    return [by_name[name] for name in text.split(",")]


def run(cell: Cell, tools: Path, logs: Path, steps: int = 0) -> Result:
    """Start the components of a cell, and run the project in it.

    :param steps: of the oracle; with 0, only one round is run, and nothing is probed.
    """
    if cell.impossible:
        return Result(cell, "impossible", cell.impossible)
    folder = Path(tempfile.mkdtemp(prefix="arctic_matrix_"))
    folder.chmod(0o755)  # PostgreSQL's user passes through
    began = time.monotonic()
    components: list[str] = []
    try:
        with running(cell, folder, tools) as (target, started):
            components = [component.version for component in started]
            found = _story(cell, folder, target, logs, steps)
        seconds, day = round(time.monotonic() - began), date.today().isoformat()
        return Result(cell, "passed", components=components, facts=found, seconds=seconds, day=day)
    except NotRun as error:
        return Result(cell, "not run", str(error))
    except Exception as error:
        # The other cells are run all the same.
        why = str(error) if isinstance(error, _Failed) else f"{type(error).__name__}: {error}"
        return Result(cell, "failed", why, components=components, day=date.today().isoformat())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Failed(Exception):
    """The story of a cell ended early."""


def _story(cell: Cell, folder: Path, target: dict[str, Any], logs: Path, steps: int) -> dict[str, Any]:
    project = folder / "project"
    shutil.copytree(Path(__file__).parent / "project", project)
    profile = {"matrix": {"target": "dev", "outputs": {"dev": target}}}
    (project / "profiles.yml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    environ = {
        **os.environ,
        "DBT_PROFILES_DIR": str(project),
        "DBT_PROJECT_DIR": str(project),
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        **(AWS if cell.catalog == "glue" else {}),
    }
    log = logs / f"{cell.name}.log"
    with log.open("w") as output:
        command = [sys.executable, "-m", "tests.matrix.story", str(project), cell.engine, str(steps)]
        story = subprocess.Popen(
            command,
            env=environ,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            ended = story.wait(LONGEST_S)
        except subprocess.TimeoutExpired as error:
            if cell.engine == "connect":
                stop = [str(Path(sys.executable).with_name("dbt-arctic")), "server", "stop"]
                subprocess.run(stop, env=environ, stdout=output, stderr=subprocess.STDOUT, check=False)
            raise _Failed(f"it took more than {LONGEST_S} s; see {log}") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(story.pid, signal.SIGKILL)  # its Spark as well
            story.wait()
    lines = log.read_text(encoding="utf-8").splitlines() or [""]
    if ended:
        raise _Failed(f"{lines[-1]}; see {log}")
    try:
        found: dict[str, Any] = json.loads(lines[-1])
    except ValueError as error:
        raise _Failed(f"the last line is not JSON: {lines[-1]}; see {log}") from error
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.matrix")
    parser.add_argument("--cells", default="all")
    parser.add_argument("--tools", type=Path, default=ROOT / ".venv" / "matrix")
    parser.add_argument("--logs", type=Path, default=ROOT / ".venv" / "matrix" / "logs")
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    given.logs.mkdir(parents=True, exist_ok=True)
    versions = {name: importlib.metadata.version(name) for name in ("pyspark", "pyiceberg", "dbt-core")}
    choose()
    results = []
    for cell in chosen(given.cells):
        result = run(cell, given.tools, given.logs, given.steps)
        print(result.line, flush=True)
        results.append(result)
        if result.state in ("passed", "failed"):
            keep(RESULTS, result, versions)
            write_page(PAGE, stored_results(RESULTS, versions), versions)
    count = Counter(result.state for result in results)
    ended = f"{count['passed']} passed, {count['impossible']} impossible, {count['failed']} failed"
    missing = f", {count['not run']} not run" if count["not run"] else ""
    print(f"matrix: {len(results)} cells, {ended}{missing}")
    return 1 if count["failed"] or count["not run"] else 0


if __name__ == "__main__":
    sys.exit(main())
