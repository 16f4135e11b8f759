"""DDL of a keyed table: a new generation, the view that publishes it, and schema evolution."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dbt_arctic.keyed.float_statistics import no_float_statistics
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.schema_difference import Path
from dbt_arctic.keyed.table import (
    ACTION,
    OFFSET,
    PROPERTY_CREATED,
    PROPERTY_ID,
    PROPERTY_OF,
    PROPERTY_TOMBSTONES,
    TXN,
    Column,
    KeyedTable,
)

_FANOUT = "write.spark.fanout.enabled"
BASE_DEFAULTS = {
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.delete.mode": "merge-on-read",
    # Compaction joins bucket by bucket and writes each row to its own bucket, so it needs no shuffle.
    "write.distribution-mode": "none",
    "write.merge.distribution-mode": "none",
    _FANOUT: "true",
    # Small row groups let a key range skip most of a sorted file. Even smaller ones would slow full scans
    # down.
    "write.parquet.row-group-size-bytes": str(4 * 1024 * 1024),
}
PARTITIONED_DEFAULTS = {**BASE_DEFAULTS, _FANOUT: "false"}
PROPERTY_DROPPED_BY = "arctic.dropped-by"
"""On a side table: the run that is about to drop it. That run sets the property before it reads the views a
last time. A run that publishes a generation checks for it afterwards, so one of the two sees the other."""

_FINISHED = "arctic.finished"
_DEFAULT_METRICS = "write.metadata.metrics.default"
CHANGE_DEFAULTS = {
    "write.distribution-mode": "hash",
    "write.delete.mode": "merge-on-read",
    # Compaction determines the transactions in a file from its bounds.
    f"write.metadata.metrics.column.{TXN}": "full",
    # Before-images have NULL there, so their number in a file is known from its statistics.
    f"write.metadata.metrics.column.{OFFSET}": "counts",
    # Files of bucket markers have no statistics, so that no plan skips them; see `keep_statistics` and
    # `write.mark_buckets`.
    _DEFAULT_METRICS: "none",
}


def base_defaults(layout: Layout) -> Mapping[str, str]:
    """The default properties of a base table.

    Without partitions, a task that merges changes has an open file for each of its few buckets. With
    partitions it may have thousands, so rows are sorted by partition and the files are written one by one.
    """
    return PARTITIONED_DEFAULTS if layout.partition_by else BASE_DEFAULTS


def create_base(table: KeyedTable, created_ms: int, properties: Mapping[str, str], comment: str = "") -> str:
    """The statement that creates the base table.

    :param comment: the comment of the view, because other engines read the base table directly.
    """
    described = {"comment": comment} if comment else {}
    described_as = identity(table, table.generation.base_id, created_ms)
    defaults = {**base_defaults(table.layout), **_no_float_statistics(table.columns)}
    merged = {**defaults, **described, **properties, **described_as, **table.side_properties()}
    return _create_table(table.base, table.columns, table, merged, table.required)


def order_base(table: KeyedTable, name: Name | None = None) -> str:
    """The statement that sets the sort order of the base, so that a range of keys skips most files.

    :param name: the current name of the table if it differs.
    """
    return f"ALTER TABLE {(name or table.base).sql} WRITE LOCALLY ORDERED BY {table.layout.order_clause()}"


def create_change(table: KeyedTable, created_ms: int) -> str:
    """The statement that creates the change table."""
    system = (Column(ACTION, "string"), Column(OFFSET, "bigint"), Column(TXN, "bigint"))
    described_as = identity(table, table.generation.change_id, created_ms)
    properties = {**CHANGE_DEFAULTS, **_no_float_statistics(table.columns), **described_as}
    return _create_table(table.change, (*table.columns, *system), table, properties)


def keep_statistics(table: KeyedTable) -> str:
    """The statement that enables column statistics for new change files.

    It follows the bucket markers.
    """
    return f"ALTER TABLE {table.change.sql} UNSET TBLPROPERTIES ({literal(_DEFAULT_METRICS)})"


def leave_statistics_out(table: KeyedTable) -> str:
    """The statement that disables statistics other than those of ``_txn``.

    It comes before the bucket markers of an existing table.

    It also records permanently that the build of the table is finished.
    """
    properties = {_DEFAULT_METRICS: "none", _FINISHED: "true"}
    return f"ALTER TABLE {table.change.sql} SET TBLPROPERTIES ({_property_list(properties)})"


def keeps_statistics(change_properties: Mapping[str, str]) -> bool:
    """Whether new change files have column statistics."""
    return _DEFAULT_METRICS not in change_properties


def has_replaced_markers(change_properties: Mapping[str, str]) -> bool:
    """Whether bucket markers were replaced, or a replacement was started."""
    return _FINISHED in change_properties


def is_finished(change_properties: Mapping[str, str]) -> bool:
    """Whether a build has reached ``keep_statistics``, so that only publishing it remains."""
    return keeps_statistics(change_properties) or _FINISHED in change_properties


def publish_view(
    table: KeyedTable,
    comment: str = "",
    properties: Mapping[str, str] | None = None,
    *,
    replaces: bool = True,
) -> str:
    """The atomic statement that publishes a generation: names, key, layout, columns.

    :param replaces: whether it replaces a view or record of that name; otherwise it fails if there is one.
    """
    verb = "CREATE OR REPLACE" if replaces else "CREATE"
    if not table.has_view:
        listed = ",\n  ".join(_table_column(column, False) for column in table.visible.columns)
        # The comment is always written, because a replaced record keeps the properties of the old one.
        described_as = {"format-version": "3", "comment": comment, **(properties or {})}
        named = _property_list({**described_as, **table.to_properties()})
        record = table.described_by.sql
        return f"{verb} TABLE {record} (\n  {listed}\n)\nUSING iceberg\nTBLPROPERTIES ({named})"
    columns = ", ".join(_view_column(column) for column in table.visible.columns)
    described = f"\nCOMMENT {literal(comment)}" if comment else ""
    everything = {**(properties or {}), **table.to_properties()}
    return (
        f"{verb} VIEW {table.name.sql} ({columns}){described}\n"
        f"TBLPROPERTIES ({_property_list(everything)})\nAS\n{merge_on_read(table.visible)}"
    )


def set_retention(table: KeyedTable) -> str:
    """Set how long tombstones are kept. Readers do not depend on it, so the view's query is unchanged."""
    properties = {PROPERTY_TOMBSTONES: str(table.tombstone_retention_s)}
    return f"{alter_description(table)} SET TBLPROPERTIES ({_property_list(properties)})"


