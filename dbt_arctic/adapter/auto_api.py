"""What macros may ask for automatic models: a plan, and its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dbt.adapters.base.meta import available

from dbt_arctic.adapter import elsewhere
from dbt_arctic.adapter.connections import ArcticResponse
from dbt_arctic.adapter.constraints import ordered_select, read_contract, warn_of_ignored
from dbt_arctic.adapter.credentials import ArcticCredentials
from dbt_arctic.adapter.model_api import ModelApi
from dbt_arctic.adapter.pins import current
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.engine.settings import SESSION_DEFAULTS
from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh.auto_model import plan_refresh, run_refresh
from dbt_arctic.refresh.config import KeyedConfig, parse_config
from dbt_arctic.refresh.edge import Outcome

MEANING = ("spark.sql.ansi.enabled", "spark.sql.session.timeZone", "spark.sql.caseSensitive")


class AutoApi(ModelApi):
    @available.parse(lambda *a, **k: None)
    def refresh_auto(
        self, this: ArcticRelation, model: Mapping[str, Any], sql: str, rebuild: bool
    ) -> ArcticResponse:
        """One run of an automatic model."""
        unique_id = model["unique_id"]
        edge = self.edge(self._run_id(unique_id))
        with as_dbt_errors():
            if self._pulls().consumed(unique_id):
                raise ConfigError(
                    "incremental_pull() in a model with the strategy 'auto'",
                    where=model["name"],
                    why="the strategy works out itself what has changed",
                    fix="write ref() instead, or use incremental_strategy='upsert'",
                )
            pins = current()
            config, sql = self._auto_config(model, sql if pins is None else pins.unpinned(sql))
            plan = plan_refresh(
                edge,
                this.name_parts,
                config,
                sql,
                rebuild=rebuild,
                settings=settings_of_meaning(self.config.credentials),
                until=self._pinned_version,
            )
            outcome = run_refresh(
                edge,
                this.name_parts,
                config,
                plan,
                owner=unique_id,
                comment=self.table_comment(model),
                column_comments=self.column_comments(model),
            )
        return _response(outcome)

    def _auto_config(self, model: Mapping[str, Any], sql: str) -> tuple[KeyedConfig, str]:
        config = parse_config(model["name"], model["config"])
        if elsewhere.current() is not None:
            # A check is after what is refreshed incrementally, even where a full refresh would be faster.
            config = replace(config, full_refresh_above=1.0)
        contract = read_contract(model, config.unique_key)
        if contract is None:
            return config, sql
        warn_of_ignored(contract, self.type())
        ordered = ordered_select(contract, sql, [column.name for column in self._schema(sql)])
        return replace(config, checks=contract.checks, required=contract.required), ordered


def settings_of_meaning(credentials: ArcticCredentials) -> str:
    """The session's settings on which the result of a query depends, as the profile has them."""
    conf = {**SESSION_DEFAULTS, **(credentials.spark_conf or {})}
    return ";".join(f"{name}={conf[name]}" for name in MEANING if name in conf)


def _response(outcome: Outcome) -> ArcticResponse:
    return ArcticResponse(
        _message=outcome.message,
        code=outcome.message.split(" ")[0],
        rows_affected=None if outcome.rows < 0 else outcome.rows,
        statement=outcome.sql,
    )
