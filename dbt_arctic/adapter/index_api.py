"""Macro methods for the secondary indexes of a keyed model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base.meta import available

from dbt_arctic.adapter.model_api import ModelApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.refresh.index_config import check_indexes, parse_indexes
from dbt_arctic.refresh.listed_columns import listed_columns
from dbt_arctic.refresh.materializations import strategy_of
from dbt_arctic.store.secondary_indexes import apply_indexes
from dbt_arctic.store.state import load_keyed


class IndexApi(ModelApi):
    """The methods of the adapter for secondary indexes."""

    @available.parse(lambda *a, **k: None)
    def check_indexes(self, model: Mapping[str, Any], sql: str) -> None:
        """Check the setting ``indexes`` before anything is written."""
        with as_dbt_errors():
            wanted = parse_indexes(model["name"], model["config"])
            if wanted:
                types = {column.name: column.type for column in self.context().query_schema(sql)}
                # The key of a history has another column, so its rows are not found by unique_key alone.
                is_history = strategy_of(model["config"]) == "history"
                key = (
                    ()
                    if is_history
                    else listed_columns(model["name"], "unique_key", model["config"].get("unique_key"))
                )
                check_indexes(model["name"], wanted, types, key)

    @available.parse(lambda *a, **k: None)
    def apply_indexes(self, relation: ArcticRelation, model: Mapping[str, Any]) -> None:
        """Create the indexes of the setting ``indexes``, and drop those that it no longer has."""
        with as_dbt_errors():
            table = load_keyed(self.catalog, relation.name_parts).visible
            wanted = parse_indexes(model["name"], model["config"])
            columns = check_indexes(model["name"], wanted, table.types, table.key)
            apply_indexes(self.context(), table, columns)
