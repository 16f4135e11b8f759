"""The plans of a project's automatic models before a run, from metadata alone.

dbt compiles the models, the catalog provides versions, and the planner decides. The plan is the same as in a
run, except that upstream models of the same run have not been refreshed yet.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

from dbt_arctic.adapter.advice import advice_for
from dbt_arctic.adapter.constraints import ordered_select, read_contract
from dbt_arctic.adapter.dbt_invocation import invoke, require_success
from dbt_arctic.adapter.external_sources import require_tables
from dbt_arctic.adapter.model_lags import name_of, shown_name
from dbt_arctic.adapter.pins import unpinned
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.project_keys import project_keys
from dbt_arctic.adapter.result_inputs import settings_of_meaning, time_of_invocation
from dbt_arctic.adapter.target_session import TargetSession
from dbt_arctic.auto.advice import Advice
from dbt_arctic.auto.explanation import Explanation, explain
from dbt_arctic.auto.key_selection import with_needed_keys
from dbt_arctic.auto.plan import RefreshPlan
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.auto.state_tree import ShownState, shown_states
from dbt_arctic.auto.timings import RefreshTiming, timings
from dbt_arctic.engine.lexer import without_end
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.materializations import is_automatic, is_incremental
from dbt_arctic.store.state import find_keyed, load_change


@dataclass(frozen=True)
class ModelPlan:
    """The refresh plan of one model, and information about the model itself.

    :param is_requested: whether its config ``full_refresh`` requests a rebuild in each run.
    :param before: models of the same selection that this one reads and that may change first: automatic ones,
        and if this one has nothing to do, all incremental ones.
    :param advice: obstacles to incremental refreshes, with lines of the model's file.
    :param states: its auxiliary views, in the order of their refreshes.
    :param earlier: its earlier refreshes, newest first.
    """

    model: str
    name: Name
    plan: RefreshPlan
    is_requested: bool
    before: tuple[str, ...]
    path: str
    advice: tuple[Advice, ...]
    states: tuple[ShownState, ...] = ()
    earlier: tuple[RefreshTiming, ...] = ()

    @property
    def explanation(self) -> Explanation:
        """The plan in plain words, with its cost."""
        return explain(self.plan, self.earlier, self.advice)


def plan_models(session: TargetSession, target: Target, select: Sequence[str]) -> list[ModelPlan]:
    """The plans of the automatic models in a selection; of all models without one.

    :raises ConfigError: dbt could not compile the project, or the selection contains no model.
    :raises UnknownRelation: a model reads a source outside the catalog like a table.
    """
    compiled, manifest = _compile(target, select)
    keys = project_keys(manifest)
    if select and not compiled:
        raise ConfigError(
            f"{' '.join(select)} selects no model of the project",
            where=str(target.project_root),
            fix="dbt ls --resource-type model lists all models; SELECT is as in dbt",
        )
    incremental = {node.unique_id: node for node in compiled if is_incremental(node.config.to_dict())}
    automatic = {key: node for key, node in incremental.items() if is_automatic(node.config.to_dict())}
    plans = []
    for unique_id, node in automatic.items():
        require_tables(node, manifest.sources)
        name = name_of(target, node)
        settings = node.config.to_dict()
        config = parse_config(node.name, settings, small_data=target.credentials.small_data)
        model = node.to_dict(omit_none=True) | {"compiled_code": unpinned(node.compiled_code)}
        contract = read_contract(model, config.unique_key)
        sql, rebuild = without_end(model["compiled_code"]), node.config.full_refresh is True
        sql = sql if contract is None else ordered_select(contract, sql, ())
        terms = RefreshParameters(
            settings_of_meaning(target.credentials, settings),
            now=time_of_invocation(target.credentials, settings),
        )
        config = with_needed_keys(session.catalog, name, config, sql, keys, terms.in_effect)
        plan = plan_refresh(session.catalog, name, config, sql, None, rebuild=rebuild, terms=terms)
        first = incremental if plan.action == "nothing" else automatic
        before = tuple(
            shown_name(other)
            for key, other in first.items()
            if key in node.depends_on.nodes and key != unique_id
        )
        root = target.project_root
        advice = tuple(advice_for(session.catalog, name, model, root, keys, terms.in_effect))
        path, states = node.original_file_path, tuple(shown_states(session.catalog, name, plan))
        table = find_keyed(session.catalog, name)
        earlier = () if table is None else tuple(timings(load_change(session.catalog, table).history()))
        plans.append(ModelPlan(shown_name(node), name, plan, rebuild, before, path, advice, states, earlier))
    return plans


def _compile(target: Target, select: Sequence[str]) -> tuple[list[Any], Any]:
    """The compiled models, and the manifest."""
    # Without a selection, dbt would render the hooks of the project, too.
    selected = ["--select", *(select or ["resource_type:model"])]
    # dbt prints the compiled SQL, even with --quiet.
    with redirect_stdout(io.StringIO()) as output:
        # dbt's artifacts describe the last run, and `dbt retry` needs them.
        outcome = invoke(target, None, "parse", "--no-write-json")
        manifest = outcome.result
        if outcome.success:
            outcome = invoke(target, manifest, "compile", "--no-write-json", *selected)
    if not outcome.success:
        sys.stderr.write(output.getvalue())
    require_success(target, outcome, "the project could not be compiled", "dbt compile")
    results = getattr(outcome.result, "results", [])
    models = [entry.node for entry in results if entry.node.resource_type == "model"]
    return models, manifest
