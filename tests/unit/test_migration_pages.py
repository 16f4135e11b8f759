"""Pages on migration cover the settings of the other adapter. The files of the deployment page are valid."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from dbt_arctic.cli.diff import diff
from dbt_arctic.refresh.foreign_settings import _IGNORED, _OF_ROWS

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


def first_columns(page: str) -> str:
    rows = re.findall(r"^\| (.*?) \|", (HOW_TO / page).read_text(encoding="utf-8"), re.MULTILINE)
    return "\n".join(rows)


@pytest.mark.parametrize("adapter", ["dbt-spark", "dbt-databricks", "dbt-snowflake"])
def test_each_setting_that_is_reported_has_a_row(adapter: str) -> None:
    named = first_columns(f"migrate-from-{adapter}.md")
    settings = [
        name for group in (*_IGNORED, *_OF_ROWS) if adapter in group.adapters for name in group.settings
    ]
    assert settings
    missing = [name for name in settings if f"`{name}`" not in named]
    # dbt-spark shares these with dbt-databricks, where the row is.
    assert set(missing) <= (
        {"include_full_name_in_path"} if adapter == "dbt-spark" else {"options", "clustered_by"}
    )


def test_the_files_of_the_page_on_deployment_are_valid() -> None:
    dag = ast.parse((HOW_TO / "deploy" / "airflow_dag.py").read_text(encoding="utf-8"))
    commands = [
        node.value for node in ast.walk(dag) if isinstance(node, ast.keyword) and node.arg == "bash_command"
    ]
    assert len(commands) == 2
    workflow = yaml.safe_load((HOW_TO / "deploy" / "github-actions.yml").read_text(encoding="utf-8"))
    steps = [step["run"] for step in workflow["jobs"]["build"]["steps"] if "run" in step]
    assert "dbt build --target prod" in steps


def test_the_workflow_of_the_page_on_reviews_is_valid() -> None:
    text = (HOW_TO / "deploy" / "github-actions-review.yml").read_text(encoding="utf-8")
    steps = {
        step["run"].strip(): step for step in yaml.safe_load(text)["jobs"]["diff"]["steps"] if "run" in step
    }
    (command,) = (run for run in steps if run.startswith("dbt-arctic diff"))
    arguments, _, written_to = command.removeprefix("dbt-arctic diff ").partition(" > ")
    options = diff.make_context("diff", arguments.split(), resilient_parsing=True).params
    assert (options["base"], options["max_changed"], options["form"]) == ("prod", "0.1%", "markdown")
    (post,) = (run for run in steps if run.startswith("gh pr comment"))
    assert f"--body-file {written_to} " in post
    assert steps[post]["if"] == f"always() && hashFiles('{written_to}') != ''"
    # The page shows the same two commands.
    page = (HOW_TO / "review-a-change.md").read_text(encoding="utf-8")
    assert command in " ".join(page.split())
    assert post in page
