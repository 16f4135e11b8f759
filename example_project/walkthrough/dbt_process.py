"""dbt commands in this process, so that Spark starts once; failures are raised with dbt's own message."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from dbt.contracts.graph.manifest import Manifest

PROJECT = Path(__file__).resolve().parent.parent
OnNode = Callable[[str, int, int, float], None]
"""Called when a node is finished: its name, its place, how many nodes there are, and its seconds."""
OnMessage = Callable[[str], None]
"""Called with the messages of a macro to its user."""


class DbtFailed(Exception):
    """A dbt command failed; the text says which nodes failed and why."""


class Dbt:
    """Runs commands of the example project in one work folder.

    :param work: holds the landing folder, the warehouse, dbt's compiled files and its log.
    :param kafka: the broker whose topics take the place of the landing folder; empty for none.
    """

    def __init__(self, work: Path, on_node: OnNode, on_message: OnMessage, kafka: str = "") -> None:
        self.warehouse = work / "warehouse"
        self.log = work / "logs" / "dbt.log"
        self._work = work
        self._on_node = on_node
        self._on_message = on_message
        os.environ |= {"SHOP_DIR": str(work), "SHOP_KAFKA": kafka}

    def parse(self) -> Manifest:
        """Parse the project. Later commands parse only what has changed since."""
        manifest: Manifest = self.invoke("parse")
        return manifest

    def compile_over(self, manifest: Manifest, *arguments: str) -> None:
        """Compile a parsed project, in ``manifest`` itself, with variables that it was not parsed with.

        The variables must not decide what is parsed: configs and what a model refers to.
        """
        self.invoke("compile", *arguments, purpose="rebuild", manifest=manifest)

    def invoke(self, *command: str, purpose: str = "run", manifest: Manifest | None = None) -> Any:
        """Run one dbt command, as in ``invoke('build', '--select', 'ods')``.

        :param purpose: names the folder of the command's compiled files, below ``target``.
        :param manifest: the parsed project; ``None`` to parse it.
        :raises DbtFailed: the command, or one of its nodes, failed.
        """
        profiles = os.environ.get("DBT_PROFILES_DIR", str(PROJECT))
        places = ["--project-dir", str(PROJECT), "--profiles-dir", profiles]
        places += ["--target-path", str(self._work / "target" / purpose), "--log-path", str(self.log.parent)]
        done = dbtRunner(manifest=manifest, callbacks=[self._tell]).invoke(
            [*command, *places, "--log-level", "none", "--log-level-file", "debug"]
        )
        if not done.success:
            raise DbtFailed(self._failure(command, done))
        return done.result

    def _tell(self, event: Any) -> None:
        if event.info.name == "JinjaLogInfo":
            self._on_message(event.data.msg)
        elif event.info.name in ("LogTestResult", "LogModelResult", "LogSeedResult", "LogSnapshotResult"):
            done = event.data
            total = done.num_models if event.info.name == "LogTestResult" else done.total
            self._on_node(done.node_info.node_name, done.index, total, done.execution_time)

    def _failure(self, command: tuple[str, ...], done: Any) -> str:
        lines = [f"dbt {' '.join(command)} failed"]
        if done.exception is not None:
            lines.append(str(done.exception))
        for result in getattr(done.result, "results", []):
            if str(result.status) in ("error", "fail", "runtime error"):
                lines.append(f"{result.node.unique_id}: {result.message}")
        lines.append(f"the log: {self.log}")
        return "\n".join(lines)
