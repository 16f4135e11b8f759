"""A batch that several statements of a plain table read: computed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dbt.adapters.base.meta import available

from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.refresh.plain import stage
from dbt_arctic.refresh.plain_config import (
    PlainConfig,
    check_named_columns,
    check_partitions,
    parse_plain,
)


class StagingApi(KeyedApi):
    @available.parse(lambda *a, **k: None)
    def plain_config(self, model: Mapping[str, Any], strategy: str) -> PlainConfig:
        """The settings of a plain incremental model; an error where one has no effect."""
        with as_dbt_errors():
            return parse_plain(model["name"], strategy, model["config"])

    @available.parse(lambda *a, **k: None)
    def check_plain_model(self, config: PlainConfig, rows: str) -> None:
        """An error where a setting names a column that the rows (SQL of a relation) do not have."""
        if config.named_columns:
            with as_dbt_errors():
                columns = [column.name for column in self._schema(f"SELECT * FROM {rows}")]
                check_named_columns(config, columns)

    @available.parse(lambda *a, **k: "")
    def check_partitions(self, config: PlainConfig, target: ArcticRelation) -> str:
        """A warning where ``partition_by`` is not the table's, or an error where rows would be lost."""
        with as_dbt_errors():
            state = self.catalog.load_table(target.schema or "", target.identifier or "")
            return check_partitions(config, None if state is None else state.partitioning)

    @available.parse(lambda *a, **k: None)
    def stage_batch(self, this: ArcticRelation, batch: str) -> ArcticRelation:
        """The rows of a relation as they are now, in a table until the model is done: each statement would
        compute them anew, and may find others.
        """
        with as_dbt_errors():
            edge, target = self.edge(), this.name_parts
            state = self.catalog.load_table(target.schema, target.identifier)
            stored = {} if state is None else {column.name.lower(): column.type for column in state.columns}
            staging = target.sibling(f"{target.identifier}__pull_{edge.new_txn()}")
            self._pulls().stage(staging)
            edge.run("stage", stage(staging, batch, self._schema(f"SELECT * FROM {batch}"), stored))
        made = this.incorporate(path={"identifier": staging.identifier})  # type: ignore[no-untyped-call] # dbt's
        return cast(ArcticRelation, made)
