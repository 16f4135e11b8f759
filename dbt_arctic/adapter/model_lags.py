"""How late the models of a project are, from metadata, listings of folders and offsets of topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from typing import Any

from dbt_arctic.adapter.capture_sources import declared_capture
from dbt_arctic.adapter.database_sources import database_of, database_source, writes_of
from dbt_arctic.adapter.external_sources import CAPTURED, declared_source, kind_of
from dbt_arctic.adapter.file_sources import file_source
from dbt_arctic.adapter.kafka_sources import broker_of, kafka_source
from dbt_arctic.adapter.project import Target
from dbt_arctic.adapter.selection import parse_project
from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.compaction.lag import Lag, Upstreams
from dbt_arctic.compaction.markers import count_markers
from dbt_arctic.compaction.metrics import side_metrics
from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.version import PROPERTY_CONSUMED, Consumed
from dbt_arctic.maintenance.overview import TableOverview
from dbt_arctic.refresh.consumed_versions import consuming_state, consuming_table
from dbt_arctic.refresh.materializations import INCREMENTAL
from dbt_arctic.scheduling.model_lag import (
    NO_VERSIONS,
    NOT_BUILT,
    ModelLag,
    PendingUpstream,
    consumed_at_ms,
    waiting_for,
    waiting_outside,
)
from dbt_arctic.sources.capture_preview import LogContents
from dbt_arctic.sources.database_preview import preview_table
from dbt_arctic.sources.database_pull import upstream_of
from dbt_arctic.sources.kafka_settings import PLACE
from dbt_arctic.sources.unread import RefreshSize, Unread, unread_files, unread_messages, unread_rows
from dbt_arctic.store.consumption import last_consumed
from dbt_arctic.store.rejected_table import SUFFIX
from dbt_arctic.store.state import find_keyed, is_file_list, load_base, load_change, with_current_buckets

_WITHOUT_ROWS = ("view", "ephemeral")
"""Materializations that a query reads through."""


@dataclass(frozen=True)
class ModelGraph:
    """The incremental models of a project.

    :param nodes: dbt's nodes by unique id, a model after those that it reads.
    :param reads: the other models of these that each one reads, directly or through views.
    """

    nodes: Mapping[str, Any]
    reads: Mapping[str, tuple[str, ...]]

    @property
    def reads_by_name(self) -> dict[str, list[str]]:
        """``reads``, with the names of models in place of their ids."""
        names = {key: shown_name(node) for key, node in self.nodes.items()}
        return {names[key]: [names[one] for one in reads] for key, reads in self.reads.items()}

    def with_upstreams(self, chosen: Collection[str]) -> set[str]:
        """Models, and all models that they read, directly and indirectly."""
        found: set[str] = set()
        waiting = [one for one in chosen if one in self.nodes]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.reads[one]
        return found


def graph_of(manifest: Any, kinds: Collection[str] = INCREMENTAL) -> ModelGraph:
    """The models of a project with the given materializations."""
    models = {key: node for key, node in manifest.nodes.items() if node.resource_type == "model"}
    parents = {key: [one for one in node.depends_on.nodes if one in models] for key, node in models.items()}
    order = TopologicalSorter(parents).static_order()
    nodes = {key: models[key] for key in order if models[key].config.materialized in kinds}

    def read_by(key: str) -> Iterable[str]:
        for parent in parents[key]:
            if parent in nodes:
                yield parent
            elif models[parent].config.materialized in _WITHOUT_ROWS:
                yield from read_by(parent)

    return ModelGraph(nodes, {key: tuple(dict.fromkeys(read_by(key))) for key in nodes})


class LagReader:
    """Reads what models have not consumed. Each upstream is read once, so a reader serves one look only.

    :param catalog: which may cache.
    :param with_full_refresh: whether to look up what a full refresh would read, and whether the tables that
        a run reads are there. This asks the databases of followed tables, and the catalog for both tables of
        each keyed table.
    """

    def __init__(
        self, catalog: CatalogReader, target: Target, manifest: Any, with_full_refresh: bool = False
    ) -> None:
        self._catalog = catalog
        self._with_full_refresh = with_full_refresh
        self._target = target
        self._upstreams = Upstreams(catalog)
        self._sources = manifest.sources
        self._logs: dict[Name, LogContents] = {}
        self._shown = _shown_names(target, manifest)

    def lag_of(self, node: Any) -> ModelLag:
        """What a model has not consumed of each upstream.

        :raises ArcticError: the catalog cannot be read.
        """
        name = name_of(self._target, node)
        state = consuming_state(self._catalog, name)
        if state is None or state.current_snapshot_id is None:
            return ModelLag(shown_name(node), problem=NOT_BUILT)
        outside = [waiting_outside(one) for one in self.unread_of(node, name, state)]
        inside = [
            self._inside(lag)
            for lag in self._upstreams.lags(state)
            if not self._belongs_to_source(lag.upstream)
        ]
        records_any = any(PROPERTY_CONSUMED in one.summary for one in state.history())
        problem = self._damage(name) or ("" if records_any else NO_VERSIONS)
        return ModelLag(shown_name(node), (*inside, *outside), problem)

    def _inside(self, lag: Lag) -> PendingUpstream:
        """What a model has not consumed of a table of the catalog."""
        upstream = self._shown.get(lag.upstream.lower()) or lag.upstream.partition(".")[2]
        if not self._with_full_refresh:
            return waiting_for(lag, upstream)
        try:
            size = _full_refresh_of(self._catalog, lag.upstream)
        except ArcticError as error:
            return waiting_for(replace(lag, lost=lag.lost or error.what), upstream)
        return waiting_for(lag, upstream, size)

    def _damage(self, name: Name) -> str:
        """Why a keyed table cannot be read although its log can be; empty if it can be."""
        if not self._with_full_refresh:
            return ""
        table = find_keyed(self._catalog, consuming_table(self._catalog, name))
        if table is None:
            return ""
        try:
            load_base(self._catalog, table)
        except ArcticError as error:
            return unreadable(error)
        return ""

    def unread_of(self, node: Any, name: Name, state: TableState) -> list[Unread]:
        """What a model has not read of each source outside the catalog.

        :param state: of the table whose commits record what the model has consumed.
        """
        looks = map(self._outside, node.depends_on.nodes)
        return [look(node, name, state) for look in looks if look is not None]

    def _outside(self, unique_id: str) -> Callable[[Any, Name, TableState], Unread] | None:
        """What looks up the unread rows of a source outside the catalog; ``None`` for any other node."""
        declared = declared_source(self._sources.get(unique_id))
        if declared is None:
            return None

        def look(node: Any, name: Name, state: TableState) -> Unread:
            model = node.name
            try:
                consumed = last_consumed(state.history(), model)
                kind = kind_of(declared)
                if kind == "files":
                    files = file_source(declared, str(self._target.project_root))
                    return unread_files(self._catalog, files, model, name, consumed)
                if kind == "jdbc":
                    return self._unread_rows(declared, node, state, consumed)
                if kind in CAPTURED:
                    return self._unread_changes(declared, model, state, consumed)
                topic = kafka_source(declared, self._target.credentials.kafka_properties)
                key = f"{PLACE}.{topic.name}"
                read_ms = consumed_at_ms(state.history(), key)
                broker = broker_of(topic, declared["where"])
                return unread_messages(topic, broker, model, consumed.get(key), read_ms)
            except ArcticError as error:
                return Unread(declared["name"], "file", problem=error.what)

        return look

    def _unread_rows(
        self, declared: Mapping[str, Any], node: Any, state: TableState, consumed: Mapping[str, Consumed]
    ) -> Unread:
        """What a model has not read of a table of a database."""
        source = database_source(declared)
        key = upstream_of(source.name).dotted
        writes = writes_of({"name": node.name, "config": node.config.to_dict()})
        database = database_of(declared, self._target.credentials.databases)
        preview = preview_table(database, source, node.name, consumed.get(key), writes)
        history = state.history()
        newest = history[0].timestamp_ms if history else None
        return unread_rows(preview, consumed_at_ms(history, key) or newest)

    def _unread_changes(
        self, declared: Mapping[str, Any], model: str, state: TableState, consumed: Mapping[str, Consumed]
    ) -> Unread:
        """What a model has not read of a captured table."""
        capture = declared_capture(declared, self._target.credentials.databases, self._sources.values())
        key = capture.upstream.dotted
        table = capture.captured(self._catalog, self._target.credentials, self._logs)
        read_ms = consumed_at_ms(state.history(), key)
        return table.unread(model, consumed.get(key), read_ms, self._with_full_refresh)

    def _belongs_to_source(self, upstream: str) -> bool:
        """Whether a consumed table is a file list or has rejected rows. The source itself is looked at."""
        return upstream.endswith(SUFFIX) or is_file_list(self._catalog, upstream)


def shown_name(node: Any) -> str:
    """The name of a model in dbt's selections. Versions of a model have one name in dbt."""
    version = getattr(node, "version", None)
    return str(node.name) if version is None else f"{node.name}.v{version}"


