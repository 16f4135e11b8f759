"""Macro methods for the strategy ``history``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.base.meta import available

from dbt_arctic.adapter.connections import ArcticResponse
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.refresh.history import HistoryModel, build_history, write_history
from dbt_arctic.refresh.history_config import parse_history
from dbt_arctic.store.consumption import Consumption


class HistoryApi(KeyedApi):
    """The methods of the adapter for models with the strategy ``history``."""

    @available.parse(lambda *a, **k: None)
    def refresh_history(
        self, this: ArcticRelation, model: Mapping[str, Any], sql: str, rebuild: bool
    ) -> ArcticResponse:
        """Run a model with the strategy ``history``: build it, or add the events of the batch."""
        pulls, unique_id = self._pulls(), model["unique_id"]
        context = self.context(self._run_id(unique_id))
        with as_dbt_errors():
            context, config, sql = self.prepared_batch(context, model, sql)
            settings = parse_history(model["name"], model["config"])
            history = HistoryModel(config, settings, sql, self._scd_id)
            if rebuild:
                pulls.require_everything(unique_id, model["name"])
                outcome = build_history(
                    context,
                    this.name_parts,
                    history,
                    pulls.consumed(unique_id),
                    owner=unique_id,
                    comment=self.table_comment(model),
                    column_comments=self.column_comments(model),
                    beginning=self.beginning(unique_id),
                )
            else:
                consumption = Consumption(pulls.last_consumed(unique_id), pulls.consumed(unique_id))
                outcome = write_history(context, this.name_parts, history, consumption)
        return self.response_of(outcome)

    def _scd_id(self, columns: Sequence[str]) -> str:
        """The id of dbt's snapshots, from a macro that a project may override."""
        return str(self.execute_macro("snapshot_hash_arguments", kwargs={"args": list(columns)})).strip()
