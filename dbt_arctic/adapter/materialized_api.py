"""Macro methods for ``materialized_view``, ``streaming_table`` and ``on_schema_change: full_refresh``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from dbt.adapters.base.meta import available
from dbt.compilation import Compiler
from dbt_common.contracts.constraints import ConstraintType

from dbt_arctic.adapter.model_api import ModelApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.engine.lexer import without_end
from dbt_arctic.errors import ConfigError, SchemaChanged
from dbt_arctic.keyed.create import base_defaults
from dbt_arctic.keyed.table import ACTION, Column
from dbt_arctic.refresh.config import parse_config, writes_keyed
from dbt_arctic.refresh.event_time import refuse_pull
from dbt_arctic.refresh.materializations import (
    STREAMING_TABLE,
    ConfigurationChange,
    choose_action,
    mark,
    require_pull,
    takes_part,
)
from dbt_arctic.refresh.replacement import kind_of
from dbt_arctic.refresh.schema_policy import FULL_REFRESH, needs_rebuild
from dbt_arctic.refresh.table_properties import property_changes
from dbt_arctic.refresh.upsert import changed_settings
from dbt_arctic.store.state import find_keyed, load_base, to_columns


class MaterializedApi(ModelApi):
    """The methods of the adapter for these words."""

    @available.parse(lambda *a, **k: "create")
    def materialized_view_action(
        self, this: ArcticRelation, model: Mapping[str, Any], full_refresh: bool
    ) -> str:
        """What a run does with a materialized view, see ``refresh.materializations``."""
        with as_dbt_errors():
            settings = model["config"]
            action = choose_action(
                kind_of(self.catalog, this.name_parts),
                self._changed_configuration(this, model),
                str(
                    getattr(settings["on_configuration_change"], "value", settings["on_configuration_change"])
                ),
                full_refresh=full_refresh,
                may_rebuild=settings.get("full_refresh") is not False,
            )
        if action == "replace":
            self._thread_pulls.rebuilt = model["unique_id"]
        return action

    def _changed_configuration(self, this: ArcticRelation, model: Mapping[str, Any]) -> ConfigurationChange:
        table = find_keyed(self.catalog, this.name_parts)
        if table is None:
            return ConfigurationChange()
        config = parse_config(model["name"], model["config"])
        stored = load_base(self.catalog, table).properties
        properties = property_changes(stored, config.tblproperties, base_defaults(table.layout))
        altered = (*properties.changed, *properties.removed)
        return ConfigurationChange(altered, tuple(changed_settings(config, table)))

    @available.parse(lambda *a, **k: None)
    def mark_materialized(self, relation: ArcticRelation, model: Mapping[str, Any]) -> None:
        """Record whether a keyed table is a materialized view."""
        with as_dbt_errors():
            mark(self.context(), relation.name_parts, str(model["config"].get("materialized")))

    @available.parse(lambda *a, **k: None)
    def require_pull(self, model: Mapping[str, Any], partial: bool) -> None:
        """Refuse a streaming table that pulls nothing. With ``--empty`` and ``--sample``, none pulls."""
        if model["config"].get("materialized") == STREAMING_TABLE and not partial:
            with as_dbt_errors():
                require_pull(model["name"], bool(self._pulls().upstreams(model["unique_id"])))

    # A rebuild that a run decides on

    @available.parse(lambda *a, **k: False)
    def is_rebuilt(self, model: Mapping[str, Any]) -> bool:
        """Whether the run of a model rebuilds its table without ``--full-refresh``."""
        return getattr(self._thread_pulls, "rebuilt", "") == model.get("unique_id")

    @available.parse(lambda *a, **k: False)
    def has_other_columns(
        self, relation: ArcticRelation, model: Mapping[str, Any], sql: str, partial: bool
    ) -> bool:
        """Whether the table must be rebuilt by ``on_schema_change: full_refresh``.

        :raises SchemaChanged: with ``--empty`` or ``--sample``, a rebuilt table would lose its rows.
        """
        if model["config"].get("on_schema_change") != FULL_REFRESH:
            return False
        with as_dbt_errors():
            name = relation.name_parts
            at = name.schema, name.identifier
            state = self.catalog.of(name).load_table(*at) or self.catalog.of(name).load_view(*at)
            if state is None:
                return False
            statements, rest = self.header_to_run(model["config"].get("sql_header"))
            for statement in statements:
                self.execute(statement)
            keyed = writes_keyed(model["name"], model["config"])
            produced = [
                Column(column, type_)
                for column, type_ in self._schema(f"{rest}\n{without_end(sql)}")
                if not (keyed and column.lower() == ACTION)
            ]
            difference = needs_rebuild(to_columns(state.columns), produced)
            if difference and partial:
                raise SchemaChanged(
                    "the model's columns differ from the table's",
                    where=model["name"],
                    why=f"{difference.describe()}; on_schema_change is 'full_refresh', and with --empty or "
                    "--sample the rebuilt table would lose rows",
                    fix=f"run the model without these options: dbt run --select {model['name']}",
                )
        return bool(difference)

    @available.parse(lambda *a, **k: None)
    def read_part(self, model: Mapping[str, Any], outside: bool) -> None:
        """Record that a run of a model reads a part of what it pulls (``--empty``, ``--sample``).

        :param outside: whether it pulls from a source outside the catalog.
        """
        with as_dbt_errors():
            refuse_pull(model)
        self._pulls().read_part(model["unique_id"], outside=outside)

    @available.parse(lambda *a, **k: False)
    def was_part(self, model: Mapping[str, Any]) -> bool:
        """Whether a model that pulls has a table that was written with ``--empty`` or ``--sample``.

        :raises ConfigError: it has, and must not be rebuilt.
        """
        found = self._pulls().was_part(model["unique_id"])
        if found and model["config"].get("full_refresh") is False:
            with as_dbt_errors():
                raise ConfigError(
                    "the table was written with --empty or --sample, so it would be rebuilt",
                    where=model["name"],
                    why="full_refresh is false, and a rebuild has only the rows that the SQL returns now",
                    fix=f"remove full_refresh for one run: dbt run --select {model['name']}",
                )
        return found

    @available.parse(lambda *a, **k: False)
    def keeps_table(self, model: Mapping[str, Any]) -> bool:
        """Whether a run that reads a part leaves an existing table as it is.

        A rebuild would correct the table, but cannot read what no longer exists in a source outside the
        catalog: files, messages.
        """
        pulls, unique_id = self._pulls(), model["unique_id"]
        takes = takes_part(model["config"]) and not pulls.reads_outside(unique_id)
        return pulls.reads_part(unique_id) and not takes

    @available.parse(lambda *a, **k: "")
    def code_of_rebuild(self, model: Mapping[str, Any]) -> str:
        """Compile a model once more, as for a full refresh, and return its SQL.

        What the first compilation pulls is discarded: a rebuild pulls every row.
        """
        for drop in self._pulls().clear():
            self._run("drop_staging", drop)
        self._thread_pulls.rebuilt = model["unique_id"]
        manifest: Any = self.get_macro_resolver()
        node = copy.deepcopy(manifest.nodes[model["unique_id"]])
        node.compiled, node.compiled_code = False, None
        node.extra_ctes_injected, node.extra_ctes = False, []
        # dbt would compile the targets of foreign keys again, which are compiled already.
        for owner in (node, *node.columns.values()):
            owner.constraints = [one for one in owner.constraints if one.type != ConstraintType.foreign_key]
        compiled = Compiler(self.config).compile_node(node, manifest, {}, write=False)
        return str(compiled.compiled_code)

    def post_model_hook(self, config: Mapping[str, Any], context: Any) -> None:
        """Forget that the run of the model rebuilt its table."""
        self._thread_pulls.rebuilt = ""
        super().post_model_hook(config, context)
