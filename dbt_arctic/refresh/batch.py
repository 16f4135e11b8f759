"""Turns a model's SQL into a batch of upserts and deletes, with its columns as the table stores them.

Columns are checked by analysis only.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

from dbt_arctic.data_type import Atomic, parse_type
from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.errors import ConfigError, KeyColumnMissing, SchemaChanged
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.assignment import Mismatch, is_cast, stored_value, unstorable
from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.narrowing import TypeChange, exact_cast
from dbt_arctic.keyed.schema_difference import stored_type
from dbt_arctic.keyed.table import ACTION, METADATA_COLUMNS, UNAVAILABLE, Column, KeyedTable
from dbt_arctic.keyed.unavailable_values import completed
from dbt_arctic.refresh.config import KeyedConfig, match_columns

FILLING = ("append_new_columns", "sync_all_columns")
"""The values of ``on_schema_change`` with which a field that the model lacks becomes NULL."""


def require_distinct_names(config: KeyedConfig, schema: Sequence[ColumnInfo]) -> None:
    """Refuse column names that Spark considers equal, and reserved names.

    :raises ConfigError: two columns of a model differ only by case, or an automatic model has ``_action``.
    """
    names = [column.name for column in schema]
    times = Counter(name.lower() for name in names)
    twice = next((name for name in names if times[name.lower()] > 1), None)
    if twice is not None:
        raise ConfigError(
            f"the model has {counted(times[twice.lower()], 'column')} named {twice}",
            where=config.model,
            why=f"its columns are: {', '.join(names)}",
            fix="give each column a unique name, or select only one of them",
        )
    if config.is_automatic and ACTION in times:
        raise ConfigError(
            f"the model has a column {ACTION}, which an automatic model cannot use",
            where=config.model,
            why="its table is the result of its SQL; its rows are not changes",
            fix="filter the rows in WHERE, and remove or rename the column",
        )


def require_no_metadata_columns(model: str, names: Sequence[str]) -> None:
    """Refuse columns with the names of Iceberg's metadata columns, in any table.

    :raises ConfigError: a column has one of these names. Iceberg would store it, and the table could not be
        read.
    """
    reserved = [name for name in names if name.lower() in METADATA_COLUMNS]
    if reserved:
        raise ConfigError(
            f"the model returns {', '.join(reserved)}, which is a metadata column of Iceberg",
            where=model,
            why="a table that stores a column of this name cannot be read",
            fix="give the column another name with AS",
        )


def make_batch(
    config: KeyedConfig, sql: str, schema: Sequence[ColumnInfo], existing: KeyedTable | None
) -> Batch:
    """Build the batch of upserts and deletes for a table from the SQL of a model.

    :param schema: the columns of the SQL.
    :param existing: the table to write to; ``None`` for a table that is created with the columns of the
        model.
    :raises ConfigError: the columns do not fit.
    :raises KeyColumnMissing: the columns do not fit.
    :raises SchemaChanged: the columns do not fit.
    """
    require_distinct_names(config, schema)
    if existing is not None:
        require_storable(config, schema, existing)
    produced = tuple(column.name for column in schema)
    payload = tuple(column for column in produced if column.lower() not in (ACTION, UNAVAILABLE))
    lacks_values = UNAVAILABLE in {column.lower() for column in produced}
    if lacks_values:
        _require_order(config)
    key = match_columns(config.unique_key, produced)
    sequence_by = match_columns([config.sequence_by], produced)[0] if config.sequence_by else None
    stored = _without_collations(schema) if existing is None else existing.columns
    batch = Batch(
        model=config.model,
        sql=_as_stored(config.model, sql, key, sequence_by, schema, stored),
        key=key,
        columns=payload if existing is None else existing.column_names,
        model_columns=produced,
        deduplicate_by=config.deduplicate_by,
        delete_when=config.delete_when,
        checks=config.checks,
        sequence_by=sequence_by,
        unavailable=lacks_values,
        type_changes={} if existing is None else _type_changes(schema, (*key, sequence_by), existing.columns),
    )
    batch.check_columns()
    return completed(batch) if lacks_values and existing is None else batch


def _require_order(config: KeyedConfig) -> None:
    if config.sequence_by is None or config.is_partial:
        raise ConfigError(
            f"the model returns {UNAVAILABLE}, and "
            + ("does not set sequence_by" if config.sequence_by is None else "updates only some columns"),
            where=config.model,
            why=f"{UNAVAILABLE} names the values that a row lacks; they are those of the latest earlier row",
            fix="set sequence_by to the column that orders the changes, for instance _source_sequence; and "
            "remove merge_update_columns and merge_exclude_columns",
        )


def require_storable(
    config: KeyedConfig, schema: Sequence[ColumnInfo | Column], existing: KeyedTable
) -> None:
    """Refuse columns whose values the table cannot store exactly.

    :raises SchemaChanged: the values of a column would be changed when they are stored, or a struct lacks
        fields.
    """
    fill = config.on_schema_change in FILLING
    produced = ((one.name, one.type) for one in schema)
    found = unstorable(produced, ((one.name, one.type) for one in existing.columns), fill=fill)
    if found:
        raise not_storable(config.model, found)


def how_to_type(found: Sequence[Mismatch], otherwise: str) -> str:
    """The remedy for values that a statement or an append cannot store. A VOID column stores no value at all.

    :param otherwise: the remedy if none of the columns is VOID.
    """
    untyped = next((one for one in found if one.stored == "void"), None)
    if untyped is None:
        return otherwise
    return (
        f"give {untyped.path} a type first: run the model of the table with on_schema_change="
        f"'append_new_columns', and with a value of this type: cast(null as {untyped.produced})"
    )


def not_storable(model: str, found: Sequence[Mismatch]) -> SchemaChanged:
    """The error for values that a table would change when it stores them. Nothing was written."""
    return SchemaChanged(
        "the table cannot store the model's values without loss",
        where=model,
        why="; ".join(mismatch.describe() for mismatch in found),
        fix="cast the column in the model to the table's type, or rebuild the table: "
        f"dbt run --full-refresh --select {model}",
    )


def _without_collations(schema: Sequence[ColumnInfo]) -> tuple[Column, ...]:
    """The columns of a new table that lose a collation when they are stored, with their stored types.

    Otherwise keys that differ in the table would be equal in its first batch, and Iceberg cannot compute the
    bucket of a string with a collation.
    """
    collated = (column for column in schema if " collate " in column.type.lower())
    return tuple(Column(column.name, stored_type(column.type)) for column in collated)


def _as_stored(
    model: str,
    sql: str,
    key: Sequence[str],
    sequence_by: str | None,
    schema: Sequence[ColumnInfo],
    columns: Sequence[Column],
) -> str:
    """The SQL with its columns as the table stores them.

    Structs get their fields in the order of the table. Keys get the type of the table before rows with the
    same key are compared: values that differ in a wider type may be equal there. A key that does not fit the
    type becomes NULL, which is not allowed. The sequence is cast, too, because numbers and their texts have
    different orders.
    """
    stored = {column.name.lower(): column.type for column in columns}
    values = {
        column.name: _stored(model, column, stored[column.name.lower()], column.name in key)
        for column in schema
        if column.name.lower() in stored
    }
    for column in schema:
        type_ = stored.get(column.name.lower(), column.type)
        if column.name == sequence_by and column.name not in key and is_cast(column.type, type_):
            change = TypeChange(column.type, type_)
            value = stored_value(quote(column.name), column.type, type_)
            values[column.name] = exact_cast(value, change, column=column.name, where=model)
    if all(value == quote(name) for name, value in values.items()):
        return sql
    selected = ", ".join(
        quote(column.name)
        if values.get(column.name, quote(column.name)) == quote(column.name)
        else f"{values[column.name]} AS {quote(column.name)}"
        for column in schema
    )
    return f"SELECT {selected}\nFROM (\n{sql}\n)"


def _type_changes(
    schema: Sequence[ColumnInfo], cast: Sequence[str | None], columns: Sequence[Column]
) -> dict[str, TypeChange]:
    """The columns for which a model returns another type than the table stores.

    :param cast: those that have been cast.
    """
    produced = {column.name.lower(): column.type for column in schema if column.name not in cast}
    return {
        column.name: TypeChange(type_, column.type)
        for column in columns
        if (type_ := produced.get(column.name.lower(), column.type)) != column.type
    }


def _stored(model: str, column: ColumnInfo, type_: str, is_key: bool) -> str:
    value = stored_value(quote(column.name), column.type, type_)
    if not (is_key and is_cast(column.type, type_)):
        return value
    if isinstance(parse_type(type_), Atomic):
        return f"TRY_CAST({value} AS {type_})"
    # TRY_CAST would return a struct with NULL in the field that does not fit.
    return exact_cast(value, TypeChange(column.type, type_), column=column.name, where=model)


def model_columns(config: KeyedConfig, schema: Sequence[ColumnInfo]) -> tuple[Column, ...]:
    """The columns that the model produces, without ``_action``."""
    require_distinct_names(config, schema)
    columns = tuple(
        Column(name, type_) for name, type_ in schema if name.lower() not in (ACTION, UNAVAILABLE)
    )
    names = {column.name.lower() for column in columns}
    if config.sequence_by and config.sequence_by.lower() not in names:
        raise ConfigError(
            f"sequence_by is {config.sequence_by}, which the model does not return",
            where=config.model,
            why=f"its columns are: {', '.join(column.name for column in columns)}",
            fix=_meant(config.sequence_by, columns)
            or "select the column under that name, or correct sequence_by",
        )
    missing = [key for key in config.unique_key if key.lower() not in names]
    if missing:
        raise KeyColumnMissing(
            f"unique_key contains {', '.join(missing)}, which the model does not return",
            where=config.model,
            why=f"its columns are: {', '.join(column.name for column in columns)}",
            fix=_meant(missing[0], columns)
            or "select the key columns under these names, or correct unique_key",
        )
    return columns


def _meant(name: str, columns: Sequence[Column]) -> str:
    """A question about a similar column; empty if there is none."""
    by_lower = {column.name.lower(): column.name for column in columns}
    similar = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return f"did you mean {by_lower[similar[0]]}?" if similar else ""


def require_same_columns(model: str, table: Sequence[Column], produced: Sequence[Column]) -> None:
    """With ``on_schema_change: ignore``, require that the model still produces the columns of the table.

    :raises SchemaChanged: a column is missing.
    """
    names = {column.name.lower() for column in produced}
    gone = [column.name for column in table if column.name.lower() not in names]
    if gone:
        raise SchemaChanged(
            f"the model no longer returns {', '.join(gone)}",
            where=model,
            why="on_schema_change is 'ignore', but a run writes all columns of the table",
            fix="set on_schema_change to 'append_new_columns' (keeps the column, NULL from now on) or "
            f"'sync_all_columns' (drops it), or run: dbt run --full-refresh --select {model}",
        )
