"""Macro methods for automatic models: plan and run. dbt's graph decides whether before-images are stored."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

from dbt.adapters.base.meta import available
from dbt.adapters.events.logging import AdapterLogger
from dbt.flags import get_flags

from dbt_arctic.adapter import other_schema
from dbt_arctic.adapter.advice import advice_for, advice_text
from dbt_arctic.adapter.connections import ArcticResponse, AutoResponse
from dbt_arctic.adapter.constraints import ordered_select, read_contract, warn_of_ignored
from dbt_arctic.adapter.model_api import ModelApi
from dbt_arctic.adapter.pins import texts_of, unpinned
from dbt_arctic.adapter.project_keys import project_keys
from dbt_arctic.adapter.readers import automatic_readers, read_by_automatic
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.result_inputs import settings_of_meaning, time_of_invocation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.auto.inputs import ModelInputs
from dbt_arctic.auto.key_selection import ProjectKeys, with_needed_keys
from dbt_arctic.auto.plan import RefreshPlan
from dbt_arctic.auto.plan_model import plan_refresh
from dbt_arctic.auto.refresh_model import run_refresh
from dbt_arctic.auto.refresh_request import RefreshParameters
from dbt_arctic.auto.session_settings import defines, session_text, unsupported_setting
from dbt_arctic.auto.verify_refresh import verify_refresh
from dbt_arctic.engine.api import Connection, Traffic
from dbt_arctic.engine.lexer import without_comments, without_end
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.human_readable import counted, shown_bytes
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.config import KeyedConfig, parse_config
from dbt_arctic.refresh.materializations import is_automatic
from dbt_arctic.store.analysed_once import analysed_once
from dbt_arctic.store.context import Context, ModelsOfRun
from dbt_arctic.store.other_catalogs import with_relation_texts
from dbt_arctic.store.refresh_outcome import Outcome, StageRun
from dbt_arctic.store.row_cache import SharedRows
from dbt_arctic.store.state import find_keyed

_log = AdapterLogger("Arctic")
_SHARING = threading.Lock()


class _Planned(NamedTuple):
    """A plan, and what it was made of."""

    context: Context
    config: KeyedConfig
    sql: str
    terms: RefreshParameters
    plan: RefreshPlan


class AutoApi(ModelApi):
    """The methods of the adapter for automatic models."""

    _definitions: ClassVar[WeakKeyDictionary[Connection, list[str]]] = WeakKeyDictionary()
    _graph: tuple[Mapping[str, Any], frozenset[str], Mapping[str, Sequence[Name]]] | None = None
    _keys: tuple[Any, ProjectKeys] | None = None

    @contextmanager
    def connection_named(
        self, name: str, query_header_context: Any = None, should_release_connection: bool = True
    ) -> Iterator[None]:
        """The context in which dbt compiles and runs each node.

        Prints the advice for a node that is only compiled.
        """
        with super().connection_named(name, query_header_context, should_release_connection):
            yield
            node = query_header_context
            compiles = getattr(get_flags(), "WHICH", "") == "compile"  # type: ignore[no-untyped-call]
            if compiles and _is_compiled(node) and is_automatic(node.config.to_dict()):
                target = Name(node.database, node.schema, node.alias)
                compiled = node.to_dict(omit_none=True) | {"compiled_code": unpinned(node.compiled_code)}
                self._advise(target, compiled, None)

    @available.parse(lambda *a, **k: None)
    def refresh_auto(
        self,
        this: ArcticRelation,
        model: Mapping[str, Any],
        sql: str,
        rebuild: bool,
        graph: Mapping[str, Any] | None = None,
        partial: Any = None,
        selected: Sequence[str] = (),
    ) -> ArcticResponse:
        """Run an automatic model.

        :param graph: dbt's graph. A model that another automatic one reads keeps its before-images by
            default.
        :param selected: the ids of the selected nodes. Tables that several of them read are read once.
        :param partial: whether the query reads only a part of its upstreams (``--empty``, ``--sample``).
            Missing rows are then not deleted ones, so an existing model is unchanged.
        """
        unique_id = model["unique_id"]
        read, readers = self._of_graph(graph or {}, selected)
        alongside = ModelsOfRun(lambda name: readers.get(name.dotted.lower(), ()), self._pinned_version)
        context = replace(self.context(self._run_id(unique_id)), alongside=alongside)
        with as_dbt_errors():
            if partial and not rebuild and find_keyed(context.catalog, this.name_parts) is not None:
                return self._skipped_part(context, model, sql)
            with self._handle().noting() as statements:
                planned = self._planned(context, this.name_parts, model, sql, rebuild, unique_id in read)
                outcome = run_refresh(
                    planned.context,
                    this.name_parts,
                    planned.config,
                    planned.plan,
                    owner=unique_id,
                    comment=self.table_comment(model),
                    column_comments=self.column_comments(model),
                )
                outcome = verify_refresh(
                    planned.context, this.name_parts, planned.config, planned.sql, outcome, planned.terms
                )
            if planned.plan.action == "build":
                self._advise(this.name_parts, {**model, "compiled_code": planned.sql}, planned.plan.inputs)
            return _response(outcome, self._handle().traffic(statements))

    def _planned(
        self, context: Context, name: Name, model: Mapping[str, Any], sql: str, rebuild: bool, is_read: bool
    ) -> _Planned:
        """Plan a refresh with the settings of the session that will execute it.

        A session that does not exist yet is only opened if there is something to execute.
        """
        handle = self._handle()
        session = session_text(handle.conf(start=False), self._defined())
        was_open = handle.is_open
        planned = self._planned_with(session, context, name, model, sql, rebuild, is_read)
        if was_open or planned.plan.action == "nothing":
            return planned
        found = session_text(handle.conf(), self._defined())
        if found == session:
            return planned
        return self._planned_with(found, context, name, model, sql, rebuild, is_read)

    def _planned_with(
        self,
        session: str,
        context: Context,
        name: Name,
        model: Mapping[str, Any],
        sql: str,
        rebuild: bool,
        is_read: bool,
    ) -> _Planned:
        credentials, settings = self.config.credentials, model["config"]
        terms = RefreshParameters(
            settings_of_meaning(credentials, settings),
            self._pinned_version,
            time_of_invocation(credentials, settings, session),
            session,
        )
        # A view is computed with the settings of the session that created it.
        context = replace(context, shared=self._shared_rows(terms.in_effect))
        # SQL that is executed as written keeps the versions of the invocation.
        if unsupported_setting(terms.in_effect) is None:
            context, sql = with_relation_texts(context, texts_of(sql)), unpinned(sql)
        config, sql = self._auto_config(model, sql)
        if config.before_images is None:
            config = replace(config, before_images=is_read)
        keys = self._declared_keys()
        config = with_needed_keys(context.catalog, name, config, sql, keys, terms.in_effect, terms.until)
        context = analysed_once(context, sql)
        plan = plan_refresh(
            context.catalog,
            name,
            config,
            sql,
            context.query_schema,
            rebuild=rebuild,
            terms=terms,
        )
        return _Planned(context, config, sql, terms, plan)

    def _shared_rows(self, settings: str) -> SharedRows | None:
        """The row cache of this invocation; ``None`` with a server, which would outlive it.

        :param settings: those of the sessions that share it.
        """
        if not isinstance(self._handle(), SessionConnection):
            return None
        with _SHARING:
            caches: dict[str, SharedRows] = self.__dict__.setdefault("_rows_of_this_invocation", {})
            return caches.setdefault(settings, SharedRows(settings))

    def _skipped_part(self, context: Context, model: Mapping[str, Any], sql: str) -> AutoResponse:
        """The response of a run that reads a part of its upstreams: the query is only analysed."""
        settings = settings_of_meaning(self.config.credentials, model["config"])
        if unsupported_setting(settings) is None:
            context, sql = with_relation_texts(context, texts_of(sql)), unpinned(sql)
        context.query_schema(self._auto_config(model, sql)[1])
        message = "SKIP (--empty and --sample read a part)"
        return AutoResponse(
            _message=message, code="SKIP", statement=f"-- {message}", strategy="skip", reason="partial"
        )

    def execute(self, sql: str, *args: Any, **options: Any) -> Any:
        """Run a statement of a macro, and remember what it defines for its session."""
        statement = " ".join(without_comments(sql).split()).lower()
        if defines(statement):
            self._definitions.setdefault(self._handle(), []).append(statement)
        return super().execute(sql, *args, **options)

    def _defined(self) -> Sequence[str]:
        return self._definitions.get(self._handle(), ())

    def _of_graph(
        self, graph: Mapping[str, Any], selected: Sequence[str]
    ) -> tuple[frozenset[str], Mapping[str, Sequence[Name]]]:
        """The nodes that automatic models read, and the readers of each relation.

        Computed once per invocation.
        """
        nodes = graph.get("nodes", {})
        if self._graph is None or self._graph[0] is not nodes:
            readers = automatic_readers(nodes, graph.get("sources", {}), frozenset(selected))
            self._graph = (nodes, read_by_automatic(nodes), readers)
        return self._graph[1:]

    def _declared_keys(self) -> ProjectKeys:
        """The keys that the project declares. Computed once per invocation."""
        manifest = self.get_macro_resolver()
        if self._keys is None or self._keys[0] is not manifest:
            self._keys = (manifest, project_keys(manifest))
        return self._keys[1]

    def _advise(self, name: Name, model: Mapping[str, Any], inputs: ModelInputs | None) -> None:
        root = getattr(self.config, "project_root", None)
        with as_dbt_errors():
            keys = self._declared_keys()
            settings = settings_of_meaning(self.config.credentials, model["config"])
            for advice in advice_for(self.catalog, name, model, root, keys, settings, inputs):
                _log.warning(advice_text(advice, model))

    def _auto_config(self, model: Mapping[str, Any], sql: str) -> tuple[KeyedConfig, str]:
        small_data, sql = self.config.credentials.small_data, without_end(sql)
        config = parse_config(model["name"], model["config"], small_data=small_data)
        if other_schema.current() is not None:
            # A check tests incremental refreshes, even if a full refresh would be faster.
            config = replace(config, full_refresh_above=1.0, small_data=False)
        contract = read_contract(model, config.unique_key)
        if contract is None:
            return config, sql
        warn_of_ignored(contract, self.type())
        ordered = ordered_select(contract, sql, [column.name for column in self._schema(sql)])
        return replace(config, checks=contract.checks, required=contract.required), ordered


def _is_compiled(node: Any) -> bool:
    """Whether the node is a SQL model that dbt has compiled."""
    is_sql = getattr(node, "resource_type", "") == "model" and node.language == "sql"
    return is_sql and bool(node.compiled_code)


def _response(outcome: Outcome, traffic: Traffic | None) -> ArcticResponse:
    choice = outcome.choice
    assert choice is not None
    bytes_text = (
        f", {shown_bytes(traffic.read)} read, {shown_bytes(traffic.written)} written" if traffic else ""
    )
    return AutoResponse(
        _message=outcome.message + ("" if choice.strategy == "skip" else bytes_text),
        code=choice.strategy.upper(),
        rows_affected=outcome.rows,
        jobs=None if traffic is None else traffic.jobs,
        statement=outcome.sql,
        strategy=choice.strategy,
        reason=choice.reason or None,
        keys=choice.keys,
        bytes_read=None if traffic is None else traffic.read,
        bytes_written=None if traffic is None else traffic.written,
        stages=[_stage_entry(one) for one in outcome.stages],
        fell_back=list(outcome.fell_back),
        verified=None if outcome.verified is None else asdict(outcome.verified),
    )


def _stage_entry(stage: StageRun) -> dict[str, Any]:
    """The entry of a stage in ``run_results.json``. Also writes a line to dbt's log file."""
    seconds = None if stage.seconds is None else round(stage.seconds, 3)
    rows = "" if stage.rows is None else f", {counted(stage.rows, 'row')}"
    time = "" if seconds is None else f", {seconds} s"
    _log.debug(f"{stage.relation}: {stage.stage}{rows}{time}")
    return {"relation": stage.relation, "stage": stage.stage, "seconds": seconds, "rows": stage.rows}
