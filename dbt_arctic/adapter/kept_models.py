"""The models of a project that ``dbt-arctic keep`` refreshes, and their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_arctic.adapter.model_lags import graph_of, name_of, shown_name
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.selection import parse_project, select_models
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.materializations import INCREMENTAL, is_automatic
from dbt_arctic.scheduling.scheduler import KeptModel, effective_targets
from dbt_arctic.scheduling.settings import KeepSettings, parse_keep, require_versions

_PULL = "incremental_pull"


@dataclass(frozen=True)
class KeptProject:
    """A parsed project.

    :param target: its artifacts are in a folder of their own, so that those of dbt's last command stay.
    :param models: those that are refreshed, in the order of the graph.
    :param nodes: dbt's nodes of these models, by name.
    :param reads: by name, the others of these models that each one reads, directly or through views.
    :param not_kept: other models that they read, with rows of their own.
    """

    target: Target
    manifest: Any
    models: tuple[KeptModel, ...]
    nodes: Mapping[str, Any]
    reads: Mapping[str, Sequence[str]]
    not_kept: Sequence[str] = ()

    def table_of(self, model: str) -> Name:
        """The table of a model."""
        return name_of(self.target, self.nodes[model])

    @property
    def tables(self) -> frozenset[Name]:
        """The tables of all models."""
        return frozenset(map(self.table_of, self.nodes))


def load_project(target: Target, select: Sequence[str]) -> KeptProject:
    """Parse a project and check the settings of all of its models.

    :raises ConfigError: a setting is wrong, or no selected model has one.
    """
    target = target._replace(artifacts=target.artifacts / "keep")
    manifest = parse_project(target, target.artifacts)
    graph = graph_of(manifest, (*INCREMENTAL, "table"))
    settings = {key: _settings(manifest, node) for key, node in graph.nodes.items()}
    every = [KeptModel(key, settings[key], graph.reads[key]) for key in graph.nodes if settings[key].is_set]
    _require_readers(every, graph.nodes)
    chosen = {node.unique_id for node in select_models(target, manifest, select)}
    kept = [one for one in every if one.model in chosen]
    _require_readers(kept, graph.nodes)
    if not kept:
        selected = "no selected model has" if select else "no model has"
        raise ConfigError(
            f"{selected} target_lag or schedule",
            where=str(target.project_root),
            why="dbt-arctic keep refreshes the models that have one of these settings",
            fix="set target_lag='5 minutes' in a model, or +target_lag: 5 minutes for a folder of models in "
            "dbt_project.yml",
        )
    names = {key: shown_name(node) for key, node in graph.nodes.items()}
    ids = {one.model for one in kept}
    models = tuple(
        KeptModel(names[one.model], one.settings, tuple(names[key] for key in one.reads if key in ids))
        for one in kept
    )
    nodes = {names[one.model]: graph.nodes[one.model] for one in kept}
    others = dict.fromkeys(names[key] for one in kept for key in one.reads if key not in ids)
    reads = {one.model: one.reads for one in models}
    return KeptProject(target, manifest, models, nodes, reads, tuple(others))


def _settings(manifest: Any, node: Any) -> KeepSettings:
    config = node.config.to_dict()
    found = parse_keep(shown_name(node), config)
    if found.is_set:
        require_versions(shown_name(node), found, is_automatic(config) or _pulls(manifest, node))
    return found


def _pulls(manifest: Any, node: Any) -> bool:
    """Whether a model calls ``incremental_pull()``, directly or in a macro of the project."""
    waiting, seen = list(node.depends_on.macros), set()
    while waiting:
        macro = manifest.macros.get(waiting.pop())
        if macro is None or macro.unique_id in seen:
            continue
        if macro.name == _PULL:
            return True
        seen.add(macro.unique_id)
        waiting += macro.depends_on.macros
    return False


def _require_readers(models: Sequence[KeptModel], nodes: Mapping[str, Any]) -> None:
    """Refuse ``downstream`` of a model that no other one needs: it would never be refreshed."""
    targets = effective_targets(models)
    needed = {
        upstream for one in reversed(models) if one.settings.every_s is not None for upstream in one.reads
    }
    for one in reversed(models):
        if one.model in needed:
            needed |= set(one.reads)
        if one.settings.is_downstream and one.model not in targets and one.model not in needed:
            raise ConfigError(
                "target_lag is 'downstream', and no model that reads this one has a target_lag or a schedule",
                where=shown_name(nodes[one.model]),
                why="it would never be refreshed",
                fix="set a duration, for example target_lag='5 minutes'; or set one in a model that reads it",
            )


__all__ = ["KeptProject", "load_project"]
