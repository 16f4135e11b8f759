"""Compares the relations of a project's models in two targets of one profile."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.dbt_invocation import invoke, require_success
from dbt_arctic.adapter.diff_report import DiffReport, ModelDiff
from dbt_arctic.adapter.model_lags import name_of, shown_name
from dbt_arctic.adapter.profile_methods import SERVERS
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.project_keys import project_keys
from dbt_arctic.adapter.relation_diff import DiffOptions, compare_relations, current_relation
from dbt_arctic.adapter.target_session import TargetSession
from dbt_arctic.auto.key_selection import ProjectKeys
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.errors import ArcticError, ConfigError
from dbt_arctic.keyed.clone_origin import began_as
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.clone import is_clone

_TYPES = ("model", "snapshot", "seed")


@dataclass(frozen=True)
class _Pair:
    model: str
    here: Name
    there: Name | None


def diff_targets(
    session: TargetSession, target: Target, base: Target, options: DiffOptions, report: Callable[[str], None]
) -> DiffReport:
    """Compare the selected models of two targets.

    :param report: called with the name of each model before it is compared.
    :raises ConfigError: the targets are not two targets of one catalog, or dbt cannot parse the project.
    """
    _require_comparable(target, base)
    pairs, keys = _pairs(target, base, options.selection)
    found = []
    for pair in pairs:
        report(pair.model)
        found.append(_diff(session, pair, keys, options))
    return DiffReport(target.name, base.name, tuple(found), options.threshold)


def _require_comparable(target: Target, base: Target) -> None:
    if target.name == base.name:
        raise ConfigError(
            f"the target and the base are both {target.name}",
            where="--base",
            fix="name production's target: --base prod; choose your own target with --target",
        )
    here, there = (_place(one.credentials, str(one.project_root)) for one in (target, base))
    different = [name for name in {**here, **there} if here.get(name) != there.get(name)]
    if different:
        raise ConfigError(
            f"the targets {target.name} and {base.name} do not share a catalog",
            where=f"profiles.yml, {different[0]}",
            why=f"one session reads both, but {different[0]} differs",
            fix="compare targets that differ in their schema only; see docs/how-to/review-a-change.md",
        )


_OF_CATALOGS = ("type", "uri", "catalog-impl")


def _place(credentials: ArcticCredentials, root: str) -> dict[str, Any]:
    """What determines which tables a target sees. Credentials may differ."""
    properties = credentials.iceberg_properties
    return {
        "method": credentials.method,
        "catalog": credentials.database,
        "host": credentials.endpoint if credentials.method in SERVERS else None,
        "warehouse": credentials.resolved_warehouse(root),
        **{f"catalog: {name}": properties.get(name) for name in _OF_CATALOGS},
        **{
            f"catalogs: {one.name}": (
                one.warehouse,
                *(None if one.properties is None else one.properties.get(name) for name in _OF_CATALOGS),
            )
            for one in credentials.other_catalogs(root)
        },
    }


def _pairs(target: Target, base: Target, selection: Sequence[str]) -> tuple[list[_Pair], ProjectKeys]:
    """The relations of the selected nodes, in the order of dbt, and the keys that the project declares."""
    manifest = _parse(target)
    chosen = [part for kind in _TYPES for part in ("--resource-type", kind)]
    quiet = ["--log-level", "none", "--output", "json", "--output-keys", "unique_id"]
    outcome = invoke(target, manifest, "ls", *chosen, *quiet, *selection, artifacts=_artifacts(target))
    require_success(target, outcome, "dbt could not select the models", "dbt ls with the same selection")
    selected = [json.loads(line)["unique_id"] for line in outcome.result]
    if not selected:
        raise ConfigError(
            "no model, snapshot or seed is selected",
            where=" ".join(selection) or str(target.project_root),
            fix="correct the selection; to try it: dbt ls with the same options",
        )
    others = _parse(base).nodes
    pairs = []
    for unique_id in selected:
        node, other = manifest.nodes[unique_id], others.get(unique_id)
        if node.config.materialized == "ephemeral":
            continue
        there = None if other is None else name_of(base, other)
        pairs.append(_Pair(shown_name(node), name_of(target, node), there))
    return pairs, project_keys(manifest)


def _parse(target: Target) -> Any:
    with redirect_stdout(io.StringIO()) as output:
        outcome = invoke(target, None, "parse", "--no-write-json", artifacts=_artifacts(target))
    if not outcome.success:
        sys.stderr.write(output.getvalue())
    fix = f"dbt parse --target {target.name}"
    return require_success(target, outcome, f"the project cannot be parsed for {target.name}", fix).result


def _artifacts(target: Target) -> Path:
    # The project's own artifacts describe its last run. Each target has its own parsed project.
    return target.artifacts / "diff" / target.name


def _diff(session: TargetSession, pair: _Pair, keys: ProjectKeys, options: DiffOptions) -> ModelDiff:
    found = ModelDiff(pair.model, pair.here.dotted, pair.there.dotted if pair.there else "", "not built")
    try:
        if pair.here == pair.there:
            return replace(found, state="not compared", why="both targets have it in the same schema")
        if pair.there is not None and _shows(session.catalog, pair.here, pair.there):
            return replace(found, state="clone")
        here = current_relation(session.catalog, pair.here)
        if here is None:
            return found
        there = None if pair.there is None else current_relation(session.catalog, pair.there)
        if there is None:
            return replace(found, state="new")
        return compare_relations(session.query, found, here, there, keys, options)
    except ArcticError as error:  # an error of this model; the others are still compared
        return replace(found, state="failed", why=str(error))


def _shows(catalog: CatalogReader, here: Name, there: Name) -> bool:
    """Whether a relation is a clone without a write, and so a view over the other one."""
    view = catalog.of(here).load_view(here.schema, here.identifier)
    return view is not None and is_clone(view.properties) and began_as(view.properties) == there
