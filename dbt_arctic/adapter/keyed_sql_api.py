"""The methods behind the macros for SQL: queries of views, reads of keyed tables, and DML on them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.contracts.relation import RelationType
from dbt_common.invocation import get_invocation_id

from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.pins import remember_text
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.adapter.view_columns import stored_query
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed import read
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.without_views import record_of
from dbt_arctic.maintenance import versions
from dbt_arctic.refresh import pull
from dbt_arctic.refresh.dml import modify
from dbt_arctic.refresh.parse_dml import parse_modification
from dbt_arctic.store.other_catalogs import merged_text
from dbt_arctic.store.state import current_version, find_keyed, load_keyed


class KeyedSqlApi(KeyedApi):
    """The methods of the adapter for SQL on keyed tables."""

    @available.parse(lambda *a, **k: "")
    def view_query(self, sql: str) -> str:
        """The query that a view stores, with columns and fields of structs by name."""
        with as_dbt_errors():
            return stored_query(sql, self._schema(sql))

    @available.parse(lambda *a, **k: "")
    def merged(self, relation: ArcticRelation) -> str:
        """The text that reads the merged rows of a keyed table, as its view does, for a FROM clause.

        Pulls and automatic models recognise it as a read of that table.

        :raises UnknownRelation: it is not a keyed table.
        """
        with as_dbt_errors():
            name = self._origin(relation)
            table = load_keyed(self.catalog, name)
            if relation.read_as is not None:
                return relation.read_as  # at one version, or in a catalog without views
            text = merged_text(table)
            remember_text(text, name)
            return text

    @available.parse(lambda *a, **k: None)
    def record(self, relation: ArcticRelation) -> ArcticRelation | None:
        """The record of a keyed table without a view; ``None`` for any other relation."""
        with as_dbt_errors():
            name = relation.name_parts
            if not isinstance(self.catalog, WithRecords) or self.catalog.of(name).has_views():
                return None  # without a read, as this is called for each view of a listing
            if find_keyed(self.catalog, name) is None:
                return None
        found: ArcticRelation = self.record_of(relation)
        return found

    @available
    @classmethod
    def record_of(cls, relation: ArcticRelation) -> ArcticRelation:
        """The table that is the record of a keyed table, if it has one."""
        path = replace(relation.path, identifier=record_of(relation.identifier or ""))
        return relation.replace(path=path, type=RelationType.Table)

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

    @available.parse(lambda *a, **k: {})
    def keyed_sql(self, sql: str) -> dict[str, Any]:
        """Run an UPDATE, DELETE or MERGE on a keyed table.

        Returns ``table`` and the numbers of rows: ``updated``, ``inserted`` and ``deleted``.
        """
        credentials = self.config.credentials
        with as_dbt_errors():
            parsed = parse_modification(sql)
            parts, names = parsed.target, credentials.catalog_names
            if len(parts) > 3 or (len(parts) == 3 and parts[0] not in names):
                raise ConfigError(
                    f"{'.'.join(parts)} is not in a catalog of the profile",
                    why=f"it has: {', '.join(names)}",
                    fix="write schema.table, or a ref()",
                )
            defaults = (credentials.database, credentials.schema)
            name = Name(*defaults[: 3 - len(parts)], *parts)
            context = self.context(f"{get_invocation_id()}:keyed_sql")
            return asdict(modify(context, name, parsed))
