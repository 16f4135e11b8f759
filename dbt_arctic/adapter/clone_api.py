"""Macro methods for clones. As in ``keyed_api``, no decision is made here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dbt.adapters.base.meta import available

from dbt_arctic.adapter import pins
from dbt_arctic.adapter.catalog_names import is_known, refuse_reserved_name
from dbt_arctic.adapter.connections import ArcticResponse
from dbt_arctic.adapter.constraints import read_contract
from dbt_arctic.adapter.keyed_api import KeyedApi, _response
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.idempotency_keys import carried_keys
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh import build, clone, plain
from dbt_arctic.refresh.config import parse_config
from dbt_arctic.refresh.materializations import configured_strategy
from dbt_arctic.store.rejected_table import rejected_name


class CloneApi(KeyedApi):
    """The methods of the adapter for clones."""

    @available.parse(lambda *a, **k: "")
    def clone_property(self, source: ArcticRelation, model: Mapping[str, Any]) -> str:
        """The property that makes a view over ``source`` a clone; empty for an ordinary view."""
        if not is_known(source.database, self.config.credentials.catalog_names):
            return ""
        with as_dbt_errors():
            refuse_reserved_name(model)
            others = pins.other_reads()
            if others is not None:
                self._refuse_across(source.name_parts, model)
            if others is not None and others.text_of(source.name_parts) is not None:
                raise ConfigError(
                    f"{source.name_parts} cannot be cloned",
                    where=model["name"],
                    why="a clone is a view, and its source is read through a catalog of another name",
                    fix=f"build it: dbt run --select {model['name']}",
                )
            return clone.property_for(self.catalog, source.name_parts, model["name"])

    def _refuse_across(self, source: Name, model: Mapping[str, Any]) -> None:
        """Refuse a clone in another catalog than the profile's own, if its source is not in that one."""
        own, target = self.config.credentials.database, str(model["database"])
        if target.lower() in (own.lower(), source.catalog.lower()):
            return
        raise ConfigError(
            f"{source} cannot be cloned into the catalog {target}",
            where=model["name"],
            why="a clone is a view, and other projects may have other names for the catalog of its source",
            fix=f"build it: dbt run --select {model['name']}",
        )

    @available.parse(lambda *a, **k: None)
    def cloned_rows(self, this: ArcticRelation, model: Mapping[str, Any]) -> clone.ClonedRows:
        """The rows with which a clone becomes a separate table, at one version."""
        with as_dbt_errors():
            clone.refuse_history_clone(model["name"], configured_strategy(model["config"]))
            rows = clone.cloned_rows(self.catalog, this.name_parts, model["name"])
            last_consumed = self._pulls().last_consumed(model["unique_id"])
            own = {rejected_name(this.name_parts)}  # the first rows that are rejected change nothing
            unsuitable = [
                upstream
                for upstream in self._pulls().read_first(model["unique_id"]) - own
                if upstream.dotted not in last_consumed
                and clone.cloned_from(self.catalog, upstream, last_consumed) is None
            ]
            clone.reject_other_upstreams(rows, unsuitable, model["name"])
            return rows

    @available.parse(lambda *a, **k: None)
    def build_keyed_from_clone(
        self, this: ArcticRelation, model: Mapping[str, Any], rows: clone.ClonedRows
    ) -> ArcticResponse:
        """Build the first generation of a clone that becomes a keyed table."""
        with as_dbt_errors():
            # The cloned rows are merged already: one row per key, and deletes only if they are included
            # explicitly.
            config = replace(
                parse_config(model["name"], model["config"]), delete_when=None, deduplicate_by=()
            )
            contract = read_contract(model, config.unique_key)
            if contract is not None:
                # The current query of the model may have columns that the cloned rows lack.
                columns = {column.name.lower() for column in self._schema(rows.sql)}
                required = tuple(name for name in contract.required if name.lower() in columns)
                config = replace(config, required=required)
            _, outcome = build.build_generation(
                self.context(self._run_id(model["unique_id"])),
                this.name_parts,
                config,
                rows.sql_for(config),
                rows.consumed,
                owner=model["unique_id"],
                comment=self.table_comment(model),
                column_comments=self.column_comments(model),
                notes=carried_keys(rows.keys) if rows.keys else None,
            )
        return _response(outcome)

    @available.parse(lambda *a, **k: None)
    def build_plain_from_clone(
        self, model: Mapping[str, Any], rows: clone.ClonedRows, statement: str
    ) -> ArcticResponse:
        """Create the table that replaces a clone, with the upstream versions that its source had consumed."""
        with as_dbt_errors():
            context = self.context(self._run_id(model["unique_id"]))
            return _response(
                plain.execute_first_build(
                    context, rows.consumed, statement, carried_keys(rows.keys) if rows.keys else {}
                )
            )
