"""A batch that several statements of a plain table read: computed once."""

from __future__ import annotations

from typing import cast

from dbt.adapters.base.meta import available

from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.refresh.plain import stage


class StagingApi(KeyedApi):
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