def name_of(target: Target, node: Any) -> Name:
    """The table of a model."""
    return Name(node.database or target.credentials.database, node.schema, node.alias)


def _full_refresh_of(catalog: CatalogReader, upstream: str) -> RefreshSize | None:
    """What a full refresh would read of a table of the catalog, from metadata; ``None`` if it is not there.

    :param upstream: its dotted name.
    :raises ArcticError: one of its tables cannot be read.
    """
    name, markers, marker_bytes = Name(*upstream.split(".", 2)), 0, 0
    table = find_keyed(catalog, name)
    if table is not None:
        change = load_change(catalog, table)
        states = [load_base(catalog, table), change]
        markers, marker_bytes = count_markers(with_current_buckets(table, change), change)
    else:
        state = catalog.of(name).load_table(name.schema, name.identifier)
        states = [] if state is None else [state]
    sides = [one for one in map(side_metrics, states) if one is not None]
    if len(sides) < len(states):
        return RefreshSize("row")
    rows, size = sum(one.live_rows for one in sides), sum(one.size_bytes for one in sides)
    return RefreshSize("row", max(0, rows - markers), max(0, size - marker_bytes)) if sides else None


def _shown_names(target: Target, manifest: Any) -> dict[str, str]:
    """What users call the tables of a project, by dotted name in lower case."""
    found: dict[str, str] = {}
    for node in manifest.sources.values():
        name = Name(node.database or target.credentials.database, node.schema, node.identifier)
        found[name.dotted.lower()] = f"{node.source_name}.{node.name}"
    for node in manifest.nodes.values():
        if node.resource_type in ("model", "seed", "snapshot"):
            found[name_of(target, node).dotted.lower()] = shown_name(node)
    return found


