"""Macro methods for plain tables and seeds: settings, stored values, staged rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timezone
from typing import Any, cast

from dbt.adapters.base.meta import available
from dbt_common.invocation import get_invocation_started_at

from dbt_arctic.adapter.column import ArcticColumn, as_columns, stored_values, values_of_stored_types
from dbt_arctic.adapter.connections import ArcticResponse
from dbt_arctic.adapter.dbt_warning import emit_warning
from dbt_arctic.adapter.keyed_api import KeyedApi
from dbt_arctic.adapter.project_macros import is_written_by_project
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.catalog.api import TableState
from dbt_arctic.catalog.partition_names import has_ambiguous_name, with_default_name
from dbt_arctic.compaction.rewrite import has_old_files, may_have_old_files
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.keyed.create import base_defaults, leave_float_statistics_out
from dbt_arctic.keyed.float_statistics import no_float_statistics
from dbt_arctic.keyed.layout import (
    partition_column,
    partition_field,
    require_columns,
    same_fields,
    with_columns_of,
)
from dbt_arctic.keyed.log import PROPERTY_RUN
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.schema_difference import compare_columns
from dbt_arctic.keyed.table import Column
from dbt_arctic.refresh import plain
from dbt_arctic.refresh.batch import require_no_metadata_columns
from dbt_arctic.refresh.consumed_versions import has_pulled
from dbt_arctic.refresh.partition_column_types import gets_other_partition_values
from dbt_arctic.refresh.plain_columns import EvolvedColumns, drop_last, evolve_plain
from dbt_arctic.refresh.plain_config import (
    PlainConfig,
    check_named_columns,
    check_partitions,
    check_predicates,
    parse_plain,
    refuse_old_files,
)
from dbt_arctic.refresh.small_files_warning import many_small_files, newest_commits
from dbt_arctic.refresh.table_properties import (
    TABLE_DEFAULTS,
    apply_properties,
    is_older_format,
    refuse_older_format,
    unset_statistics_of_missing,
)
from dbt_arctic.store.state import find_keyed


def _properties_of(model: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in (model["config"].get("tblproperties") or {}).items()}


def _partition_fields(
    partition_by: str | list[str] | None, columns: Sequence[ColumnInfo] | None, model: str
) -> list[str]:
    """``partition_by`` as DDL.

    :param columns: the columns of the query, if they are known. Spark looks the columns of transforms up
        case-sensitively, so they are spelled as the query spells them.
    :raises ConfigError: the query lacks a column.
    """
    fields = [partition_by] if isinstance(partition_by, str) else list(partition_by or [])
    if columns is not None:
        names = [column.name for column in columns]
        fields = list(with_columns_of(fields, names))
        require_columns(model, "partition_by", map(partition_column, fields), names)
    return [partition_field(text) for text in fields]


@dataclass(frozen=True)
class PlainBatch:
    """A batch of a plain table whose columns were changed for it.

    :param values: SQL of its columns as the table stores them, by lower-case name. Those of the key have the
        types of the table, so that keys of the batch and of the table are compared as stored.
    :param changed: the columns of the table; ``None`` if nothing is written.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    changed: EvolvedColumns | None = None