def add_columns(table: Name, columns: Sequence[tuple[Path, str]]) -> str:
    """The statement that adds columns and nested fields.

    :param columns: paths with their types.
    """
    listed = ", ".join(f"{_path(path)} {type_}" for path, type_ in columns)
    return f"ALTER TABLE {table.sql} ADD COLUMNS ({listed})"


def leave_float_statistics_out(table: Name, columns: Sequence[tuple[Path, str]]) -> str:
    """The statement that disables the statistics of added floating-point columns; empty if there are none.

    :param columns: the added columns: paths with their types.
    """
    properties = no_float_statistics(columns)
    return f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({_property_list(properties)})" if properties else ""


def drop_columns(table: Name, columns: Sequence[Path]) -> str:
    """The statement that drops columns and nested fields."""
    return f"ALTER TABLE {table.sql} DROP COLUMNS ({', '.join(map(_path, columns))})"


def widen_column(table: Name, column: Path, type_: str) -> str:
    """The statement that widens the type of a column."""
    return f"ALTER TABLE {table.sql} ALTER COLUMN {_path(column)} TYPE {type_}"


def _path(path: Path) -> str:
    return ".".join(map(quote, path))


def drop_not_null(table: Name, columns: Sequence[Path]) -> str:
    """The statement that drops NOT NULL from columns and nested fields."""
    listed = ", ".join(f"{_path(column)} DROP NOT NULL" for column in columns)
    return f"ALTER TABLE {table.sql} ALTER COLUMN {listed}"


