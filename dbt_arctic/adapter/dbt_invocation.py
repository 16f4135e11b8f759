"""Runs a dbt command in this process on the project and target of a ``dbt-arctic`` command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dbt.adapters.factory import reset_adapters
from dbt.cli.main import dbtRunner

from dbt_arctic.adapter.project import Target
from dbt_arctic.errors import ConfigError


def invoke(target: Target, manifest: Any, *arguments: str, artifacts: Path | None = None) -> Any:
    """The outcome of a dbt command.

    :param manifest: the parsed project; ``None`` to parse it.
    :param artifacts: the folder of the command's artifacts; ``None`` for that of the project.
    """
    places = ["--project-dir", str(target.project_root), "--target", target.name, "--quiet"]
    if artifacts is not None:
        places += ["--target-path", str(artifacts)]
    if target.profiles_dir is not None:
        places += ["--profiles-dir", str(target.profiles_dir)]
    try:
        return dbtRunner(manifest).invoke([*arguments, *places])
    finally:
        reset_adapters()  # type: ignore[no-untyped-call]  # dbt has no annotation for it


def require_success(target: Target, outcome: Any, what: str, fix: str) -> Any:
    """The outcome of a command that succeeded.

    :raises ConfigError: it did not.
    """
    if outcome.success:
        return outcome
    raise ConfigError(
        what,
        where=str(target.project_root),
        why=str(outcome.exception or "see dbt's output above"),
        fix=fix,
    )


__all__ = ["invoke", "require_success"]