class PlainApi(KeyedApi):
    """The methods of the adapter for plain tables."""

    @available.parse(lambda *a, **k: None)
    def plain_config(self, model: Mapping[str, Any], strategy: str) -> PlainConfig:
        """The settings of a plain incremental model. Raises an error if one has no effect."""
        with as_dbt_errors():
            return parse_plain(model["name"], strategy, model["config"])

    @available.parse(lambda *a, **k: None)
    def check_plain_model(self, config: PlainConfig, columns: Sequence[ArcticColumn]) -> None:
        """Raise an error if a setting names a column that a batch lacks."""
        with as_dbt_errors():
            check_named_columns(config, [column.name for column in columns])

    @available.parse(lambda *a, **k: None)
    def check_predicates(
        self, config: PlainConfig, columns: Sequence[ArcticColumn], this: ArcticRelation
    ) -> None:
        """Raise an error if Spark would reject a predicate in the next run."""
        types = {column.name: column.dtype for column in columns}
        with as_dbt_errors():
            check_predicates(config, types, this.name_parts, self._schema)

    @available.parse(lambda *a, **k: "")
    def check_partitions(self, config: PlainConfig, target: ArcticRelation) -> str:
        """Check ``partition_by`` against the table.

        Returns a warning if it differs, and raises an error if rows would be lost.
        """
        with as_dbt_errors():
            name = target.name_parts
            state = self.catalog.of(name).load_table(name.schema, name.identifier)
            if state is None:
                return ""
            warning = check_partitions(config, state.partitioning)
            replaces = config.strategy == "insert_overwrite" and config.partition_by
            if replaces and may_have_old_files(state) and has_old_files(self.context(), name, state):
                refuse_old_files(config, name)
            return warning

    @available.parse(lambda *a, **k: False)
    def was_partitioned(self, target: ArcticRelation) -> bool:
        """Whether a table has a partition field, or had one."""
        with as_dbt_errors():
            state = self._state(target.name_parts)
            return state is not None and bool(state.partition_fields)

    @available.parse(lambda *a, **k: True)
    def is_replaceable(
        self, target: ArcticRelation, partition_by: str | list[str] | None, sql: str | None, model: str
    ) -> bool:
        """Whether CREATE OR REPLACE may put a query in the place of a table. If not, a new table is needed.

        :param sql: the query; ``None`` if Spark cannot analyze it yet.
        """
        with as_dbt_errors():
            columns = None if sql is None else self._schema(sql)
            fields = map(with_default_name, same_fields(_partition_fields(partition_by, columns, model)))
            state = self._state(target.name_parts)
            if state is None:
                return True
            if has_ambiguous_name((*state.partition_fields, *fields)):
                return False
            produced = [Column(one.name, one.type) for one in columns or ()]
            return not gets_other_partition_values(state, produced)

    @available.parse(lambda *a, **k: [])
    def partition_fields(
        self, partition_by: str | list[str] | None, columns: Sequence[ColumnInfo] | None, model: str
    ) -> list[str]:
        """``partition_by`` as DDL, with quoted columns.

        :param columns: those of the query of the table; ``None`` if Spark cannot analyze it yet.
        """
        with as_dbt_errors():
            return _partition_fields(partition_by, columns, model)

    @available.parse(lambda *a, **k: None)
    def begin_plain_write(
        self,
        this: ArcticRelation,
        model: Mapping[str, Any],
        statements: int,
        staged: plain.StagedRows | None = None,
    ) -> plain.PlainWrite:
        """Prepare a write to a plain table.

        :param staged: the rows to write, if they were staged.
        """
        pulls = self._pulls()
        return plain.begin_plain_write(
            self.context(),
            this.name_parts,
            statements=statements,
            last_consumed=pulls.last_consumed(model["unique_id"]),
            consumed=pulls.consumed(model["unique_id"]),
            staged=staged,
        )

    @available.parse(lambda *a, **k: None)
    def execute_plain_write(
        self, write: plain.PlainWrite, model: Mapping[str, Any], statements: Sequence[str]
    ) -> ArcticResponse:
        """Execute a write to a plain table."""
        with as_dbt_errors():
            context = self.context(self._run_id(model["unique_id"]))
            return self.response_of(plain.execute_plain_write(context, write, statements))

    @available.parse(lambda *a, **k: None)
    def execute_first_build(
        self, model: Mapping[str, Any], statement: str, built: ArcticRelation
    ) -> ArcticResponse:
        """Execute the first build of a plain table, or a rebuild.

        :param built: the relation that the statement creates or replaces.
        """
        with as_dbt_errors():
            unique_id, pulls = model["unique_id"], self._pulls()
            pulls.require_everything(unique_id, model["name"])
            context = self.context(self._run_id(unique_id))
            consumed = pulls.consumed(unique_id)
            creates = built.name_parts if built.is_new else None
            notes = {}
            if not consumed and creates is None and has_pulled(self.catalog, built.name_parts):
                # The next run that pulls must see that no other program has replaced the table.
                notes[PROPERTY_RUN] = context.run_id
            return self.response_of(
                plain.execute_first_build(context, consumed, statement, notes, creates=creates)
            )

    @available.parse(lambda *a, **k: None)
    def stage_batch(
        self, this: ArcticRelation, batch: str, columns: Sequence[ArcticColumn]
    ) -> plain.StagedRows:
        """Store the current rows of a relation in a table until the model is done.

        Otherwise each statement would compute them again, possibly with different results.

        :param batch: SQL of the relation, which has these columns.
        """
        with as_dbt_errors():
            target = this.name_parts
            state = self.catalog.of(target).load_table(target.schema, target.identifier)
            stored = {} if state is None else {column.name.lower(): column.type for column in state.columns}
            schema = [ColumnInfo(column.name, column.dtype) for column in columns]
            rows = self._stage(target, state, batch, schema, stored)
            return replace(rows, again=plain.stage(rows.name, batch, schema, stored, again=True))

    def _stage(
        self,
        target: Name,
        state: TableState | None,
        batch: str,
        schema: Sequence[ColumnInfo],
        stored: Mapping[str, str],
    ) -> plain.StagedRows:
        """Stage rows. The state of the target is that of before they are read."""
        context = self.context()
        staging = target.sibling(f"{target.identifier}__pull_{context.new_txn()}")
        self._pulls().stage(staging)
        context.run("stage", plain.stage(staging, batch, schema, stored))
        return plain.StagedRows(staging, tuple(schema), None if state is None else state.current_snapshot_id)

    @available.parse(lambda *a, **k: None)
    def evolve_plain(
        self,
        on_schema_change: str,
        produced: Sequence[ArcticColumn],
        target: ArcticRelation,
        config: PlainConfig,
        macros: Mapping[str, Any],
    ) -> PlainBatch:
        """Change the columns of a plain table to those of a batch, as far as ``on_schema_change`` allows.

        Columns are dropped by ``drop_columns``, after the batch is written. A macro of the project may write
        every column of the table, so that they are dropped here.

        :param macros: the macros of the project, by name.
        """
        with as_dbt_errors():
            stored = as_columns(cast(Any, self).get_columns_in_relation(target))
            columns = as_columns(produced)
            if on_schema_change == "fail" and compare_columns(stored, columns):
                return PlainBatch()  # dbt's own macro raises the error next
            changed = evolve_plain(
                self.context(),
                target.name_parts,
                config.model,
                on_schema_change,
                stored,
                columns,
                drop_first=is_written_by_project(config.strategy, macros),
            )
            key = {name.lower() for name in config.key}
            of_key = [one for one in produced if one.name.lower() in key]
            typed = values_of_stored_types(config.model, of_key, changed.columns)
            return PlainBatch({**stored_values(produced, changed.columns), **typed}, changed)

    @available.parse(lambda *a, **k: None)
    def drop_columns(self, target: ArcticRelation, model: Mapping[str, Any], batch: PlainBatch) -> None:
        """Drop the columns that a written batch does not have. Emits a dbt warning if it fails."""
        if batch.changed is None:
            return
        with as_dbt_errors():
            warning = drop_last(self.context(), target.name_parts, model["name"], batch.changed)
        if warning is not None:
            emit_warning(warning)

    @available.parse(lambda *a, **k: [])
    def new_table_columns(self, relation: ArcticRelation, sql: str) -> list[ColumnInfo]:
        """The columns of the query of a new table. If it replaces a table, that is prepared for them.

        :raises ConfigError: a column has the name of one of Iceberg's metadata columns.
        """
        with as_dbt_errors():
            columns = self._schema(sql)
            names = [column.name for column in columns]
            require_no_metadata_columns(relation.identifier or "", names)
            if not relation.is_new:
                unset_statistics_of_missing(self.context(), relation.name_parts, names)
            return columns

    # Properties

    @available.parse(lambda *a, **k: {})
    def float_statistics(
        self, columns: Sequence[ColumnInfo] | None, given: Mapping[str, Any] | None
    ) -> dict[str, str]:
        """The properties of a new table whose floating-point columns have no file statistics.

        :param columns: as in ``partition_fields``.
        :param given: the ``tblproperties`` of the model, which may set statistics.
        """
        found = no_float_statistics(((column.name,), column.type) for column in columns or ())
        return {name: value for name, value in found.items() if name not in (given or {})}

    @available.parse(lambda *a, **k: "")
    def leave_float_statistics_out(self, relation: ArcticRelation, columns: Sequence[ArcticColumn]) -> str:
        """The statement that follows the addition of columns to a plain table; empty for none."""
        added = [((column.name,), column.data_type.lower()) for column in columns]
        return leave_float_statistics_out(relation.name_parts, added)

    @available.parse(lambda *a, **k: None)
    def apply_properties(
        self, relation: ArcticRelation, model: Mapping[str, Any], kind: str | None, rebuild: bool = False
    ) -> None:
        """Apply the ``tblproperties`` of a model to its existing table, before a write.

        :param kind: the kind of the existing relation, from ``relation_kind``.
        :param rebuild: whether the table is replaced. Then it may get an older format version.
        """
        if kind not in ("table", "keyed"):
            return
        with as_dbt_errors():
            wanted = _properties_of(model)
            name, context = relation.name_parts, self.context()
            if kind == "table":
                if not rebuild:
                    refuse_older_format(model["name"], wanted, self._stored(name), model["resource_type"])
                apply_properties(context, name, wanted, TABLE_DEFAULTS)
            elif (table := find_keyed(self.catalog, name)) is not None:
                apply_properties(context, table.base, wanted, base_defaults(table.layout))

    @available.parse(lambda *a, **k: False)
    def gets_older_format(self, relation: ArcticRelation, model: Mapping[str, Any]) -> bool:
        """Whether a model has an older format version than its table. Then a new table is needed."""
        with as_dbt_errors():
            return is_older_format(_properties_of(model), self._stored(relation.name_parts))

    def _state(self, name: Name) -> TableState | None:
        return self.catalog.of(name).load_table(name.schema, name.identifier)

    def _stored(self, name: Name) -> Mapping[str, str]:
        state = self._state(name)
        return {} if state is None else state.properties

    @available.parse(lambda *a, **k: None)
    def warn_of_many_files(self, relation: ArcticRelation, model: Mapping[str, Any]) -> None:
        """Emit a dbt warning if ``partition_by`` made this run write very many small files."""
        given = model["config"].get("partition_by")
        if not given:
            return
        began = get_invocation_started_at().replace(tzinfo=timezone.utc)
        with as_dbt_errors():
            warning = many_small_files(
                model["name"],
                [given] if isinstance(given, str) else given,
                newest_commits(self.catalog, relation.name_parts),
                int(began.timestamp() * 1000),
            )
        if warning is not None:
            emit_warning(warning)
