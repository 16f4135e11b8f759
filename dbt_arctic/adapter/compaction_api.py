"""Macro methods for compaction: of one table now, or of the project's tables that are due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger

from dbt_arctic.adapter.model_api import ModelApi
from dbt_arctic.adapter.process_modes import KEEPING
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.auto.auxiliary_tables import find_states
from dbt_arctic.compaction.major import compact_major
from dbt_arctic.compaction.plan import most_valuable_first
from dbt_arctic.compaction.retention import longest_history
from dbt_arctic.compaction.run import FAILED, OperationResult, run_operations, trim_when_due
from dbt_arctic.compaction.settings import DEFAULT_TRIM_GRACE_SECONDS, CompactionSettings, parse_settings
from dbt_arctic.keyed.names import Name
from dbt_arctic.maintenance.overview import overview_of_tables
from dbt_arctic.maintenance.upkeep import durations_of, record_and_keep
from dbt_arctic.store.duration import parse_duration
from dbt_arctic.store.state import find_keyed

DEFAULT_BUDGET_S = 300

_logger = AdapterLogger("Arctic")


class CompactionApi(ModelApi):
    """The methods of the adapter for compaction."""

    @available.parse(lambda *a, **k: [])
    def keyed_tables_of(self, relation: ArcticRelation) -> list[ArcticRelation]:
        """The keyed table of a model, if it is one, and the state tables of an automatic model."""
        with as_dbt_errors():
            if find_keyed(self.catalog, relation.name_parts) is None:
                return []
            states = [state.name for state in find_states(self.catalog, relation.name_parts)]
        state_relations = [
            ArcticRelation.create(name.catalog, name.schema, name.identifier) for name in states
        ]
        return [relation, *state_relations]

    @available.parse(lambda *a, **k: None)
    def compact_table(
        self, relation: ArcticRelation, trim_grace_seconds: float | None = None
    ) -> dict[str, Any]:
        """Major compaction of one keyed table."""
        grace = DEFAULT_TRIM_GRACE_SECONDS if trim_grace_seconds is None else trim_grace_seconds
        with as_dbt_errors():
            return vars(compact_major(self.context(), relation.name_parts, grace))

    @available.parse(lambda *a, **k: None)
    def trim_when_due(self, relation: ArcticRelation, model: Mapping[str, Any]) -> None:
        """Trim after a write.

        A failure is only logged, because the rows are written and the trim remains due.
        """
        with as_dbt_errors():
            settings = parse_settings(model["name"], model["config"].get("compaction"))
            context, states = self.context(), find_states(self.catalog, relation.name_parts)
            for name in (relation.name_parts, *(state.name for state in states)):
                done = trim_when_due(context, name, settings)
                if done is not None and done.outcome == FAILED:
                    _logger.warning(f"{name} was written but could not be trimmed: {done.detail}")

    @available.parse(lambda *a, **k: [])
    def compact_due(
        self, models: Sequence[Mapping[str, Any]], budget: str | int | None = None, shed: bool = False
    ) -> list[str]:
        """Run the operations that are due for the project's tables, the most valuable first.

        Returns a line for each.

        In ``dbt-arctic keep``, which compacts by itself, nothing.

        :param models: catalog, schema, name and settings ``compaction`` and ``buckets`` of each model.
        :param budget: by default the maximum that a model declares, or five minutes.
        """
        if KEEPING.is_on:
            return []
        with as_dbt_errors():
            names = self.config.credentials.catalog_names
            settings = _settings(names, models)
            if shed or not settings:
                return ["compaction: skipped, shed is set"] if shed else []
            settings |= {
                state.name: replace(one, buckets=None)
                for name, one in settings.items()
                for state in find_states(self.catalog, name)
            }
            declared = max((one.budget_s or 0 for one in settings.values()), default=0)
            budget_s = parse_duration("compact_due", "budget", budget, declared or DEFAULT_BUDGET_S)
            context = self.context(self._run_id("compact_due"))
            found = overview_of_tables(
                self.catalog,
                frozenset(settings),
                context.now_ms(),
                lambda name, is_keyed: settings[name],
                with_lags=False,
            )
            for seen in found:
                if seen.status is None:
                    _logger.warning(f"compaction: {seen.name} is skipped. {seen.problem}: dbt-arctic verify")
            own = Name(names[0], self.config.credentials.schema, "any")
            experience = durations_of(self.catalog, own, _logger.warning)
            due = experience.applied([operation for seen in found for operation in seen.due])
            done = run_operations(context, most_valuable_first(due), budget_s)
            configured = [(str(model["identifier"]), model.get("compaction")) for model in models]
            record_and_keep(context, own, done, experience, longest_history(configured), _logger.warning)
        return [f"compaction: {_described(one)}" for one in done]


def _settings(names: Sequence[str], models: Sequence[Mapping[str, Any]]) -> dict[Name, CompactionSettings]:
    """The settings of the models that are in a catalog of the profile. The others are never built.

    :param names: the names of its catalogs.
    """
    return {
        Name(str(model["database"]), str(model["schema"]), str(model["identifier"])): parse_settings(
            str(model["identifier"]), model.get("compaction"), model.get("buckets")
        )
        for model in models
        if model["database"] in names
    }


def _described(done: OperationResult) -> str:
    operation = done.operation
    detail = f" ({done.detail})" if done.detail else ""
    taken = f", {done.seconds:.1f} s" if done.was_tried else ""
    return f"{operation.kind} of {operation.name.identifier}: {done.outcome}{detail}{taken}"
