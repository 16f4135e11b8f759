"""The dbt invocations of ``dbt-arctic check``: on the copy, with some models made automatic."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

from dbt_arctic.adapter.dbt_invocation import invoke, require_success
from dbt_arctic.adapter.model_lags import shown_name
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.strategy_override import make_automatic
from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.materializations import MATERIALIZED_VIEW

AUTOMATIC = {
    "config.incremental_strategy:auto": ("incremental_strategy", "auto"),
    "config.materialized:materialized_view": ("materialized", MATERIALIZED_VIEW),
}
"""dbt's selectors for automatic models, each with the setting and its value."""


class CheckInvocations:
    """Runs dbt on one project.

    :param switch: selections of models that are treated as automatic regardless of their config.
    """

    def __init__(self, target: Target, switch: Sequence[str] = ()) -> None:
        self._target = target
        self._switched: list[str] = []
        self.stay: dict[str, str] = {}
        """Names of models that were selected to be automatic but cannot be, with the reason."""
        if switch:
            nodes = self.list(["model"], ["unique_id"], ["--select", *switch])
            self._switched = [node["unique_id"] for node in nodes]
            if not self._switched:
                raise ConfigError(
                    f"{' '.join(switch)} selects no model",
                    where="--automatic",
                    why="it selects the models that the check treats as automatic",
                    fix=f"correct the selection; to try it: dbt ls --select {' '.join(switch)}",
                )

    def parse(self) -> Any:
        """Parse the project. Returns dbt's manifest with the models that were made automatic."""
        manifest = self._succeeded("parse", self._invoke(None, "parse")).result
        self.stay = make_automatic(manifest.nodes, self._switched)
        return manifest

    def automatic(self) -> tuple[str, ...]:
        """The selectors for the automatic models of the project. dbt warns about one that selects nothing."""
        nodes = [node for node in self.parse().nodes.values() if node.resource_type == "model"]
        return tuple(
            selector
            for selector, (setting, value) in AUTOMATIC.items()
            if any(node.config.get(setting) == value for node in nodes)
        )

    def list(
        self, types: Sequence[str], keys: Sequence[str], selection: Sequence[str]
    ) -> list[dict[str, Any]]:
        """The nodes that dbt selects, with the given keys of each."""
        chosen = [part for kind in types for part in ("--resource-type", kind)]
        # Its output would appear in the middle of the output of the check.
        quiet = ["--log-level", "none", "--output", "json", "--output-keys", *keys]
        manifest = self.parse() if self._switched else None
        outcome = self._invoke(manifest, "ls", *chosen, *quiet, *selection)
        return [json.loads(line) for line in self._succeeded("ls", outcome).result]

    def build(self, left_out: Sequence[str], selection: Sequence[str]) -> Any:
        """Run ``dbt build``, and return its results even if nodes failed."""
        # dbt stores compiled SQL in the manifest, so each build needs its own.
        manifest = self.parse() if self._switched else None
        outcome = self._invoke(manifest, "build", "--exclude-resource-type", *left_out, *selection)
        if not hasattr(outcome.result, "results"):
            self._succeeded("build", outcome)
        return outcome.result.results

    def _invoke(self, manifest: Any, *arguments: str) -> Any:
        # The project's own artifacts describe its last run, in its own schemas.
        return invoke(self._target, manifest, *arguments, artifacts=self._target.artifacts / "check")

    def _succeeded(self, command: str, outcome: Any) -> Any:
        what, fix = f"dbt {command} failed on the copy", "use --keep to inspect the copy"
        return require_success(self._target, outcome, what, fix)


def selection_of(select: Sequence[str], switch: Sequence[str], automatic: Sequence[str]) -> list[str]:
    """The selection to build: the models to compare, and their upstreams.

    :param automatic: the selectors for automatic models.
    """
    chosen = select or (*(automatic or tuple(AUTOMATIC)[:1]), *switch)
    return ["--select", *(f"+{part}" for part in chosen)]


def failures(results: Sequence[Any]) -> Mapping[str, str]:
    """The nodes that dbt could not build, by name, with a short reason.

    dbt has already printed the details.
    """
    return {
        shown_name(one.node): shorten(str(one.message or one.status.value), 200, placeholder=" ...")
        for one in results
        if one.status.value not in ("success", "pass", "warn", "no-op")
    }
