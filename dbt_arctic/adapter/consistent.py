"""Pins versions for ``consistent_reads`` when dbt's invocation begins and when a model ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.flags import get_flags

from dbt_arctic.adapter import pins
from dbt_arctic.adapter.databases import is_of
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.keyed.names import Name


class ConsistentReads(KeyedApi):
    """The methods of the adapter that dbt calls at these times."""

    def __init__(self, config: Any, mp_context: Any) -> None:
        """Discard the pins of earlier invocations. dbt creates an adapter for each invocation."""
        super().__init__(config, mp_context)
        pins.begin(None)

    def acquire_connection(self, name: str | None = None) -> Any:
        """Pin versions before anything else, even if dbt does not list all relations first.

        A macro that is run with ``dbt run-operation`` may write to the relations that it names, so nothing is
        pinned for it.
        """
        reads = getattr(get_flags(), "WHICH", "") != "run-operation"  # type: ignore[no-untyped-call]
        if reads and self.config.credentials.consistent_reads and pins.current() is None:
            pins.begin(self.catalog, self.config.credentials.database)
        return super().acquire_connection(name)

    def set_relations_cache(
        self,
        relation_configs: Iterable[Any],
        clear: bool = False,
        required_schemas: set[BaseRelation] | None = None,
    ) -> None:
        """Pin versions before the first model. dbt calls this once, unless it runs with
        ``--no-populate-cache``."""
        nodes = list(relation_configs)
        super().set_relations_cache(nodes, clear, required_schemas)
        ours = self.config.credentials.database
        begun = pins.begin(self.catalog if self.config.credentials.consistent_reads else None, ours)
        if begun is None:
            return
        resolver: Any = self.get_macro_resolver()
        sources = list(getattr(resolver, "sources", {}).values())
        with as_dbt_errors():
            begun.pin(
                Name(ours, node.schema, node.identifier)
                for node in [*nodes, *sources]
                if is_of(node.database, ours) and node.schema and node.identifier
            )

    @available.parse(lambda *a, **k: "")
    def unpinned(self, sql: str) -> str:
        """SQL without pinned versions, for SQL that is stored and read after this run."""
        return pins.unpinned(sql)

    def cache_added(self, relation: BaseRelation | None) -> str:
        """Pin the new version of a model. dbt calls this when the model is complete."""
        result: str = super().cache_added(relation)
        current = pins.current()
        if current is not None and isinstance(relation, ArcticRelation):
            with as_dbt_errors():
                current.pin([relation.name_parts])
        return result
