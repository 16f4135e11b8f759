"""Runs a model with the strategy ``history``: builds its table, or adds events to it in one commit."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.batch import ROWS_OF_KEY, Batch
from dbt_arctic.keyed.history import VERSION, History, affected_keys_sql, events_sql, is_history
from dbt_arctic.keyed.history_sql import intervals
from dbt_arctic.keyed.log import PROPERTY_RUN
from dbt_arctic.keyed.names import Name, is_as_stored, literal, quote
from dbt_arctic.keyed.read import merge_on_read, tombstones_of
from dbt_arctic.keyed.rollback import rows_and_deletes
from dbt_arctic.keyed.schema_difference import compare_columns, stored_type
from dbt_arctic.keyed.table import ACTION, Column, KeyedTable
from dbt_arctic.keyed.value_range import ValueRange
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.keyed.write import insert_rows
from dbt_arctic.refresh.batch import make_batch, model_columns, require_same_columns
from dbt_arctic.refresh.build import BuildStart, build_generation
from dbt_arctic.refresh.config import KeyedConfig
from dbt_arctic.refresh.history_config import (
    HistoryConfig,
    described_columns,
    require_same_settings,
    resolve,
    settings_property,
)
from dbt_arctic.refresh.schema_policy import refuse_difference
from dbt_arctic.refresh.upsert import check_unchanged_config, with_retention
from dbt_arctic.store.computed_write import Attempt, Purpose, write_computed
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.row_counts import with_rows
from dbt_arctic.store.state import load_base, load_change, load_keyed, with_current_buckets

ScdId = Callable[[Sequence[str]], str]
"""Returns SQL of the id of an interval, from quoted columns."""

_ANALYSED_ONCE = {"spark.sql.legacy.storeAnalyzedPlanForView": "true"}
_RANGED = ("tinyint", "smallint", "int", "bigint", "string")
"""Types whose literals are exact, and sort as in the statistics of files."""


@dataclass(frozen=True)
class HistoryModel:
    """A model with the strategy ``history``.

    :param sql: returns events.
    """

    config: KeyedConfig
    settings: HistoryConfig
    sql: str
    scd_id: ScdId


def build_history(
    context: Context,
    name: Name,
    model: HistoryModel,
    consumed: Mapping[str, Consumed],
    *,
    owner: str,
    comment: str = "",
    column_comments: Mapping[str, str] | None = None,
    beginning: BuildStart | None = None,
) -> Outcome:
    """Build the table from all events that the model returns.

    The parameters are those of ``build_generation``.
    """
    config, schema = model.config, context.query_schema(model.sql)
    _require_key_columns(config, schema)
    types = {column: stored_type(type_) for column, type_ in schema if column.lower() != ACTION}
    history = resolve(config, model.settings, types, model.scd_id)
    batch = make_batch(config, model.sql, schema, existing=None)
    _, outcome = build_generation(
        context,
        name,
        replace(
            config,
            unique_key=history.row_key,
            sequence_by=VERSION,
            delete_when=None,
            deduplicate_by=(),
            tblproperties={**config.tblproperties, **settings_property(history)},
        ),
        intervals(history, events_sql(history, batch)),
        consumed,
        owner=owner,
        comment=comment,
        column_comments=column_comments,
        beginning=beginning,
        hidden=history.hidden,
    )
    return outcome


def write_history(context: Context, name: Name, model: HistoryModel, consumption: Consumption) -> Outcome:
    """Add the events of a batch to an existing table, in one commit of a computed write.

    Only rows of the keys in the batch are read, and only rows that differ are written.

    :raises ConfigError: the table is not a history, or was built with other settings.
    """
    config = model.config
    table = load_keyed(context.catalog, name)
    change = load_change(context.catalog, table)
    if not is_history(table):
        raise ConfigError(
            f"{table.name} is a keyed table without intervals",
            where=config.model,
            why="incremental_strategy was not 'history' when it was built",
            fix=f"build it from all events: dbt run --full-refresh --select {config.model}",
        )
    table = with_current_buckets(table, change)
    schema = context.query_schema(model.sql)
    _require_key_columns(config, schema)
    history = _stored_history(context, model, table, schema)
    check_unchanged_config(replace(config, unique_key=history.row_key, sequence_by=VERSION), table)
    table = with_retention(context, config, table)
    as_events = replace(table, columns=table.columns[: len(history.columns)], hidden=())
    batch = make_batch(config, model.sql, schema, existing=as_events)
    properties = {PROPERTY_RUN: context.run_id, **consumption.properties()}

    with _staged(context, history, batch, table) as (staged, ranges):

        def statement(attempt: Attempt) -> str:
            return _write(table, history, config, staged, ranges, attempt, properties)

        written = write_computed(
            context,
            table,
            Purpose(
                "history",
                config.model,
                "run the model again",
                joins=True,
                pulls=consumption.pulls,
            ),
            statement,
            check=lambda change: consumption.check(change, config.model, name),
        )
    return Outcome(with_rows("HISTORY", written.rows), written.rows, written.sql)


def _require_key_columns(config: KeyedConfig, schema: Sequence[ColumnInfo]) -> None:
    """Errors for missing columns come before those about the history."""
    model_columns(config, schema)


def _stored_history(
    context: Context, model: HistoryModel, table: KeyedTable, schema: Sequence[ColumnInfo]
) -> History:
    """The history of the table, after checks that the model still has its settings and columns."""
    config, properties = model.config, load_base(context.catalog, table).properties
    added = (*table.hidden, *described_columns(properties))
    columns = tuple(column for column in table.columns if column.name not in added)
    returned = [Column(column, stored_type(type_)) for column, type_ in schema if column.lower() != ACTION]
    if config.on_schema_change == "fail":
        refuse_difference(config.model, compare_columns(columns, returned))
    require_same_columns(config.model, columns, returned)
    types = {column.name: column.type for column in columns}
    history = resolve(config, model.settings, types, model.scd_id)
    require_same_settings(history, properties)
    return history


@contextmanager
def _staged(
    context: Context, history: History, batch: Batch, table: KeyedTable
) -> Iterator[tuple[str, Sequence[str]]]:
    """Compute the events once, in the session, and find the ranges of their keys."""
    name = f"arctic_events_{secrets.token_hex(6)}"
    with context.tuned(_ANALYSED_ONCE):
        context.run("stage_events", f"CACHE LAZY TABLE {quote(name)} AS\n{events_sql(history, batch)}", table)
    try:
        yield quote(name), _ranges(context, history, quote(name))
    finally:
        context.run("drop_events", f"DROP VIEW IF EXISTS {quote(name)}", table)


def _ranges(context: Context, history: History, relation: str) -> list[str]:
    """Conditions on the keys of all events, from one query that also computes the events."""
    ranged = [name for name in history.key if history.columns[name] in _RANGED]
    bounds = [f"CAST({bound}({quote(name)}) AS STRING)" for name in ranged for bound in ("min", "max")]
    (found,) = context.query(f"SELECT {', '.join(['count(*)', *bounds])}\nFROM {relation}")
    conditions = []
    for place, name in enumerate(ranged):
        low, high = found[1 + 2 * place], found[2 + 2 * place]
        if low is None or not is_as_stored(low + high):
            continue
        if history.columns[name] == "string":
            low, high = literal(low), literal(high)
        conditions.append(ValueRange(low, high).holds(quote(name)))
    return conditions


def _write(
    table: KeyedTable,
    history: History,
    config: KeyedConfig,
    staged: str,
    ranges: Sequence[str],
    attempt: Attempt,
    properties: Mapping[str, str],
) -> str:
    """SQL of one attempt: the rows of the affected keys, computed from stored rows and new events."""
    keys = affected_keys_sql(history, staged, ranges)
    stored = rows_and_deletes(
        table,
        merge_on_read(table, attempt.pinned, attempt.known, keys=keys, by=history.key),
        tombstones_of(table, attempt.pinned, attempt.known, keys, history.key),
    )
    rows = intervals(history, f"SELECT *\nFROM {staged}", stored)
    batch = Batch(
        model=config.model,
        sql=f"SELECT *, 1 AS {quote(ROWS_OF_KEY)}\nFROM (\n{rows}\n)",
        key=table.key,
        columns=table.column_names,
        model_columns=(*table.column_names, ACTION),
        checks=config.checks,
        counted=True,
    )
    return insert_rows(table, attempt.txn, properties, batch.one_row_per_key(attempt.txn), attempt.branch)
