"""Pulls from sources whose rows are outside the catalog, for macros."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.invocation import get_invocation_id

from dbt_arctic.adapter.capture_sources import declared_capture
from dbt_arctic.adapter.connections import ArcticConnectionManager
from dbt_arctic.adapter.database_sources import database_of, database_source, writes_of
from dbt_arctic.adapter.external_sources import CAPTURED, connectors_of, kind_of
from dbt_arctic.adapter.file_sources import file_source
from dbt_arctic.adapter.kafka_sources import broker_of, kafka_source, registry_of
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.pulls import cleanup_on_error
from dbt_arctic.adapter.rejected_rows import RejectedRows
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.keyed.create import drop_table
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh import clone, replacement
from dbt_arctic.refresh.event_time import refuse_pull
from dbt_arctic.sources.capture_changes import Capture
from dbt_arctic.sources.capture_pull import CapturePlanner
from dbt_arctic.sources.database_plan import Writes
from dbt_arctic.sources.database_pull import DatabasePlanner
from dbt_arctic.sources.file_list import empty_statement, file_lists
from dbt_arctic.sources.file_pull import FilePlanner
from dbt_arctic.sources.kafka_pull import KafkaPlanner
from dbt_arctic.sources.source_planner import PullPurpose, SourcePlanner
from dbt_arctic.store.rejected_table import model_of, rejected_name

logger = AdapterLogger("Arctic")


class ExternalPullsApi(KeyedApi):
    """The methods of the adapter that pull from sources outside the catalog."""

    _declared_sources: Mapping[str, Any] = MappingProxyType({})
    """The sources of the project, by id."""

    def set_macro_resolver(self, macro_resolver: Any) -> None:
        """Like dbt's implementation. The resolver is the manifest, which also has the sources."""
        super().set_macro_resolver(macro_resolver)
        sources = getattr(macro_resolver, "sources", {})  # filled later, while dbt parses
        self._declared_sources = sources
        ArcticConnectionManager.connectors = staticmethod(lambda: connectors_of(sources.values()))

    @available.parse(lambda *a, **k: "")
    def pull_external(
        self,
        relation: ArcticRelation,
        this: ArcticRelation,
        model: Mapping[str, Any],
        first_run: bool,
        purpose: PullPurpose,
    ) -> str:
        """SQL of the rows of a source that this model has not read; remembered for its commit.

        :param relation: a source with ``external``.
        """
        assert relation.external is not None
        unique_id, pulls, target = model["unique_id"], self._pulls(), this.name_parts
        is_consuming = purpose == "consume"
        with as_dbt_errors(), cleanup_on_error(lambda: self.post_model_hook({}, None)):
            refuse_pull(model)
            planner = self._planner(relation.external, target, model)
            earlier = pulls.find(unique_id, planner.upstream) if is_consuming else []
            if earlier:
                return earlier[0].sql
            begun = pulls.begun_from(unique_id) if is_consuming else None
            last_consumed = begun if begun is not None else {} if first_run else self._consumed(target)
            planned = planner.plan(last_consumed, model["name"], purpose)
            if is_consuming:
                source = relation.external["name"]
                pulls.add(unique_id, last_consumed, planned.pull, planned.since, source=source)
                if planned.release is not None:
                    pulls.hold(planned.release)
                pulls.must_select(unique_id, planned.must_select)
                for warning in planned.warnings:
                    logger.warning(warning)
                for note in planned.notes:
                    logger.info(note)
                rows = planner.source if isinstance(planner, FilePlanner | KafkaPlanner) else planned.table
                if rows is not None:
                    rejected = RejectedRows(self.context(), pulls, self._handle)
                    return rejected.reject(unique_id, target, rows, planned.pull, last_consumed).sql
        return planned.pull.sql

    @available.parse(lambda *a, **k: None)
    def drop_rejected(self, relation: ArcticRelation) -> None:
        """Drop the rejected rows of a model whose table was dropped."""
        with as_dbt_errors():
            name = relation.name_parts
            rejected = rejected_name(name)
            state = self.catalog.of(rejected).load_table(rejected.schema, rejected.identifier)
            if state is not None and model_of(state) == name.dotted:
                self._run("drop_rejected", drop_table(rejected))

    @available.parse(lambda *a, **k: None)
    def empty_file_lists(self, relation: ArcticRelation) -> None:
        """Empty the file lists of a table that was replaced by a clone.

        The clone has read what its original has. Files that the former table has found are not its own.
        """
        with as_dbt_errors():
            for name in file_lists(self.catalog, relation.name_parts):
                self._run("empty_file_list", empty_statement(name))

    def _planner(self, declared: Mapping[str, Any], target: Name, model: Mapping[str, Any]) -> SourcePlanner:
        kind, root = kind_of(declared), getattr(self.config, "project_root", None)
        if kind == "jdbc":
            database = database_of(declared, self.config.credentials.databases)
            table, writes = database_source(declared), writes_of(model)
            return DatabasePlanner(
                self.context(), self._handle, database, table, writes, lambda: self._holder(target)
            )
        if kind in CAPTURED:
            return self._capture_planner(declared, target, writes_of(model))
        if kind == "kafka":
            topic = kafka_source(declared, self.config.credentials.kafka_properties, root)
            where = declared["where"]
            broker, registry = broker_of(topic, where), registry_of(topic, where)
            return KafkaPlanner(self.context(), self._handle, broker, topic, registry)
        source = file_source(declared, root)
        names = {f"{one.source_name}.{one.name}" for one in self._declared_sources.values()}
        return FilePlanner(self.context(), self._handle, source, target, names)

    def _capture_planner(self, declared: Mapping[str, Any], target: Name, writes: Writes) -> CapturePlanner:
        credentials = self.config.credentials
        found = declared_capture(declared, credentials.databases, self._declared_sources.values())
        name = found.name(credentials)
        capture = Capture(
            self.context(),
            self._handle,
            lambda: found.open_log(name),
            found.source,
            name,
            get_invocation_id(),
        )
        place, standing = found.table.place, lambda: self._holder(target)
        return CapturePlanner(capture, found.table, place, writes, standing)

    def _holder(self, target: Name) -> Name:
        """The table that has the rows of a model, which may be the original of a clone."""
        return clone.origin(self.catalog, replacement.standing(self.catalog, target))


__all__ = ["ExternalPullsApi"]
