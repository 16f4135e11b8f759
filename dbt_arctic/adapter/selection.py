"""Parses a project and selects models of it, for ``dbt-arctic`` commands. Starts no Spark."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from dbt_arctic.adapter.dbt_invocation import invoke, require_success
from dbt_arctic.adapter.project import Target
from dbt_arctic.errors import ConfigError


def parse_project(target: Target, artifacts: Path | None = None) -> Any:
    """dbt's manifest of a project.

    :param artifacts: the folder into which it is written; ``None`` to write nothing.
    :raises ConfigError: dbt cannot parse the project.
    """
    write = ["--no-write-json"] if artifacts is None else []
    outcome = invoke(target, None, "parse", *write, artifacts=artifacts)
    return require_success(target, outcome, "dbt parse failed", "dbt parse").result


def select_models(target: Target, manifest: Any, select: Sequence[str]) -> list[Any]:
    """The nodes of the selected models, by unique id; of all models without a selection.

    :param select: in dbt's syntax.
    :raises ConfigError: the selection contains no model.
    """
    chosen = set(manifest.nodes)
    if select:
        arguments = ["--resource-type", "model", "--output", "json", "--output-keys", "unique_id"]
        with redirect_stdout(io.StringIO()):
            outcome = invoke(target, manifest, "ls", *arguments, "--no-write-json", "--select", *select)
        listed = require_success(target, outcome, "dbt ls failed", "dbt ls").result or ()
        chosen = {json.loads(line)["unique_id"] for line in listed}
        if not chosen:
            raise ConfigError(
                f"{' '.join(select)} selects no model of the project",
                where=str(target.project_root),
                fix="dbt ls --resource-type model lists all models; --select is as in dbt",
            )
    nodes = (manifest.nodes[unique_id] for unique_id in sorted(chosen))
    return [node for node in nodes if node.resource_type == "model"]


__all__ = ["parse_project", "select_models"]
