"""Macro methods that read keyed tables: merged rows, versions, and changes."""

from __future__ import annotations

from dbt.adapters.base.meta import available

from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.keyed import read
from dbt_arctic.maintenance import versions
from dbt_arctic.refresh import pull
from dbt_arctic.store.state import current_version, load_keyed


class ReadApi(KeyedApi):
    """The methods of the adapter for reads."""

    @available.parse(lambda *a, **k: "")
    def merge_on_read_sql(self, relation: ArcticRelation, version: str | None, where: str) -> str:
        """SQL of the merged rows."""
        with as_dbt_errors():
            return pull.plan_merge_on_read(self.catalog, self._origin(relation), version, where)

    @available.parse(lambda *a, **k: "")
    def read_optimized_sql(self, relation: ArcticRelation) -> str:
        """SQL of the base table."""
        with as_dbt_errors():
            return read.read_optimized(load_keyed(self.catalog, self._origin(relation)).visible)

    @available.parse(lambda *a, **k: "")
    def changes_sql(
        self, relation: ArcticRelation, before: str, after: str | None, images: read.Images, where: str
    ) -> str:
        """SQL of the changes between two versions."""
        with as_dbt_errors():
            return pull.plan_changes(self.catalog, self._origin(relation), before, after, images, where)

    @available.parse(lambda *a, **k: "")
    def at_version_sql(self, relation: ArcticRelation, version: str, where: str) -> str:
        """SQL of a relation at a version."""
        with as_dbt_errors():
            return versions.rows_at(self.catalog, self._origin(relation), version, where)

    @available.parse(lambda *a, **k: "")
    def at_time_sql(self, relation: ArcticRelation, time: str, where: str) -> str:
        """SQL of a relation at a point in time."""
        with as_dbt_errors():
            return versions.rows_at_time(self.catalog, self._origin(relation), time, where)

    @available.parse(lambda *a, **k: "")
    def table_version(self, relation: ArcticRelation) -> str:
        """The current version of a keyed table, as a string to store and compare."""
        with as_dbt_errors():
            return current_version(self.catalog, load_keyed(self.catalog, self._origin(relation))).token
