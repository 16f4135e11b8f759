"""Macro methods for snapshots: thin methods over ``snapshots`` and ``refresh``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dbt.adapters.base.meta import available

from dbt_arctic.adapter.column import ArcticColumn, as_columns, values_of_stored_types
from dbt_arctic.adapter.connections import ArcticResponse
from dbt_arctic.adapter.plain_api import PlainApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.snapshots import (
    checked_columns,
    column_or_sql,
    ended_rows,
    has_changed,
    is_newer,
    key_expression,
    known_deletions,
    time_type,
    unique_ids,
    unique_rows,
    without_deletions,
)
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.checks import EXACT_JSON
from dbt_arctic.refresh import plain
from dbt_arctic.refresh.batch import require_no_metadata_columns
from dbt_arctic.refresh.plain_columns import evolve_snapshot, snapshot_columns
from dbt_arctic.refresh.plain_config import of_snapshot
from dbt_arctic.refresh.snapshot_times import OwnColumns
from dbt_arctic.refresh.valid_to_current import keep_current_end


class SnapshotApi(PlainApi):
    """The methods of the adapter for snapshots."""

    @available.parse(lambda *a, **k: {})
    def evolve_snapshot(
        self,
        queried: Sequence[ArcticColumn],
        target: ArcticRelation,
        model: Mapping[str, Any],
        strategy: Mapping[str, Any],
        names: Mapping[str, str],
        sql: str,
    ) -> dict[str, str]:
        """Add the new fields and wider types of its query to a snapshot.

        :param names: the names of the snapshot's own columns, by dbt's names.
        :param sql: the query of the snapshot, and ``queried`` its columns.
        :returns: SQL of the query's columns as the snapshot stores them, by lower-case name.
        """
        with as_dbt_errors():
            name, produced = target.name_parts, as_columns(queried)
            stored = as_columns(cast(Any, self).get_columns_in_relation(target))
            after, _ = snapshot_columns(model["name"], stored, produced)
            values = values_of_stored_types(model["name"], queried, after)
            types = {column.name.lower(): column.type for column in after}
            own = self._own_columns(model, strategy, names, queried, types, values, sql)
            state = self.catalog.of(name).load_table(name.schema, name.identifier)
            own.refuse_other_types(stored, state)
            given = (*produced, *own.as_stored(stored))
            evolve_snapshot(self.context(), name, model["name"], stored, given)
            return values

    @available.parse(lambda *a, **k: "")
    def check_snapshot_partitions(self, model: Mapping[str, Any], target: ArcticRelation) -> str:
        """A warning if ``partition_by`` is not the partitioning of a snapshot, or an empty string."""
        return cast(str, self.check_partitions(of_snapshot(model["name"], model["config"]), target))

    def _own_columns(
        self,
        model: Mapping[str, Any],
        strategy: Mapping[str, Any],
        names: Mapping[str, str],
        queried: Sequence[ArcticColumn],
        stored: Mapping[str, str],
        values: Mapping[str, str],
        sql: str,
    ) -> OwnColumns:
        """The columns that a run adds to the query. Spark analyses those whose types are not known."""
        updated_at, scd_id = strategy["updated_at"].strip(), strategy["scd_id"].strip()
        types = {column.quoted: stored.get(column.name.lower(), column.dtype) for column in queried}
        time = {"current_timestamp()": "timestamp", **types}.get(updated_at)
        if time is None or not scd_id.startswith("md5("):
            selected = [
                f"{values.get(column.name.lower(), column.quoted)} AS {column.quoted}" for column in queried
            ]
            source = f"SELECT {', '.join(selected)}\nFROM (\n{sql}\n)"
            found = self._schema(
                f"SELECT {updated_at} AS arctic_time, {scd_id} AS arctic_id\nFROM (\n{source}\n)"
            )
            time, id_type = found[0].type, found[1].type
        else:
            id_type = "string"
        return OwnColumns(
            model["name"],
            names,
            updated_at,
            time,
            id_type,
            strategy.get("hard_deletes") or "ignore",  # a project's own strategy may lack it
            model["config"].get("dbt_valid_to_current"),
        )

    @available.parse(lambda *a, **k: {})
    def snapshot_columns(
        self, strategy: Mapping[str, Any], queried: Sequence[ArcticColumn]
    ) -> dict[str, str | list[str]]:
        """The key and ``updated_at`` of a strategy, with columns of the query in backticks.

        Empty if that changes nothing.
        """
        names = [column.name for column in queried]
        key, updated_at = strategy["unique_key"], strategy["updated_at"]
        quoted: dict[str, str | list[str]] = {
            "unique_key": column_or_sql(key, names)
            if isinstance(key, str)
            else [column_or_sql(part, names) for part in key],
            "updated_at": column_or_sql(updated_at, names),
        }
        return quoted if quoted != {"unique_key": key, "updated_at": updated_at} else {}

    @available.parse(lambda *a, **k: None)
    def stage_snapshot(
        self, this: ArcticRelation, sql: str, queried: Sequence[ArcticColumn], model: Mapping[str, Any]
    ) -> plain.StagedRows:
        """Run the query of a snapshot, and store its rows until the snapshot is done.

        dbt's SQL contains the query several times. If it returned other rows each time, the snapshot would
        close a row by one and add another.
        """
        schema = [ColumnInfo(column.name, column.dtype) for column in queried]
        with as_dbt_errors():
            require_no_metadata_columns(model["name"], [column.name for column in queried])
            target = this.name_parts
            state = self.catalog.of(target).load_table(target.schema, target.identifier)
            return self._stage(target, state, f"(\n{sql}\n)", schema, {})

    @available.parse(lambda *a, **k: None)
    def create_snapshot(
        self, built: ArcticRelation, model: Mapping[str, Any], statement: str
    ) -> ArcticResponse:
        """Execute the first build of a snapshot."""
        creates = built.name_parts if built.is_new else None
        with as_dbt_errors():
            context = self.context(self._run_id(model["unique_id"]))
            return self.response_of(plain.execute_first_build(context, {}, statement, creates=creates))

    @available.parse(lambda *a, **k: {})
    def snapshot_strategy(
        self,
        strategy: Mapping[str, Any],
        model: Mapping[str, Any],
        columns: Mapping[str, str],
        queried: Sequence[ArcticColumn],
        target: ArcticRelation | None,
    ) -> dict[str, Any]:
        """dbt's strategy, with a key and a comparison that support NULL and every type.

        :param columns: the names of the snapshot's own columns, by dbt's names.
        :param queried: the columns of the snapshot's query.
        :param target: ``None`` if the snapshot does not exist yet.
        """
        settings, names = model["config"], [column.name for column in queried]
        with as_dbt_errors():
            changed = strategy["row_changed"]
            if settings.get("strategy") == "check":
                checked = checked_columns(model["name"], settings.get("check_cols") or (), names)
                if target is not None:
                    stored = cast(Any, self).get_columns_in_relation(target)
                    changed = has_changed(checked, queried, stored)
            elif settings.get("strategy") == "timestamp":
                changed = is_newer(columns)
            key = key_expression(strategy["unique_key"], names)
            return {**strategy, "row_changed": changed, "unique_key": key}

    @available.parse(lambda *a, **k: "")
    def snapshot_time_type(
        self,
        model: Mapping[str, Any],
        strategy: Mapping[str, Any],
        sql: str,
        queried: Sequence[ArcticColumn],
        target: ArcticRelation | None,
        valid_from: str,
    ) -> str:
        """The type of the times of a snapshot; empty for TIMESTAMP. See ``time_type``.

        :param sql: the query of the snapshot.
        :param queried: its columns.
        :param target: ``None`` if the snapshot does not exist yet.
        :param valid_from: its column of the start of a record.
        """
        if not model["config"].get("updated_at"):
            return ""
        stored = {} if target is None else self._types_of(target)
        updated_at = strategy["updated_at"]
        with as_dbt_errors():
            types = {column.quoted: column.dtype for column in queried}
            type_ = types.get(updated_at) or self._schema(f"SELECT {updated_at}\nFROM (\n{sql}\n)")[0].type
            hard_deletes = strategy.get("hard_deletes") or "ignore"  # a project's own strategy may lack it
            found = time_type(model["name"], model["config"]["updated_at"], type_, hard_deletes)
            there = stored.get(valid_from.strip("`").lower(), "")
            # Cut to a day, the time of the run could be before the start of the record that it ends.
            return {"timestamp": "", "timestamp_ntz": there}.get(there, found) if found == "date" else found

    @available.parse(lambda *a, **k: "")
    def known_deletions(self, rows: str, is_deleted: str) -> str:
        """The rows that a snapshot writes, in which a record without a mark is not a deleted one."""
        return known_deletions(rows, is_deleted)

    @available.parse(lambda *a, **k: "")
    def ended_rows(self, rows: str, target: ArcticRelation, valid_to: str, now: str) -> str:
        """The rows that a snapshot writes, in which each record that is replaced has an end."""
        types = self._types_of(target)
        return ended_rows(rows, valid_to, f"CAST({now} AS {types.get(valid_to.lower(), 'TIMESTAMP')})")

    def _types_of(self, relation: ArcticRelation) -> dict[str, str]:
        columns = cast(Any, self).get_columns_in_relation(relation)
        return {column.name.lower(): column.dtype for column in columns}

    @available.parse(lambda *a, **k: None)
    def keep_current_end(
        self, relation: ArcticRelation, model: Mapping[str, Any], valid_to: str, end: str | None
    ) -> None:
        """Refuse another ``dbt_valid_to_current`` than that of a snapshot's current records."""
        with as_dbt_errors():
            keep_current_end(self.context(), relation.name_parts, valid_to, end, model["name"])

    @available.parse(lambda *a, **k: "")
    def without_deletions(self, rows: str, is_deleted: str | None) -> str:
        """The rows that a snapshot writes if its query reads a part of its upstreams."""
        return without_deletions(rows, is_deleted)

    @available.parse(lambda *a, **k: "")
    def exact_json_options(self) -> str:
        """SQL of the options of ``to_json`` with which different values have different texts."""
        return EXACT_JSON

    @available.parse(lambda *a, **k: "")
    def unique_ids(self, rows: str, target: ArcticRelation, scd_id: str, other_id: str) -> str:
        """The rows that a snapshot writes, in which no new record has the id of a stored one."""
        return unique_ids(rows, str(target), scd_id, other_id)

    @available.parse(lambda *a, **k: "")
    def unique_rows(
        self, rows: str, source: str, model: Mapping[str, Any], queried: Sequence[ArcticColumn]
    ) -> str:
        """The rows that a snapshot writes. The statement fails if two rows of its query share a key."""
        key = model["config"]["unique_key"]
        return unique_rows(rows, source, key, [column.name for column in queried], model["name"])
