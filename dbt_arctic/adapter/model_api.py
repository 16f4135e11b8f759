"""Macro methods for the properties of a model: its contract, documentation, grants and header.

Each method collects data from dbt and the catalog, and passes it to the pure functions of ``constraints`` and
``docs``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt_common.exceptions import DbtRuntimeError

from dbt_arctic.adapter import pins
from dbt_arctic.adapter.catalog_names import (
    is_known,
    refuse_model,
    refuse_reserved_name,
    refuse_upper_case,
)
from dbt_arctic.adapter.constraints import (
    contract_mismatch,
    contracted_select,
    read_contract,
    warn_of_ignored,
)
from dbt_arctic.adapter.dbt_warning import emit_warning
from dbt_arctic.adapter.docs import DocsChange, changed_docs, documented
from dbt_arctic.adapter.double_quotes import names_in_double_quotes
from dbt_arctic.adapter.grants import refuse_grants
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.model_error_position import locate_in
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.show import shown_columns
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.compaction.settings import parse_settings
from dbt_arctic.engine.lexer import split_header, split_statements, without_end
from dbt_arctic.errors import ConfigError, NameInDoubleQuotes, StatementError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import is_keyed
from dbt_arctic.refresh.comments import describe
from dbt_arctic.refresh.config import KEYED_STRATEGIES, OWN_SETTINGS, choose_strategy
from dbt_arctic.refresh.foreign_settings import (
    reject_materialization,
    reject_misspelled,
    reject_without_effect,
    settings_without_effect,
)
from dbt_arctic.refresh.history_config import check_history
from dbt_arctic.refresh.ineffective_settings import ineffective_settings, settings_for_many
from dbt_arctic.refresh.materializations import is_incremental
from dbt_arctic.refresh.schema_policy import check_full_refresh
from dbt_arctic.scheduling.settings import parse_keep
from dbt_arctic.store.other_catalogs import require_same_name
from dbt_arctic.store.view_support import require_views

DOUBLE_QUOTED = "spark.sql.ansi.doubleQuotedIdentifiers"


class ModelApi(KeyedApi):
    """The methods of the adapter for properties of models."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._warned: set[str] = set()

    def execute_macro(self, macro_name: str, *arguments: Any, **options: Any) -> Any:
        """Like dbt's implementation, except for ``dbt show``.

        Statements of a ``sql_header`` are executed first, as in a materialization, and values of types that
        dbt cannot represent are shown as strings.
        """
        if macro_name == "get_show_sql":
            options = {**options, "kwargs": self._to_show(**options["kwargs"])}
        return super().execute_macro(macro_name, *arguments, **options)

    def _to_show(self, compiled_code: str, sql_header: str | None, limit: int | None) -> dict[str, Any]:
        """The arguments of ``get_show_sql``."""
        statements, rest = split_header(sql_header)
        for statement in statements:
            self.execute(statement)
        sql = without_end(compiled_code)
        if not rest:  # the beginning of the statement may define relations that the query reads
            with as_dbt_errors():
                shown = shown_columns(self._schema(sql))
            if shown is not None:
                sql = f"select {', '.join(shown)}\nfrom (\n{sql}\n) as arctic_shown"
        return {"compiled_code": sql, "sql_header": rest or None, "limit": limit}

    @available.parse(lambda *a, **k: None)
    def require_form(self, model: Mapping[str, Any], kind: str | None, keyed: bool, partial: bool) -> None:
        """Refuse to replace a relation of the other form if its rows would be lost.

        :param kind: the kind of the existing relation, from ``relation_kind``.
        :param partial: whether the run reads a part of the rows (``--empty``, ``--sample``).
        :raises ConfigError: the model became keyed, or ceased to be, and must not be rebuilt by this run.
        """
        is_kept = model["config"].get("full_refresh") is False
        if not (is_kept or partial) or kind != ("table" if keyed else "keyed"):
            return
        key = model["config"].get("unique_key") or ()
        columns = [key] if isinstance(key, str) else key
        options = " ".join(f"--key {column}" for column in columns) if keyed else "--undo"
        adopt = f"keep its rows: dbt-arctic adopt {model['alias']} {options}"
        with as_dbt_errors():
            raise ConfigError(
                f"the table is {'plain' if keyed else 'keyed'}, and the model writes to a "
                f"{'keyed' if keyed else 'plain'} one, so it would be rebuilt",
                where=model["name"],
                why="full_refresh is false, and a rebuild has only the rows that the SQL returns now"
                if is_kept
                else "with --empty or --sample, the rebuilt table would have a part of the rows",
                fix=f"{adopt}; or remove full_refresh for a run"
                if is_kept
                else f"run the model without these options: dbt run --select {model['name']}; or {adopt}",
            )

    @available.parse(lambda *a, **k: None)
    def require_views(self, relation: ArcticRelation, model: Mapping[str, Any], what: str) -> None:
        """Refuse what needs a view on a catalog without views, before hooks and before any write."""
        with as_dbt_errors():
            require_views(self.context(), relation.name_parts, model["name"], what)

    # Names

    def _has_macro(self, name: str) -> bool:
        resolver: Any = self.get_macro_resolver()
        return any(macro.name == name for macro in resolver.macros.values())

    @available.parse(lambda *a, **k: None)
    def check_config(self, model: Mapping[str, Any]) -> None:
        """Check the config of a model."""
        from dbt.artifacts.resources import ModelConfig

        locate_in(model)
        with as_dbt_errors():
            known = {
                *OWN_SETTINGS,
                *ModelConfig.__dataclass_fields__,
                *self.AdapterSpecificConfigs.__dataclass_fields__,
            }
            settings = list(model["config"])
            reject_misspelled(model["name"], settings, sorted(known))
            reject_without_effect(model["name"], model["config"], self._has_macro)
            if is_incremental(model["config"]):
                strategy = choose_strategy(model["name"], model["config"])
                check_full_refresh(model["name"], model["config"], strategy, model["language"])
                check_history(model["name"], model["config"], strategy)
            parse_settings(model["name"], model["config"].get("compaction"))
            parse_keep(model["name"], model["config"])
            refuse_grants(model)
            refuse_model(model, self.config.credentials.catalog_names)
            refuse_upper_case(model, self.config.credentials.lower_case_catalogs)
            refuse_reserved_name(model)
            others = pins.other_reads()
            if others is not None and model.get("language") == "sql":
                code, fix = model.get("compiled_code") or "", "write it with source() or ref()"
                schema = self.config.credentials.schema
                others.refuse_names(code, schema, model["name"], fix)
                if model["config"].get("materialized") == "view":
                    others.refuse_foreign_names(_name_of(model), pins.unpinned(code), schema, model["name"])
            if others is not None:
                require_same_name(self.catalog, _name_of(model), model["name"])
        if '"' in (model.get("compiled_code") or "") and model.get("language") == "sql":
            self._warn_of_double_quotes(model)
        if model.get("package_name") == self.config.project_name:
            self._warn_of_settings(model)

    def create_schema(self, relation: BaseRelation) -> None:
        """Create a schema, unless its catalog is not in the profile: the models there are refused."""
        if is_known(relation.database, self.config.credentials.catalog_names):
            super().create_schema(relation)

    def _warn_of_settings(self, model: Mapping[str, Any]) -> None:
        """Emit a dbt warning, once per setting, for settings without effect in the root project.

        A package may have them because it supports several adapters.
        """
        where = f"{model['name']}; other models with this setting are not listed"
        of_others = settings_without_effect(where, model["config"])
        for_many = settings_for_many(getattr(self.config, f"{model.get('resource_type', 'model')}s", {}))
        for name, problem in of_others + ineffective_settings(where, model["config"], for_many):
            if name not in self._warned:
                self._warned.add(name)
                emit_warning(problem)

    @available
    @classmethod
    def refuse_materialization(cls, model: Mapping[str, Any], materialized: str) -> None:
        """Refuse a materialization of other adapters."""
        with as_dbt_errors():
            reject_materialization(model["name"], materialized)

    def _warn_of_double_quotes(self, model: Mapping[str, Any]) -> None:
        """Emit a dbt warning, once per model, for names that Spark treats as strings."""
        with as_dbt_errors():
            names = names_in_double_quotes(model["compiled_code"], self._upstream_columns(model))
            if not names or model["unique_id"] in self._warned or self._has_quoted_names(model):
                return
        self._warned.add(model["unique_id"])
        warning = NameInDoubleQuotes(
            f"Spark reads {', '.join(names)} in double quotes as a string",
            where=f"{model['name']} ({model['original_file_path']})",
            why="a string there is the same text in each row, or a syntax error; names are written in "
            "backticks or without quotes",
            fix=f"write `{names[0]}` for the name, or '{names[0]}' for the string; or set "
            f"{DOUBLE_QUOTED}: 'true' under spark_conf in the profile",
        )
        emit_warning(warning)

    def _upstream_columns(self, model: Mapping[str, Any]) -> set[str]:
        """The lower-case columns of a model's upstreams, including those of ephemeral models."""
        resolver: Any = self.get_macro_resolver()
        nodes = {**getattr(resolver, "nodes", {}), **getattr(resolver, "sources", {})}
        found: set[str] = set()
        waiting, seen = list(model["depends_on"]["nodes"]), set()
        while waiting:
            node = nodes.get(waiting.pop())
            if node is None or node.unique_id in seen:
                continue
            seen.add(node.unique_id)
            if getattr(node, "is_ephemeral_model", False):
                waiting += node.depends_on.nodes
            elif node.schema and is_known(node.database, self.config.credentials.catalog_names):
                name = node.schema, node.identifier
                reader = self.catalog.of(Name(node.database, *name))
                state = reader.load_table(*name) or reader.load_view(*name)
                found |= {column.name.lower() for column in state.columns} if state else set()
        return found

    def _has_quoted_names(self, model: Mapping[str, Any]) -> bool:
        """Whether double quotes enclose names in the session of a model."""
        config = model["config"]
        settings = [config.get("sql_header"), config.get("pre-hook"), config.get("pre_hook")]
        if DOUBLE_QUOTED.lower() in str(settings).lower():
            return True
        conf = self._handle().session.conf
        return all(conf.get(key, "false") == "true" for key in (DOUBLE_QUOTED, "spark.sql.ansi.enabled"))

    # Contracts

    @available.parse(lambda *a, **k: None)
    def contract_mismatch(self, model: Mapping[str, Any], sql: str, declared_sql: str) -> Any:
        """The columns of the contract and the query, if they differ.

        :param declared_sql: a query with the columns and types of the contract.
        """
        with as_dbt_errors():
            keyed = _is_keyed_model(model)
            try:
                declared = self._schema(declared_sql)
            except StatementError:
                self._refuse_types(model)
                raise
            return contract_mismatch(declared, self._schema(without_end(sql)), keyed)

    def _refuse_types(self, model: Mapping[str, Any]) -> None:
        """Refuse types in a contract that Spark does not support.

        :raises ConfigError: the contract has a type that Spark does not support.
        """
        for column in model["columns"].values():
            try:
                self._schema(f"SELECT CAST(NULL AS {column['data_type']}) AS a")
            except StatementError as error:
                raise ConfigError(
                    f"the contract's type of the column {column['name']} is not a Spark type: "
                    f"{column['data_type']}",
                    where=model["name"],
                    why=error.why or error.what,
                    fix="write it as Spark does, for instance: "
                    "decimal(10,2), array<string>, struct<city:string,zip:int>",
                ) from error

    @available.parse(lambda *a, **k: "")
    def contracted_sql(self, model: Mapping[str, Any], sql: str, stored: Sequence[str] | None = None) -> str:
        """The SQL of a plain model under its contract: columns in order, each row checked."""
        with as_dbt_errors():
            contract = read_contract(model)
            if contract is None:
                return sql
            warn_of_ignored(contract, self.type())
            return contracted_select(contract, model, without_end(sql), stored)

    # Documentation

    @available.parse(lambda *a, **k: DocsChange())
    def changed_docs(
        self, relation: ArcticRelation, model: Mapping[str, Any], for_relation: bool, for_columns: bool
    ) -> DocsChange:
        """The comments that must be written to match the model's documentation, from metadata."""
        if not (for_relation or for_columns):
            return DocsChange()
        name = (relation.schema or "", relation.identifier or "")
        with as_dbt_errors():
            reader = self.catalog.of(relation.name_parts)
            table = reader.load_table(*name)
            if table is not None:
                comment = table.properties.get("comment", "")
                return changed_docs(model, comment, table.columns, for_relation, for_columns)
            view = reader.load_view(*name)
            if view is None:
                return DocsChange()
            return changed_docs(model, view.comment, view.columns, for_relation, for_columns)

    @available.parse(lambda *a, **k: False)
    def describe_keyed(
        self, relation: ArcticRelation, model: Mapping[str, Any], for_relation: bool, for_columns: bool
    ) -> bool:
        """Write the changed comments of a keyed table; ``False`` for any other relation."""
        with as_dbt_errors():
            name = relation.name_parts
            view = self.catalog.of(name).load_view(name.schema, name.identifier)
            if view is None or not is_keyed(view.properties):
                return False
            names = [column.name for column in view.columns]
            found, _ = documented(model.get("columns") or {}, names)
            comment = str(model.get("description") or "") if for_relation else None
            describe(self.context(), relation.name_parts, comment, found if for_columns else {})
        return True

    @available
    @classmethod
    def documented_columns(cls, model: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
        """The descriptions of a model's columns, by the names of its SQL."""
        return documented(model.get("columns") or {}, names)[0]

    # Grants

    @available
    @classmethod
    def refuse_grants(cls, model: Mapping[str, Any]) -> None:
        """Refuse a model with grants."""
        with as_dbt_errors():
            refuse_grants(model)

    # Headers

    @available.parse(lambda *a, **k: ([], ""))
    def header_to_run(self, header: str | None) -> tuple[list[str], str]:
        """Split a ``sql_header`` with ``split_header``, without statements that this session has already run.

        Declaring a variable twice would be an error.
        """
        statements, rest = split_header(header)
        if not (header and statements):
            return [], rest
        with as_dbt_errors():
            ran = _HEADERS.setdefault(self._handle(), set())
        if header in ran:
            return [], rest
        ran.add(header)
        return statements, rest

    @available
    @classmethod
    def without_end(cls, sql: str) -> str:
        """A query without a semicolon at its end, for use inside another statement."""
        return without_end(sql)

    @available.parse(lambda *a, **k: None)
    def run_hook(self, sql: str, name: str) -> None:
        """Run the statements of a model's hook in order.

        :param name: the name of the hook in errors: ``post-hook 2 of orders``.
        """
        try:
            for statement in split_statements(sql):
                self.execute(statement, auto_begin=False, fetch=False)
        except DbtRuntimeError as error:
            error.msg = f"{error.msg}\n  hook:  {name}"
            raise


_HEADERS: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""The headers that a session has run."""


def _name_of(model: Mapping[str, Any]) -> Name:
    return Name(model["database"], model["schema"], model["alias"])


def _is_keyed_model(model: Mapping[str, Any]) -> bool:
    config = model["config"]
    strategy = choose_strategy(model["name"], config) if is_incremental(config) else ""
    return strategy in KEYED_STRATEGIES and bool(config.get("unique_key"))
