"""Macro methods for the batches of a microbatch model: thin methods over ``refresh.microbatch``.

dbt decides which batches there are, and which run concurrently.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.base.meta import available
from dbt.artifacts.resources.types import BatchSize
from dbt.event_time.sample_window import SampleWindow
from dbt.materializations.incremental.microbatch import MicrobatchBuilder
from dbt_common.invocation import get_invocation_started_at

from dbt_arctic.adapter.column import ArcticColumn
from dbt_arctic.adapter.connections import ArcticResponse
from dbt_arctic.adapter.keyed_api import KeyedApi, _response
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.adapter.translate import as_dbt_errors
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.engine.lexer import without_end
from dbt_arctic.errors import ConfigError
from dbt_arctic.refresh import microbatch
from dbt_arctic.refresh.config import writes_keyed
from dbt_arctic.refresh.event_time import Interval, batch_interval, filtered_upstreams, refuse_local_time
from dbt_arctic.refresh.plain import PlainWrite
from dbt_arctic.store.state import find_keyed


class MicrobatchApi(KeyedApi):
    """The methods of the adapter for microbatch models."""

    @available.parse(lambda *a, **k: False)
    def writes_keyed(self, model: Mapping[str, Any]) -> bool:
        """Whether an incremental model writes a keyed table."""
        with as_dbt_errors():
            return writes_keyed(model["name"], model["config"])

    @available.parse(lambda *a, **k: False)
    def is_later_batch(self, model: Mapping[str, Any], first_day: dt.datetime | None) -> bool:
        """Whether a batch is not the first of its run.

        dbt treats the first batch of ``dbt retry`` as the first one. With ``--full-refresh``, the earlier
        batches would be lost.

        :param first_day: ``--event-time-start`` or the start of ``--sample``; ``None`` for ``begin``.
        """
        with as_dbt_errors():
            interval = batch_interval(model)
            if interval is None:
                return False
            size, begin = BatchSize(model["config"]["batch_size"]), first_day or model["config"]["begin"]
            if isinstance(begin, str):
                begin = dt.datetime.fromisoformat(begin)
            if begin.tzinfo is None:
                begin = begin.replace(tzinfo=dt.timezone.utc)
            return interval.start > MicrobatchBuilder.truncate_timestamp(begin, size)

    @available.parse(lambda *a, **k: False)
    def keeps_batch(
        self, this: ArcticRelation, model: Mapping[str, Any], sample: SampleWindow | None
    ) -> bool:
        """Whether a run with ``--empty`` or ``--sample`` leaves the interval of a batch as it is.

        A part of a batch would replace all its rows, and no later run might read the batch again. A table
        that this run has built has no other rows.

        :param sample: of ``--sample``; ``None`` for ``--empty``.
        """
        with as_dbt_errors():
            interval = batch_interval(model)
            if interval is None:
                return False
            began = get_invocation_started_at().replace(tzinfo=dt.timezone.utc)
            if sample is not None and interval.is_whole(Interval.of("", sample.start, sample.end), began):
                return False
            keyed = find_keyed(self.catalog, this.name_parts)
            name = this.name_parts if keyed is None else keyed.base
            state = self.catalog.of(name).load_table(name.schema, name.identifier)
            commits = [] if state is None else state.history()
            return any(one.timestamp_ms < began.timestamp() * 1000 for one in commits)

    @available.parse(lambda *a, **k: "")
    def batch_sql(
        self,
        this: ArcticRelation,
        model: Mapping[str, Any],
        sql: str,
        kind: str | None,
        full_refresh: bool,
        graph: Mapping[str, Any],
    ) -> str:
        """The SQL of a model, restricted to the rows of the batch for a microbatch model.

        :param kind: the kind of the stored relation with the model's name.
        :param graph: dbt's graph, with the event times of upstreams.
        """
        with as_dbt_errors():
            interval = batch_interval(model)
            if interval is None:
                return sql
            wanted = "keyed" if writes_keyed(model["name"], model["config"]) else "table"
            if kind in ("table", "keyed") and kind != wanted and not full_refresh:
                raise ConfigError(
                    f"the model creates {_NAMES[wanted]}, but {_NAMES[kind]} of its name exists",
                    where=model["name"],
                    why="the new one would contain only the latest batches",
                    fix=f"build it from all batches: dbt run --full-refresh --select {model['name']}",
                )
            context, sql = self.context(), without_end(sql)
            columns = context.query_schema(sql)
            condition = interval.condition(model["name"], columns)
            if interval.is_local(columns) and (filtered := filtered_upstreams(model, graph)):
                ((zone,),) = context.query("SELECT current_timezone()")
                refuse_local_time(model["name"], interval.event_time, str(zone), filtered)
            if kind == wanted and not full_refresh:
                # Before the columns of the table are changed.
                stored = self._stored_columns(this)
                interval.require_same_batches(model["name"], columns, stored, context.query)
            return interval.restrict(sql, condition)

    def _stored_columns(self, this: ArcticRelation) -> list[ColumnInfo]:
        """The columns of a table, from the catalog."""
        keyed, name = find_keyed(self.catalog, this.name_parts), this.name_parts
        if keyed is not None:
            return [ColumnInfo(column.name, column.type) for column in keyed.columns]
        state = self.catalog.of(name).load_table(name.schema, name.identifier)
        return [ColumnInfo(column.name, column.type) for column in ([] if state is None else state.columns)]

    @available.parse(lambda *a, **k: "")
    def batch_condition(self, model: Mapping[str, Any], columns: Sequence[ArcticColumn]) -> str:
        """The condition for rows of a table with these columns that belong to the batch."""
        with as_dbt_errors():
            interval = batch_interval(model)
            named = [(column.name, str(column.dtype)) for column in columns]
            return "" if interval is None else interval.condition(model["name"], named)

    @available.parse(lambda *a, **k: None)
    def replace_rows(
        self,
        write: PlainWrite,
        model: Mapping[str, Any],
        direct: str,
        delete: str,
        statements: Sequence[str],
    ) -> ArcticResponse:
        """Write one batch of a plain microbatch model."""
        with as_dbt_errors():
            context = self.context(self._run_id(model["unique_id"]))
            return _response(microbatch.replace_rows(context, write, direct, delete, statements))


_NAMES = {"table": "a plain table", "keyed": "a keyed table"}
