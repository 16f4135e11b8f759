"""Writes to an existing keyed table: the blind append, and the computed write with compare-and-swap."""

from __future__ import annotations

from dataclasses import replace

from dbt_arctic.errors import CommitStateUnknown, ConfigError, StatementError
from dbt_arctic.keyed import create, unavailable_values, write
from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.layout import check_bucket_count, same_fields, with_columns_of
from dbt_arctic.keyed.log import PROPERTY_RUN, find_transaction, rows_added
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.one_task import in_one_task
from dbt_arctic.keyed.partial import fill_kept_columns
from dbt_arctic.keyed.replay import PROPERTY_BLIND
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.batch import make_batch, model_columns
from dbt_arctic.refresh.config import KeyedConfig, match_columns
from dbt_arctic.refresh.partial_upsert import updated_columns, with_kept_columns
from dbt_arctic.refresh.schema_evolution import change_columns, plan_columns, relax, require_same_fields
from dbt_arctic.store.computed_write import Attempt, Purpose, write_computed
from dbt_arctic.store.consumption import Consumption
from dbt_arctic.store.context import Context
from dbt_arctic.store.refresh_outcome import Outcome
from dbt_arctic.store.replay import replay_after_switch, replay_into_current
from dbt_arctic.store.row_counts import rows_written, with_rows
from dbt_arctic.store.side_columns import changed_by_another, takes_rows
from dbt_arctic.store.state import load_change, load_keyed, with_current_buckets


def upsert(context: Context, name: Name, config: KeyedConfig, sql: str) -> Outcome:
    """A blind upsert: one append to the change table, without a read of the target.

    If only some columns change, this is a computed write, because it reads the other columns.
    """
    if config.is_partial:
        return computed_upsert(context, name, config, sql, Consumption())
    table, batch, has_new = _prepare(context, name, config, sql)
    if batch.unavailable:
        return computed_upsert(context, name, config, sql, Consumption())
    written = load_change(context.catalog, table).columns if has_new else ()
    txn = context.new_txn()
    properties = {PROPERTY_RUN: context.run_id, PROPERTY_BLIND: "true"}
    properties |= replay_after_switch(context, table, config.model)
    one_task, few = batch_in_one_task(config, table, batch)
    statement = write.insert_into_change(
        table, few, txn, properties, cores=context.cores, in_one_task=one_task
    )
    try:
        rows = rows_written(context, context.run("upsert", statement, table), table.change, txn=txn)
    except CommitStateUnknown:
        # The catalog did not respond. The log shows whether the commit succeeded.
        landed = find_transaction(load_change(context.catalog, table).history(), txn)
        if landed is None:
            raise
        rows = rows_added(landed)
    except StatementError as error:
        if takes_rows(load_change(context.catalog, table).columns, table):
            raise
        raise changed_by_another(config.model, table) from error
    if written:
        require_same_fields(context, config, table, written)
    replay_into_current(context, table, txn, config.model)
    return Outcome(with_rows("UPSERT", rows), rows, statement)


def computed_upsert(
    context: Context, name: Name, config: KeyedConfig, sql: str, consumption: Consumption
) -> Outcome:
    """An upsert that commits consumed versions, or that changes only some columns of existing rows."""
    table, batch = prepare(context, name, config, sql)
    updated = updated_columns(config, table, batch) if config.is_partial else None
    properties = {PROPERTY_RUN: context.run_id, **consumption.properties()}
    reads_rows = updated is not None or batch.unavailable
    one_task, few = batch_in_one_task(config, table, batch)

    def statement(attempt: Attempt) -> str:
        if batch.unavailable:
            return unavailable_values.fill_unavailable_values(
                table, batch, attempt.pinned, attempt.txn, properties, attempt.branch, attempt.known
            )
        if updated is None:
            return write.insert_into_change(
                table, few, attempt.txn, properties, attempt.branch, context.cores, one_task
            )
        return fill_kept_columns(
            table, batch, updated, attempt.pinned, attempt.txn, properties, attempt.branch, attempt.known
        )

    written = write_computed(
        context,
        table,
        Purpose(
            "upsert",
            config.model,
            "run the model again",
            joins=reads_rows,
            pulls=consumption.pulls,
        ),
        statement,
        check=lambda change: consumption.check(change, config.model, name),
        reads_rows=reads_rows,
    )
    return Outcome(with_rows("UPSERT", written.rows), written.rows, written.sql)