def comment_columns(table: Name, comments: Mapping[str, str]) -> str:
    """The statement that sets comments of columns."""
    listed = ", ".join(f"{quote(column)} COMMENT {literal(text)}" for column, text in comments.items())
    return f"ALTER TABLE {table.sql} ALTER COLUMN {listed}"


def comment_table(table: Name, comment: str) -> str:
    """The statement that sets the comment of a table."""
    return f"COMMENT ON TABLE {table.sql} IS {literal(comment)}"


def rename_table(table: Name, to: Name) -> str:
    """The statement that renames a table."""
    # Iceberg expects the new name without the catalog.
    return f"ALTER TABLE {table.sql} RENAME TO {quote(to.schema)}.{quote(to.identifier)}"


def drop_table(table: Name) -> str:
    """The statement that drops a table and its files."""
    return f"DROP TABLE IF EXISTS {table.sql} PURGE"


def forget_previous(table: KeyedTable) -> str:
    """The statement that removes the previous generation from the view.

    It runs before the drop, so that the view never refers to a dropped table.
    """
    return f"{alter_description(table)} SET TBLPROPERTIES ({literal('arctic.previous')} = '')"


def name_previous(table: KeyedTable) -> str:
    """The statement that records the generation of a table as the previous one in the view."""
    named = {"arctic.previous": json.dumps(table.generation.to_list())}
    return f"{alter_description(table)} SET TBLPROPERTIES ({_property_list(named)})"


def alter_description(table: KeyedTable) -> str:
    """The beginning of a statement that alters the view or the record of a table."""
    return f"ALTER {'VIEW' if table.has_view else 'TABLE'} {table.described_by.sql}"


def announce_drop(table: Name, run_id: str) -> str:
    """The statement that announces the drop of a side table."""
    return f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({_property_list({PROPERTY_DROPPED_BY: run_id})})"


def withdraw_drop(table: Name) -> str:
    """The statement that withdraws an announced drop."""
    return f"ALTER TABLE {table.sql} UNSET TBLPROPERTIES IF EXISTS ({literal(PROPERTY_DROPPED_BY)})"


def name_after_sides(table: KeyedTable) -> str:
    """The statement that gives a renamed table the name from which those of its side tables are derived."""
    back = replace(table, name=table.storage_name).described_by
    return f"{alter_description(table)} RENAME TO {back.schema}.{back.identifier}"


def drop_description(table: KeyedTable) -> str:
    """The statement that drops the view or the record of a table."""
    return drop_view(table.name) if table.has_view else drop_table(table.described_by)


def drop_view(view: Name) -> str:
    """The statement that drops a view."""
    return f"DROP VIEW IF EXISTS {view.sql}"


def _create_table(
    name: Name,
    columns: Sequence[Column],
    table: KeyedTable,
    properties: Mapping[str, str],
    required: Sequence[str] = (),
) -> str:
    listed = ",\n  ".join(_table_column(column, column.name in required) for column in columns)
    everything = {"format-version": "3", **properties}
    fields = table.layout.partition_clause()
    partitioned = f"PARTITIONED BY ({fields})\n" if fields else ""
    return (
        f"CREATE TABLE {name.sql} (\n  {listed}\n)\nUSING iceberg\n{partitioned}"
        f"TBLPROPERTIES ({_property_list(everything)})"
    )


def _no_float_statistics(columns: Sequence[Column]) -> dict[str, str]:
    return no_float_statistics(((column.name,), column.type) for column in columns)


def identity(table: KeyedTable, table_id: str, created_ms: int) -> dict[str, str]:
    """The properties of a side table that identify it and its keyed table."""
    return {PROPERTY_OF: table.storage_name.dotted, PROPERTY_ID: table_id, PROPERTY_CREATED: str(created_ms)}


def _property_list(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(name)} = {literal(value)}" for name, value in sorted(properties.items()))


def _table_column(column: Column, required: bool) -> str:
    not_null = " NOT NULL" if required else ""
    comment = f" COMMENT {literal(column.comment)}" if column.comment else ""
    return f"{quote(column.name)} {column.type}{not_null}{comment}"


def _view_column(column: Column) -> str:
    comment = f" COMMENT {literal(column.comment)}" if column.comment else ""
    return f"{quote(column.name)}{comment}"
