"""Appends rows that come from another program than dbt to an existing table, at most once for each batch.

A batch with an idempotency key is published by a compare-and-swap, so of several attempts only one is
committed. A batch without one is a blind write to a keyed table, or an INSERT into a plain one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import ConcurrentRun, ConfigError, SchemaChanged, UnknownRelation
from dbt_arctic.keyed.assignment import stored_value, unstorable
from dbt_arctic.keyed.history import refuse_history
from dbt_arctic.keyed.idempotency_keys import LONGEST_KEY, PROPERTY_KEY, appended_keys
from dbt_arctic.keyed.log import PROPERTY_RUN, consumed_versions
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.rollback import required_checks
from dbt_arctic.keyed.table import ACTION, Column, KeyedTable
from dbt_arctic.keyed.version import FINGERPRINT
from dbt_arctic.keyed.write import insert_into_change, insert_plain
from dbt_arctic.refresh.batch import how_to_type, make_batch
from dbt_arctic.refresh.clone import is_clone
from dbt_arctic.refresh.config import KeyedConfig, match_columns
from dbt_arctic.refresh.upsert import upsert
from dbt_arctic.store.branches import ATTEMPTS, branch_name, drop_stale_branches, publish, staged
from dbt_arctic.store.computed_write import Attempt, Purpose, write_with_retries
from dbt_arctic.store.context import Context
from dbt_arctic.store.row_counts import rows_written
from dbt_arctic.store.side_table import refuse_side_table
from dbt_arctic.store.state import find_keyed, load_change, to_columns, with_current_buckets

AGAIN = "append the batch again with the same key"


@dataclass(frozen=True)
class AppendOptions:
    """How the rows of a batch are read.

    :param key: the idempotency key of the batch; ``None`` to write it each time.
    :param action: the column of ``U`` (upsert) and ``D`` (delete); ``None`` for ``_action``, if there is one.
    :param sequence: the column with the values of the table's ``sequence_by``, if it has another name.
    :param deduplicate_by: SQL expressions; of several rows with one key, the greatest wins.
    """

    key: str | None = None
    action: str | None = None
    sequence: str | None = None
    deduplicate_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Appended:
    """The result of an append.

    :param table: its full name.
    :param written: whether this call has written the batch. Otherwise a batch with its key is in the table
        already, and nothing was written.
    :param rows: the number of rows written; ``None`` if it is unknown.
    """

    table: str
    written: bool
    rows: int | None


@dataclass(frozen=True)
class _AppendTarget:
    """The table to append to.

    :param table: ``None`` for a plain table.
    :param state: of the plain table, or of the change table. Its commits have the keys of earlier batches.
    """

    table: KeyedTable | None
    state: TableState


def is_appended(catalog: CatalogReader, name: Name, options: AppendOptions) -> bool:
    """Whether a batch with the key is in the table. Reads only metadata, and checks the options.

    :raises ConfigError: the key is empty or too long, or an option needs a keyed table.
    :raises UnknownRelation: the table does not exist, or it is a view or a clone.
    """
    return _has_key(options.key, _find(catalog, name, options).state)


def _find(catalog: CatalogReader, name: Name, options: AppendOptions) -> _AppendTarget:
    _check_key(name, options.key)
    table = find_keyed(catalog, name)
    if table is None:
        return _AppendTarget(None, _plain(catalog, name, options))
    change = load_change(catalog, table)
    _refuse_automatic(table, change)
    return _AppendTarget(table, change)


def append_rows(context: Context, name: Name, sql: str, options: AppendOptions) -> Appended:
    """Append the rows of a query to a table, unless a batch with the same key is in it.

    :raises SchemaChanged: the columns are not those of the table, or a type cannot be stored exactly.
    :raises KeyColumnMissing: a key column is missing.
    :raises DuplicateKey: two rows have the same key, and no order decides between them.
    :raises ConcurrentRun: a full refresh is active, or other writers kept committing. Nothing was written;
        the batch can be appended again.
    """
    found = _find(context.catalog, name, options)
    if _has_key(options.key, found.state):
        return Appended(name.dotted, written=False, rows=0)
    if found.table is None:
        return _append_plain(context, name, found.state, sql, options)
    return _append_keyed(context, found.table, found.state, sql, options)


def _append_keyed(
    context: Context, table: KeyedTable, change: TableState, sql: str, options: AppendOptions
) -> Appended:
    where = _where(table.name)
    sql, schema = _named(table, sql, context.query_schema(sql), options)
    _require_columns(where, table.visible.columns, [one for one in schema if one.name.lower() != ACTION])
    config = KeyedConfig(
        model=where,
        unique_key=table.key,
        partition_by=table.layout.partition_by,
        deduplicate_by=options.deduplicate_by,
        sequence_by=table.sequence_by,
        tombstone_retention_s=table.tombstone_retention_s,
        checks=required_checks(table),
        required=table.required,
    )
    if options.key is None:
        outcome = upsert(context, table.name, config, sql)
        return Appended(table.name.dotted, written=True, rows=outcome.rows)
    table = with_current_buckets(table, change)
    batch = make_batch(config, sql, schema, existing=table)
    properties = {PROPERTY_RUN: context.run_id, PROPERTY_KEY: options.key}

    def statement(attempt: Attempt) -> str:
        return insert_into_change(table, batch, attempt.txn, properties, attempt.branch, context.cores)

    written = write_with_retries(
        context,
        table,
        Purpose("append", where, AGAIN, records=True),
        statement,
        pointless=lambda change: _has_key(options.key, change),
        reads_rows=False,
    )
    if written is None:
        return Appended(table.name.dotted, written=False, rows=0)
    return Appended(table.name.dotted, written=True, rows=written.rows)


def _append_plain(
    context: Context, name: Name, state: TableState, sql: str, options: AppendOptions
) -> Appended:
    where, key = _where(name), options.key
    schema = context.query_schema(sql)
    for attempt in range(ATTEMPTS):
        # A commit since the first look lets the publication fail, and the next attempt sees it.
        state = _plain(context.catalog, name, options) if attempt else state
        if _has_key(key, state):
            return Appended(name.dotted, written=False, rows=0)
        columns = to_columns(state.columns)
        _require_columns(where, columns, schema)
        select = _select_stored(sql, schema, columns)
        properties = {PROPERTY_RUN: context.run_id}
        if key is None:
            statement = insert_plain(name.sql, columns, properties, select)
            rows = rows_written(context, context.run("append", statement), name)
            return Appended(name.dotted, written=True, rows=rows)
        drop_stale_branches(context, name, state, None)
        branch = branch_name(context.new_txn())
        with staged(context, name, state.current_snapshot_id, branch):
            statement = insert_plain(name.branch(branch), columns, {**properties, PROPERTY_KEY: key}, select)
            rows = rows_written(context, context.run("append", statement), name, branch=branch)
            if publish(context, name, branch, None, state.current_snapshot_id, state.columns, 1):
                return Appended(name.dotted, written=True, rows=rows)
    raise ConcurrentRun(
        f"the commit to {name} conflicted with other commits {ATTEMPTS} times",
        where=where,
        fix=f"{AGAIN} when fewer writers are active; nothing was written",
    )


def _named(
    table: KeyedTable, sql: str, schema: Sequence[ColumnInfo], options: AppendOptions
) -> tuple[str, list[ColumnInfo]]:
    """The SQL with the columns for action and sequence under the names of the table, and its columns.

    :raises ConfigError: such a column is missing, or the name is taken.
    """
    where, names = _where(table.name), [one.name for one in schema]
    if options.sequence is not None and table.sequence_by is None:
        raise ConfigError(
            f"sequence is {options.sequence!r}, and the table has no sequence",
            where=where,
            why="the order of changes is part of the table: its model has no sequence_by",
            fix="set sequence_by in the model and rebuild it; or use deduplicate_by, which orders the "
            "rows of one batch",
        )
    renamed = {}
    for given, wanted in ((options.action, ACTION), (options.sequence, table.sequence_by)):
        if given is None or wanted is None:
            continue
        (found,) = match_columns([given], names)
        if found not in names:
            raise ConfigError(
                f"the rows have no column {given}",
                where=where,
                why=f"their columns are: {', '.join(names)}",
                fix="correct the name, or add the column",
            )
        if found.lower() != wanted.lower():
            renamed[found] = wanted
    taken = [wanted for wanted in renamed.values() if wanted.lower() in {name.lower() for name in names}]
    if taken:
        raise ConfigError(
            f"the rows have a column {taken[0]} and another column that is passed for it",
            where=where,
            why=f"{', '.join(f'{one} is to be {other}' for one, other in renamed.items())}",
            fix=f"drop {taken[0]} from the rows, or leave out the option",
        )
    if not renamed:
        return sql, list(schema)
    selected = ", ".join(
        f"{quote(name)} AS {quote(renamed[name])}" if name in renamed else quote(name) for name in names
    )
    columns = [ColumnInfo(renamed.get(name, name), type_) for name, type_ in schema]
    return f"SELECT {selected}\nFROM (\n{sql}\n)", columns


def _require_columns(where: str, stored: Sequence[Column], given: Sequence[ColumnInfo]) -> None:
    """Require exactly the columns of the table, and types that it stores exactly.

    :raises SchemaChanged: a column is missing or unknown, or a type does not fit.
    """
    there = {column.name.lower(): column.name for column in stored}
    names = {one.name.lower(): one.name for one in given}
    lacking = [name for key, name in there.items() if key not in names]
    unknown = [name for key, name in names.items() if key not in there]
    if lacking or unknown:
        parts = [f"the rows have no {', '.join(lacking)}"] if lacking else []
        parts += [f"the table has no {', '.join(unknown)}"] if unknown else []
        raise SchemaChanged(
            "the columns of the batch are not those of the table",
            where=where,
            why="; ".join(parts),
            fix=f"append the columns {', '.join(column.name for column in stored)}; a new column is added by "
            "a run of the table's model",
        )
    found = unstorable(given, ((column.name, column.type) for column in stored), fill=False)
    if found:
        raise SchemaChanged(
            "the table cannot store the values of the batch without loss",
            where=where,
            why="; ".join(mismatch.describe() for mismatch in found),
            fix=how_to_type(found, "cast the column to the type of the table before the append"),
        )


def _select_stored(sql: str, schema: Sequence[ColumnInfo], columns: Sequence[Column]) -> str:
    """The rows of a query with the columns and types of a table."""
    given = {one.name.lower(): one for one in schema}
    values = []
    for column in columns:
        one = given[column.name.lower()]
        values.append(f"{stored_value(quote(one.name), one.type, column.type)} AS {quote(column.name)}")
    return f"SELECT {', '.join(values)}\nFROM (\n{sql}\n)"


def _check_key(name: Name, key: str | None) -> None:
    if key is not None and not 0 < len(key) <= LONGEST_KEY:
        raise ConfigError(
            f"the idempotency key has {len(key)} characters",
            where=_where(name),
            why=f"a key has 1 to {LONGEST_KEY} characters, because the table's commits contain it",
            fix="use a shorter name of the batch, or a hash of it",
        )


def _has_key(key: str | None, state: TableState) -> bool:
    return key is not None and key in appended_keys(state.history(), state.properties)


def _plain(catalog: CatalogReader, name: Name, options: AppendOptions) -> TableState:
    """The state of a plain table.

    :raises UnknownRelation: there is none.
    :raises ConfigError: an option needs a keyed table.
    """
    where = _where(name)
    state = catalog.of(name).load_table(name.schema, name.identifier)
    if state is None:
        view = catalog.of(name).load_view(name.schema, name.identifier)
        cloned = view is not None and is_clone(view.properties)
        what = "does not exist" if view is None else "is a clone" if cloned else "is a view"
        create = f"create it with its model: dbt run --select {name.identifier}"
        raise UnknownRelation(
            f"{name} {what}",
            where=where,
            why="rows are appended to existing tables, keyed or plain",
            fix=create if view is None or cloned else "append to the table that it reads",
        )
    refuse_side_table(name, state.properties)
    given = {
        "action": options.action,
        "sequence": options.sequence,
        "deduplicate_by": options.deduplicate_by,
    }
    for option, value in given.items():
        if value:
            raise ConfigError(
                f"{option} has no effect on the plain table {name}",
                where=where,
                why="a plain table has no key, so its rows are only added",
                fix=f"remove {option}, or give the model of the table a unique_key",
            )
    return state


def _refuse_automatic(table: KeyedTable, change: TableState) -> None:
    """Refuse rows for a table that is the result of a query: its next refresh would remove them.

    :raises ConfigError: the table belongs to an automatic model.
    """
    refuse_history(table, _where(table.name), "to which no rows are appended")
    if table.hidden or FINGERPRINT in consumed_versions(change.history()):
        raise ConfigError(
            f"{table.name} is the table of an automatic model",
            where=_where(table.name),
            why="it is exactly the result of the model's query, so the next refresh would remove these rows",
            fix="append to a table that the query reads",
        )


def _where(name: Name) -> str:
    return f"append to {name.schema}.{name.identifier}"


__all__ = ["AppendOptions", "Appended", "append_rows", "is_appended"]