def batch_in_one_task(config: KeyedConfig, table: KeyedTable, batch: Batch) -> tuple[bool, Batch]:
    """Whether one task computes and writes a batch, and the batch then.

    A single bucket is written by one task in any case. Tables with few rows save the shuffle before it.
    """
    if not config.small_data or table.layout.buckets != 1:
        return False, batch
    return True, replace(batch, sql=in_one_task(batch.sql))


def check_unchanged_config(config: KeyedConfig, table: KeyedTable) -> None:
    """Check that key and layout are those of the generation.

    Another key would reinterpret pending rows. Only the number of buckets may differ: a full compaction
    applies it.

    :raises ConfigError: asks for a full refresh.
    """
    if config.buckets is not None:
        check_bucket_count(config.model, config.buckets)
    for setting, (new, old) in changed_settings(config, table).items():
        back = f"set {setting} back to {_show(old)}" if old else f"remove {setting}"
        raise ConfigError(
            f"{setting} changed from {_show(old)} to {_show(new)}",
            where=config.model,
            why="the stored rows were written with the old setting",
            fix=f"{back}, or rebuild the table: dbt run --full-refresh --select {config.model}",
        )


def changed_settings(config: KeyedConfig, table: KeyedTable) -> dict[str, tuple[object, object]]:
    """The settings of key and layout that differ from those of the generation.

    Each has the new and the old value.
    """
    names = list(table.column_names)
    wanted: dict[str, tuple[object, object]] = {
        "unique_key": (match_columns(config.unique_key, names), table.key),
        "partition_by": (
            same_fields(with_columns_of(config.partition_by, names)),
            same_fields(table.layout.partition_by),
        ),
    }
    if config.bucket_by is not None:
        wanted["bucket_by"] = (match_columns([config.bucket_by], names)[0], table.layout.bucket_by)
    if config.sort_by:
        wanted["sort_by"] = (match_columns(config.sort_by, names), table.layout.sort_by)
    if config.sequence_by or table.sequence_by:
        new_sequence = match_columns([config.sequence_by], names) if config.sequence_by else ()
        wanted["sequence_by"] = (new_sequence, (table.sequence_by,) if table.sequence_by else ())
    return {setting: values for setting, values in wanted.items() if values[0] != values[1]}


def prepare(context: Context, name: Name, config: KeyedConfig, sql: str) -> tuple[KeyedTable, Batch]:
    """Prepare the table for a batch, and return both."""
    table, batch, _ = _prepare(context, name, config, sql)
    return table, batch


def _prepare(context: Context, name: Name, config: KeyedConfig, sql: str) -> tuple[KeyedTable, Batch, bool]:
    """Like ``prepare``, and whether the columns of the table were changed."""
    table = load_keyed(context.catalog, name)
    # a different table with this name must not receive the batch
    change = load_change(context.catalog, table)
    check_unchanged_config(config, table)
    if table.hidden:
        raise ConfigError(
            f"{table.name} was built as an automatic model and has hidden columns for sums",
            where=config.model,
            why="incremental_strategy was 'auto'; another strategy would not fill these columns",
            fix=f"rebuild the table: dbt run --full-refresh --select {config.model}",
        )
    schema = context.query_schema(sql)
    produced = model_columns(config, schema)
    if config.is_partial:
        produced = with_kept_columns(config, table, produced)
    plan = plan_columns(context, config, table, produced)
    # All checks come before the first change: a run that is refused leaves the table as it is.
    batch = make_batch(config, sql, schema, existing=plan.target)
    if config.is_partial:
        updated_columns(config, plan.target, batch)
    elif plan.changes and not batch.unavailable:
        # Spark finds a mistake in delete_when or deduplicate_by.
        context.query_schema(batch.one_row_per_key(0))
    changed = change_columns(context, config, plan)
    has_new = changed.columns != table.columns
    table = with_retention(context, config, relax(context, config, changed))
    return with_current_buckets(table, change), batch, has_new


def with_retention(context: Context, config: KeyedConfig, table: KeyedTable) -> KeyedTable:
    """The table with the configured retention of deletes, which is stored if it has changed."""
    if not table.sequence_by or table.tombstone_retention_s == config.tombstone_retention_s:
        return table
    table = replace(table, tombstone_retention_s=config.tombstone_retention_s)
    context.run("set_retention", create.set_retention(table), table)
    return table


def _show(value: object) -> str:
    return ", ".join(str(item) for item in value) or "none" if isinstance(value, tuple) else str(value)
