"""Pins versions for ``consistent_reads`` when dbt's invocation begins and when a model ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.flags import get_flags

from dbt_arctic.adapter import pins
from dbt_arctic.adapter.catalog_names import is_known
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.other_catalog_reads import OtherReads
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.keyed.names import Name


class ConsistentReadsApi(KeyedApi):
    """The methods of the adapter that dbt calls at these times."""

    def __init__(self, config: Any, mp_context: Any) -> None:
        """Discard the pins of earlier invocations. dbt creates an adapter for each invocation."""
        super().__init__(config, mp_context)
        pins.begin(None)
        own, *others = config.credentials.catalog_names
        with as_dbt_errors():  # a mistake in the profile is found here; dbt adds a traceback to other errors
            catalog = self.catalog
        pins.begin_others(OtherReads(catalog, own) if others else None, catalog)

    def acquire_connection(self, name: str | None = None) -> Any:
        """Pin versions before anything else, even if dbt does not list all relations first.

        A macro that is run with ``dbt run-operation`` may write to the relations that it names, so nothing is
        pinned for it.
        """
        reads = getattr(get_flags(), "WHICH", "") != "run-operation"  # type: ignore[no-untyped-call]
        if reads and self.config.credentials.consistent_reads and pins.current() is None:
            pins.begin(self.catalog, self.config.credentials.catalog_names)
        return super().acquire_connection(name)

    def set_relations_cache(
        self,
        relation_configs: Iterable[Any],
        clear: bool = False,
        required_schemas: set[BaseRelation] | None = None,
    ) -> None:
        """Pin versions before the first model.

        dbt calls this once, unless it runs with ``--no-populate-cache``.
        """
        nodes = list(relation_configs)
        super().set_relations_cache(nodes, clear, required_schemas)
        credentials = self.config.credentials
        begun = pins.begin(self.catalog if credentials.consistent_reads else None, credentials.catalog_names)
        if begun is None:
            return
        resolver: Any = self.get_macro_resolver()
        sources = list(getattr(resolver, "sources", {}).values())
        with as_dbt_errors():
            begun.pin(
                Name(node.database or credentials.database, node.schema, node.identifier)
                for node in [*nodes, *sources]
                if is_known(node.database, credentials.catalog_names) and node.schema and node.identifier
            )

    @available.parse(lambda *a, **k: "")
    def unpinned(self, sql: str) -> str:
        """SQL without pinned versions, for SQL that is stored and read after this run.

        :raises ConfigError: it would read from a catalog of another name.
        """
        written = sql
        sql, others = pins.unpinned(sql), pins.other_reads()
        if others is not None:
            with as_dbt_errors():
                fix = "make it a table, or an incremental model"
                others.refuse_names(sql, self.config.credentials.schema, "a view, which stores names", fix)
        with as_dbt_errors():
            pins.refuse_records(written, "a view, which stores names")
        return sql

    def cache_added(self, relation: BaseRelation | None) -> str:
        """Pin the new version of a model. dbt calls this when the model is complete."""
        result: str = super().cache_added(relation)
        current = pins.current()
        if current is not None and isinstance(relation, ArcticRelation):
            with as_dbt_errors():
                current.pin([relation.name_parts])
        return result
