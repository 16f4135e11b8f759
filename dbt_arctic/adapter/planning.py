"""The plans of a project's automatic models, as they are before a run. No Spark is started.

dbt compiles the models, the catalog tells versions, and the planner decides: the same plan as in a run,
except that models which stand before one in the same run have not been refreshed yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.cli.main import dbtRunner

from dbt_arctic.adapter.auto_api import settings_of_meaning
from dbt_arctic.adapter.operator import Operator
from dbt_arctic.adapter.project import Target
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.auto import AutoPlan, plan_auto
from dbt_arctic.refresh.config import choose_strategy, parse_config
from dbt_arctic.refresh.state import find_keyed, load_change


@dataclass(frozen=True)
class ModelPlan:
    """:param before: models of the same selection that this one reads, and that may change it first."""

    model: str
    name: Name
    plan: AutoPlan
    before: tuple[str, ...]


def plan_models(operator: Operator, target: Target, select: Sequence[str]) -> list[ModelPlan]:
    """The plans of the automatic models that a selection names; of all without one.

    :raises ConfigError: dbt could not compile the project.
    """
    compiled = _compile(target, select)
    settings = settings_of_meaning(target.credentials)
    automatic = {}
    for node in compiled:
        config = node.config.to_dict()
        if config.get("materialized") == "incremental" and choose_strategy(node.name, config) == "auto":
            automatic[node.unique_id] = node
    plans = []
    for unique_id, node in automatic.items():
        name = Name(target.credentials.database, node.schema, node.alias)
        config = parse_config(node.name, node.config.to_dict())
        table = find_keyed(operator.catalog, name)
        expected = {}
        if table is not None:
            expected = consumed_versions(load_change(operator.catalog, table).history())
        plan = plan_auto(
            operator.catalog, name, table, expected, config, node.compiled_code, settings=settings
        )
        before = tuple(
            other.name
            for key, other in automatic.items()
            if key in node.depends_on.nodes and key != unique_id
        )
        plans.append(ModelPlan(node.name, name, plan, before))
    return plans


def _compile(target: Target, select: Sequence[str]) -> list:  # type: ignore[type-arg]
    arguments = ["compile", "--quiet", "--project-dir", str(target.project_root), "--target", target.name]
    if target.profiles_dir is not None:
        arguments += ["--profiles-dir", str(target.profiles_dir)]
    if select:
        arguments += ["--select", *select]
    outcome = dbtRunner().invoke(arguments)
    if not outcome.success:
        raise ConfigError(
            "the project could not be compiled",
            where=str(target.project_root),
            why=str(outcome.exception or "dbt has said why"),
            fix="dbt compile",
        )
    results = getattr(outcome.result, "results", [])
    return [entry.node for entry in results if entry.node.resource_type == "model"]
