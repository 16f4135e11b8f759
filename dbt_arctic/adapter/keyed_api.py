"""Macro methods for keyed tables. They only pass dbt's data to ``refresh`` and ``compaction``."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dbt.adapters.base.meta import available
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.sql.impl import SQLAdapter
from dbt_common.invocation import get_invocation_id

from dbt_arctic.adapter.catalog_names import refuse_reading
from dbt_arctic.adapter.connections import ArcticConnectionManager, ArcticResponse
from dbt_arctic.adapter.constraints import ordered_select, read_contract, warn_of_ignored
from dbt_arctic.adapter.docs import persists
from dbt_arctic.adapter.engines import choose_catalog, cores_of
from dbt_arctic.adapter.file_sources import locate_with
from dbt_arctic.adapter.pins import current
from dbt_arctic.adapter.pulls import ModelPulls, cleanup_on_error, require_selected
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.second_connection import open_second_connection
from dbt_arctic.adapter.statement_macro import STATEMENT_MACRO, is_overridden
from dbt_arctic.adapter.translate import as_dbt_errors, as_own_errors
from dbt_arctic.auto.auxiliary_tables import drop_states
from dbt_arctic.auto.fast_path import settings_for_pull
from dbt_arctic.auto.temporary_views import make_view
from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.engine.api import ColumnInfo, Connection
from dbt_arctic.engine.commit_conflicts import require_commit_conflicts
from dbt_arctic.engine.lexer import without_end
from dbt_arctic.engine.temporary_settings import tuned
from dbt_arctic.keyed import read
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.maintenance.adopt import finish_adoption
from dbt_arctic.refresh import build, clone, pull, replacement
from dbt_arctic.refresh.config import KeyedConfig, choose_strategy, parse_config
from dbt_arctic.refresh.consumed_versions import consumed_by, was_replaced
from dbt_arctic.refresh.event_time import batch_interval, refuse_pull
from dbt_arctic.refresh.plain_config import replaces_by_key
from dbt_arctic.refresh.run import check_skipped, write_rows
from dbt_arctic.store.analysed_once import analysed_once
from dbt_arctic.store.consumption import Consumption, last_read
from dbt_arctic.store.context import Context
from dbt_arctic.store.other_catalogs import require_same_name
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.state import count_rows, find_keyed, load_keyed
from dbt_arctic.store.without_views import reading_records


class KeyedApi(SQLAdapter):
    """The methods of the adapter for keyed tables."""

    connections: ArcticConnectionManager
    _catalog: CatalogReader | None = None
    _catalog_lock = threading.Lock()
    _thread_pulls = threading.local()

    @property
    def catalog(self) -> CatalogReader:
        """The reader of the catalog."""
        with self._catalog_lock:
            if self._catalog is None:
                project_root = getattr(self.config, "project_root", None)
                self._catalog = choose_catalog(self.config.credentials, project_root, self._rows)
            return self._catalog

    def context(self, run_id: str = "") -> Context:
        """The context of a refresh."""
        context = Context(
            self.catalog,
            self._run,
            self._schema,
            self._rows,
            run_id,
            second_connection=partial(open_second_connection, self, self._run),
            tuned=lambda conf: tuned(self._handle(), conf),
            cores=cores_of(self.config.credentials),
            require_conflicts=self._require_conflicts,
        )
        return reading_records(context) if isinstance(self.catalog, WithRecords) else context

    def _handle(self) -> Connection:
        handle: Connection = self.connections.get_thread_connection().handle
        return handle

    def _require_conflicts(self, name: Name) -> None:
        require_commit_conflicts(self._handle(), name.catalog, name.schema, name.identifier)

    def _schema(self, sql: str) -> list[ColumnInfo]:
        return self._handle().query_schema(sql)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with as_own_errors():
            _, cursor = self.connections.add_query(sql, auto_begin=False)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows

    def _run(self, step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        with as_own_errors():
            if table is not None:
                require_same_name(self.catalog, table.name, table.name.dotted)
            if is_overridden(self.get_macro_resolver()):
                arguments = {"step": step, "sql": sql, "table": table}
                sql = str(self.execute_macro(STATEMENT_MACRO, kwargs=arguments))
            response, _ = self.connections.execute(sql, auto_begin=False, fetch=False)
        return None if response.rows_affected is None else int(response.rows_affected)

    # Methods for the run of a model

    @available.parse(lambda *a, **k: None)
    def keyed_table(self, relation: ArcticRelation) -> KeyedTable | None:
        """The current keyed table of that name; ``None`` if there is none."""
        with as_dbt_errors():
            return find_keyed(self.catalog, relation.name_parts)

    @available.parse(lambda *a, **k: "")
    def incremental_pull(
        self,
        relation: ArcticRelation,
        this: ArcticRelation,
        model: Mapping[str, Any],
        first_run: bool,
        unique_key: str | Sequence[str] | None,
        images: read.Images,
        running: bool,
    ) -> str:
        """SQL of an upstream's changes since the model's last commit; recorded for the next commit."""
        key = (unique_key,) if isinstance(unique_key, str) else tuple(unique_key or ())
        target = this.name_parts
        upstream = self._origin(relation)
        earlier = self._pulls().find(model["unique_id"], upstream) if running else []
        for known in earlier:
            if known.images == images:
                return known.sql
        with as_dbt_errors(), cleanup_on_error(lambda: self.post_model_hook({}, None)):
            refuse_pull(model)
            begun = self._pulls().begun_from(model["unique_id"]) if running else None
            last_consumed = begun if begun is not None else {} if first_run else self._consumed(target)
            context = self.context()
            staging = f"{target.identifier}__pull_{context.new_txn()}" if running else None
            cloned = clone.cloned_from(self.catalog, upstream, last_consumed)
            pin = earlier[0].consumed if earlier else self._pinned_version(upstream)
            since = last_read(self.catalog, upstream, last_consumed) if cloned is None else cloned[1]
            if cloned is not None:
                planned = pull.pull_since_clone(
                    self.catalog, upstream, *cloned, model=model["name"], images=images, pin=pin
                )
            else:
                planned = pull.plan_pull(
                    self.catalog,
                    upstream,
                    since,
                    model=model["name"],
                    key=key,
                    images=images,
                    pin=pin,
                    staging=staging,
                )
            if running:
                self._pulls().add(model["unique_id"], last_consumed, planned, since, is_relation=True)
                if planned.stage is not None:
                    make_view(context, "stage", planned.stage.sql)
        return planned.sql

    @available.parse(lambda *a, **k: False)
    def nothing_to_pull(self, this: ArcticRelation, model: Mapping[str, Any]) -> bool:
        """Whether the model pulls and all its upstreams are unchanged. Called before any other method."""
        with as_dbt_errors():
            self._pulls().require_same_upstreams(model["unique_id"], model["name"])
            if not replaces_by_key(model["name"], model["config"]):
                self._pulls().require_known_rows(
                    model["unique_id"],
                    model["name"],
                    lambda: self._count_rows(this.name_parts),
                    lambda: was_replaced(self.catalog, this.name_parts),
                )
            if not self._pulls().nothing_new(model["unique_id"]):
                return False
            check_skipped(self.catalog, this.name_parts, model["name"], model["config"])
        return True

    @available.parse(lambda *a, **k: None)
    def refresh_keyed(
        self, this: ArcticRelation, model: Mapping[str, Any], sql: str, rebuild: bool
    ) -> ArcticResponse:
        """Run a keyed model: build a generation, or make one commit to the change table."""
        pulls = self._pulls()
        unique_id = model["unique_id"]
        context = self.context(self._run_id(unique_id))
        with as_dbt_errors():
            context, config, sql = self.prepared_batch(context, model, sql)
            if rebuild:
                pulls.require_everything(unique_id, model["name"])
                _, outcome = build.build_generation(
                    context,
                    this.name_parts,
                    config,
                    sql,
                    pulls.consumed(unique_id),
                    owner=unique_id,
                    comment=self.table_comment(model),
                    column_comments=self.column_comments(model),
                    beginning=self.beginning(unique_id),
                )
            else:
                consumption = Consumption(pulls.last_consumed(unique_id), pulls.consumed(unique_id))
                interval = batch_interval(model)
                few_rows = self._reads_few_rows(this, model, config, sql)
                with settings_for_pull(context, few_rows=few_rows):
                    outcome = write_rows(context, this.name_parts, config, sql, consumption, interval)
        return _response(outcome)

    def _reads_few_rows(
        self, this: ArcticRelation, model: Mapping[str, Any], config: KeyedConfig, sql: str
    ) -> bool:
        """Whether a write reads only few changes, and neither its SQL nor the write reads its own table."""
        nodes = model["depends_on"]["nodes"]
        reads_own = config.is_partial or config.overwrite is not None or "_unavailable" in sql
        return (
            not reads_own
            and f"`{this.identifier}`" not in sql
            and self._pulls().read_few_rows(model["unique_id"], nodes)
        )

    def prepared_batch(
        self, context: Context, model: Mapping[str, Any], sql: str
    ) -> tuple[Context, KeyedConfig, str]:
        """The config of a keyed model with its contract, and its SQL, which has the required columns.

        The context keeps Spark's analysis of the SQL: that of a pull of change events takes a tenth of a
        second.
        """
        small_data, sql = self.config.credentials.small_data, without_end(sql)
        config = parse_config(model["name"], model["config"], small_data=small_data)
        contract = read_contract(model, config.unique_key)
        if contract is not None:
            warn_of_ignored(contract, self.type())
            config = replace(config, checks=contract.checks, required=contract.required)
            sql = ordered_select(contract, sql, [column.name for column in context.query_schema(sql)])
        context = analysed_once(context, sql)
        by_condition = bool(config.delete_when)
        if needed := self._pulls().needed_columns(model["unique_id"], deletes_by_condition=by_condition):
            require_selected(model["name"], needed, [column.name for column in context.query_schema(sql)])
        return context, config, sql

    @staticmethod
    def response_of(outcome: Outcome) -> ArcticResponse:
        """What dbt's log shows of a refresh."""
        return _response(outcome)

    @available.parse(lambda *a, **k: None)
    def drop_keyed(self, relation: ArcticRelation) -> None:
        """Drop a keyed table: its view, its side tables, and its state table."""
        with as_dbt_errors():
            context, table = self.context(), load_keyed(self.catalog, relation.name_parts)
            self._drop_state(context, table)
            build.drop_keyed(context, table)

    @available.parse(lambda *a, **k: None)
    def drop_side_tables(self, table: KeyedTable) -> None:
        """Drop the rest of a keyed table after its view was replaced by an ordinary one."""
        with as_dbt_errors():
            context = self.context()
            self._drop_state(context, table)
            build.drop_side_tables(context, table)

    def _drop_state(self, context: Context, table: KeyedTable) -> None:
        # A swap may have renamed the table before the drop. A new table of that name keeps its own state.
        shown = find_keyed(self.catalog, table.storage_name)
        if shown is None or shown.generation == table.generation:
            drop_states(context, table.storage_name)

    @available.parse(lambda *a, **k: "append")
    def incremental_strategy(self, model: Mapping[str, Any]) -> str:
        """The strategy of a model: the configured one, otherwise by whether it has a key."""
        with as_dbt_errors():
            return choose_strategy(model["name"], model["config"])

    # Swaps between a table and a view of one name

    @available.parse(lambda *a, **k: None)
    def relation_kind(self, relation: ArcticRelation) -> str | None:
        """The kind of a stored relation: ``table``, ``view``, ``keyed``, ``clone`` or ``None``."""
        with as_dbt_errors():
            return replacement.kind_of(self.catalog, relation.name_parts)

    @available.parse(lambda *a, **k: None)
    def standing_kind(self, relation: ArcticRelation) -> str | None:
        """Like ``relation_kind``, after the run has repaired an interrupted swap."""
        with as_dbt_errors():
            return replacement.standing_kind(self.catalog, relation.name_parts)

    @available.parse(lambda *a, **k: None)
    def finish_adoption(self, relation: ArcticRelation) -> None:
        """Create the view of a keyed table whose adoption was interrupted after the rename."""
        with as_dbt_errors():
            finish_adoption(self.context(), relation.name_parts)

    @available.parse(lambda *a, **k: [])
    def set_aside(self, relation: ArcticRelation) -> list[ArcticRelation]:
        """The relations that an interrupted swap left under temporary names."""
        with as_dbt_errors():
            return [
                ArcticRelation.create(
                    database=relation.database,
                    schema=relation.schema,
                    identifier=entry.name,
                    type=RelationType.Table if entry.kind == "table" else RelationType.View,
                )
                for entry in replacement.set_aside(self.catalog, relation.name_parts)
            ]

    @available.parse(lambda *a, **k: "")
    def swap_suffix(self) -> str:
        """A unique suffix for the names of a swap, so that no two tables share a folder."""
        return str(self.context().new_txn())

    def post_model_hook(self, config: Mapping[str, Any], context: Any) -> None:
        """Discard the pulls of the model and drop its staged rows, whether it succeeded or not."""
        locate_with(None)
        for drop in self._pulls().clear():
            self._run("drop_staging", drop)

    def diagnose(self) -> None:
        """Check every part that a run needs. The first failure explains its fix."""
        from dbt_arctic.adapter.doctor import check

        with as_dbt_errors():
            check(self.config.credentials, getattr(self.config, "project_root", None))

    def beginning(self, unique_id: str) -> build.BuildStart | None:
        """The state of the table before a model was computed; ``None`` if the build computes it."""
        return None

    def _pulls(self) -> ModelPulls:
        if not hasattr(self._thread_pulls, "pulls"):
            self._thread_pulls.pulls = ModelPulls()
        pulls: ModelPulls = self._thread_pulls.pulls
        return pulls

    def _count_rows(self, name: Name) -> int | None:
        """The rows of a plain table; 0 if there is none, and ``None`` if the number is unknown."""
        state = self.catalog.of(name).load_table(name.schema, name.identifier)
        return 0 if state is None else count_rows(state)

    def _consumed(self, name: Name) -> dict[str, Consumed]:
        return consumed_by(self.catalog, name)

    def _origin(self, relation: ArcticRelation) -> Name:
        with as_dbt_errors():
            refuse_reading(relation.name_parts, self.config.credentials.catalog_names)
        return clone.origin(self.catalog, relation.name_parts)

    @staticmethod
    def table_comment(model: Mapping[str, Any]) -> str:
        """The comment of the table of a model."""
        return str(model.get("description") or "") if persists(model, "relation") else ""

    @staticmethod
    def column_comments(model: Mapping[str, Any]) -> dict[str, str]:
        """The comments of its columns."""
        if not persists(model, "columns"):
            return {}
        columns: Mapping[str, Mapping[str, Any]] = model.get("columns") or {}
        return {name: str(column.get("description") or "") for name, column in columns.items()}

    @staticmethod
    def _pinned_version(upstream: Name) -> Consumed | None:
        pins = current()
        pin = pins.find(upstream) if pins is not None else None
        return None if pin is None else pin.consumed

    def _run_id(self, unique_id: str) -> str:
        return f"{get_invocation_id()}:{unique_id}"


def _response(outcome: Outcome) -> ArcticResponse:
    return ArcticResponse(
        _message=outcome.message,
        code="OK",
        rows_affected=outcome.rows,
        statement=outcome.sql,
    )