def with_source_lags(
    target: Target, catalog: CatalogReader, found: Sequence[TableOverview]
) -> list[TableOverview]:
    """Tables with the lag of the sources outside the catalog that their models have read.

    The project is parsed if there is any. Sources of a table without a model of the project are left out.
    """
    if not any(seen.sources for seen in found):
        return list(found)
    try:
        manifest = parse_project(target)
    except ArcticError as error:
        lost = Lag("sources", lost=f"the project cannot be parsed: {error.what}")
        return [replace(seen, lags=(*seen.lags, lost)) if seen.sources else seen for seen in found]
    reader = LagReader(catalog, target, manifest)
    nodes = {name_of(target, node): node for node in graph_of(manifest).nodes.values()}

    def lags(name: Name) -> Iterable[Lag]:
        state = consuming_state(catalog, name) if name in nodes else None
        for one in reader.unread_of(nodes[name], name, state) if state is not None else ():
            yield Lag(one.source, one.since_ms, one.problem)

    return [replace(seen, lags=(*seen.lags, *lags(seen.name))) if seen.sources else seen for seen in found]


def lags_of(reader: LagReader, graph: ModelGraph, chosen: Sequence[str]) -> list[ModelLag]:
    """The lags of models and of all models that they read, in the order of the graph.

    A table that cannot be read is the problem of its model.

    :raises ArcticError: no table can be read, perhaps because the catalog does not answer.
    """
    wanted = graph.with_upstreams(chosen)
    found: list[ModelLag] = []
    errors: list[ArcticError] = []
    for node in (graph.nodes[key] for key in graph.nodes if key in wanted):
        try:
            found.append(reader.lag_of(node))
        except ArcticError as error:
            errors.append(error)
            found.append(ModelLag(shown_name(node), problem=unreadable(error)))
    if errors and len(errors) == len(found):
        raise errors[0]
    return found


def unreadable(error: ArcticError) -> str:
    """The problem of a model whose table cannot be read, and the command that shows how to repair it."""
    return f"{error.what.rstrip('.')}: dbt-arctic verify"


__all__ = ["LagReader", "ModelGraph", "graph_of", "lags_of", "name_of", "shown_name", "with_source_lags"]
