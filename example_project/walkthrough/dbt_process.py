"""dbt commands in this process, so that Spark starts once; failures are raised with dbt's own message."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner

PROJECT = Path(__file__).resolve().parent.parent
OnNode = Callable[[str, int, int], None]
"""Called when a node is finished: its name, its place and how many nodes there are."""


class DbtFailed(Exception):
    """A dbt command failed; the text says which nodes failed and why."""


class Dbt:
    """Runs commands of the example project in one work folder.

    :param work: holds the warehouse, dbt's compiled files and its log.
    """

    def __init__(self, work: Path, on_node: OnNode) -> None:
        self.warehouse = work / "warehouse"
        self.log = work / "logs" / "dbt.log"
        self._work = work
        self._on_node = on_node
        os.environ["SHOP_WAREHOUSE"] = str(self.warehouse)

    def target(self, purpose: str = "run") -> Path:
        """Where a command's compiled files and manifest go; one folder a purpose keeps dbt's parse cache."""
        return self._work / "target" / purpose

    def invoke(self, *command: str, purpose: str = "run") -> Any:
        """Run one dbt command, as in ``invoke('build', '--select', 'ods')``.

        :raises DbtFailed: the command, or one of its nodes, failed.
        """
        profiles = os.environ.get("DBT_PROFILES_DIR", str(PROJECT))
        places = ["--project-dir", str(PROJECT), "--profiles-dir", profiles]
        places += ["--target-path", str(self.target(purpose)), "--log-path", str(self.log.parent)]
        done = dbtRunner(callbacks=[self._tell]).invoke(
            [*command, *places, "--log-level", "none", "--log-level-file", "debug"]
        )
        if not done.success:
            raise DbtFailed(self._failure(command, done))
        return done.result

    def _tell(self, event: Any) -> None:
        if event.info.name == "LogTestResult":
            self._on_node(event.data.node_info.node_name, event.data.index, event.data.num_models)
        elif event.info.name in ("LogModelResult", "LogSeedResult", "LogSnapshotResult"):
            self._on_node(event.data.node_info.node_name, event.data.index, event.data.total)

    def _failure(self, command: tuple[str, ...], done: Any) -> str:
        lines = [f"dbt {' '.join(command)} failed"]
        if done.exception is not None:
            lines.append(str(done.exception))
        for result in getattr(done.result, "results", []):
            if str(result.status) in ("error", "fail", "runtime error"):
                lines.append(f"{result.node.unique_id}: {result.message}")
        lines.append(f"the log: {self.log}")
        return "\n".join(lines)
