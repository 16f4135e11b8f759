"""A case as a folder in which a person can run it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import yaml

from tests.dbt.keyed.conftest import SETTINGS
from tests.dbt.random.project import Case, arguments_of, files_of


def write_case(case: Case, folder: Path, why: str) -> None:
    """A folder in which a person can run the case: ``sh run.sh``."""
    target = {
        "type": "arctic",
        "warehouse": "./lake",
        "schema": "random",
        "threads": 1,
        "spark_conf": case.spark_conf,
        **SETTINGS,
    }
    common = {
        "dbt_project.yml": yaml.safe_dump(case.project),
        "profiles.yml": yaml.safe_dump({"random": {"target": "dev", "outputs": {"dev": target}}}),
        "difference.txt": why + "\n",
    }
    lines = [
        "export DBT_PROFILES_DIR=. DBT_SEND_ANONYMOUS_USAGE_STATS=false",
        "rm -rf lake target models snapshots seeds",
    ]
    for number, round_ in enumerate(case.rounds):
        for path, text in files_of(case, round_).items():
            common[f"rounds/{number}/{path}"] = text
        lines.append(f"rm -rf models snapshots seeds; cp -r rounds/{number}/* .")
        for name, (at, after) in round_.ends.items():
            lines.append(
                f"# here the run of {name} ended {'after' if after else 'before'} its statement {at}"
            )
        if round_.cancel is not None:
            lines.append("# here somebody pressed Ctrl-C, at statement {1} of {0}".format(*round_.cancel))
        lines.append(f"dbt {shlex.join(arguments_of(case, round_))}")
        lines += [f"dbt-arctic sql 'select * from {model.name}'" for model in case.models]
    common["run.sh"] = "\n".join(lines) + "\n"
    common["case.json"] = json.dumps({"seed": case.seed}, indent=1) + "\n"
    for path, text in common.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
