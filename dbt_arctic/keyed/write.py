"""SQL for writes to a keyed table, each in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_arctic.keyed.batch import BUCKET, Batch
from dbt_arctic.keyed.log import PROPERTY_TXN
from dbt_arctic.keyed.names import Name, quote, quote_all
from dbt_arctic.keyed.table import ACTION, MARKER_TXN, OFFSET, TXN, Column, KeyedTable
from dbt_arctic.keyed.write_options import AS_IT_IS, partition_options, write_options

_BUCKET = quote(BUCKET)

_OPEN_FILES = 64
"""Maximum number of files that a task writes concurrently, each with buffered rows in memory."""


def insert_into_change(
    table: KeyedTable,
    batch: Batch,
    txn: int,
    properties: Mapping[str, str],
    branch: str | None = None,
    cores: int | None = None,
    in_one_task: bool = False,
) -> str:
    """SQL of the single commit of a batch: an append to the change table, on main or on a branch.

    :param table: with the current number of buckets of its change table.
    :param cores: the number of Spark's cores, if known. If it is not above the number of buckets, rows are
        shuffled once; those of a single bucket always are, because a single task writes them.
    :param in_one_task: whether a single task computes the few rows of ``batch``, and writes them.
    """
    target = table.change.sql if branch is None else table.change.branch(branch)
    bucket = "" if in_one_task else _bucket_of_a_task(table, batch, cores)
    # Rows were already shuffled by bucket, so Iceberg need not shuffle them again. If the number of buckets
    # has changed since, a task writes several buckets.
    options = partition_options(table.layout) or (AS_IT_IS if bucket or in_one_task else {})
    rows = batch.one_row_per_key(txn, bucket=bucket)
    return _insert(target, batch.columns, {PROPERTY_TXN: str(txn), **properties}, rows, options)


def insert_rows(table: KeyedTable, txn: int, properties: Mapping[str, str], select: str, branch: str) -> str:
    """SQL of the single commit of a computed write: appends complete rows to a branch of the change table."""
    written, options = {PROPERTY_TXN: str(txn), **properties}, partition_options(table.layout)
    return _insert(table.change.branch(branch), table.column_names, written, select, options)


def fill_base(
    table: KeyedTable, batch: Batch, properties: Mapping[str, str], cores: int | None = None
) -> str:
    """SQL of the rows of a new generation: upserts only, checked like every batch.

    If ``batch.is_checked_as_stored``, duplicates must be checked afterwards.

    :param cores: the number of Spark's cores, if known; see ``insert_into_change``.
    """
    columns, layout, as_stored = quote_all(batch.columns), table.layout, batch.is_checked_as_stored
    own = "" if as_stored else _bucket_of_a_task(table, batch, cores)
    # The check is in a filter here, because the base has no column that could store it. The task number makes
    # it nondeterministic, so Spark does not push it below a join or an aggregate, where it would check other
    # rows. Deletes are left out by the same comparison: Spark would evaluate a condition of its own first.
    rows = (
        f"SELECT {columns}\nFROM (\n{batch.one_row_per_key(0, as_stored=as_stored, bucket=own)}\n)\n"
        f"WHERE {quote(OFFSET)} = CASE WHEN {quote(ACTION)} = 'U' THEN least(spark_partition_id(), 0) END"
    )
    options = {"distribution-mode": "hash", **partition_options(layout)}
    bucket = _own_buckets(table)
    if bucket and not own:
        # A large bucket is split between tasks.
        rows = (
            f"SELECT {columns}\nFROM (\nSELECT /*+ REBALANCE({_BUCKET}) */ *\nFROM (\n"
            f"SELECT *, {bucket} AS {_BUCKET}\nFROM (\n{rows}\n)\n)\n)"
        )
    if bucket:
        # Iceberg would sort by bucket and then by key. A task has few buckets and one file for each of them
        # anyway, and Spark sorts faster by a single column.
        options = AS_IT_IS
        rows = f"{rows}\nSORT BY {layout.order_clause()}"
    return f"INSERT INTO {table.base.sql} WITH ({write_options(properties, options)}) ({columns})\n{rows}"


def fill_tombstones(table: KeyedTable, batch: Batch, txn: int, properties: Mapping[str, str]) -> str:
    """SQL of the deletes in a new generation with a sequence: older rows of their keys may arrive."""
    columns = quote_all([*batch.columns, ACTION, OFFSET, TXN])
    select = f"SELECT {columns}\nFROM (\n{batch.one_row_per_key(txn)}\n)\nWHERE {quote(ACTION)} = 'D'"
    written, options = {PROPERTY_TXN: str(txn), **properties}, partition_options(table.layout)
    return _insert(table.change.sql, batch.columns, written, select, options)


def mark_buckets(table: KeyedTable, properties: Mapping[str, str], offset: str = "0L") -> str:
    """SQL of the first commit of a change table: a marker row in each bucket, which is never trimmed.

    Spark joins without a shuffle only if both sides have the same buckets. Without markers, a change table
    that is empty or has changes in some buckets would be shuffled. Every read of changes excludes markers,
    because they look like before-images. A type with too few values for all buckets gets fewer markers, which
    costs a shuffle but no row.

    A single task computes and writes the markers: shuffles would take longer than these few rows.

    :param offset: SQL of 0, which fails if the table must not be published.
    """
    bucket_by = next(column for column in table.columns if column.name == table.layout.bucket_by)
    buckets, layout = table.layout.buckets, table.layout
    row = ", ".join(
        quote(column.name) if column is bucket_by else f"CAST(NULL AS {column.type}) AS {quote(column.name)}"
        for column in table.columns
    )
    value = quote(bucket_by.name)
    # An adopted table without buckets has one marker, because it joins with a shuffle in any case.
    each = layout.bucket_expression(table.name.catalog) if buckets else "true"
    select = f"""\
SELECT {row}, '-U', {offset}, {MARKER_TXN}L
FROM (
  SELECT min({value}) AS {value}
  FROM (SELECT {_numbered(bucket_by.type)} AS {value} FROM range(0, {16 * buckets + 64}, 1, 1))
  WHERE {value} IS NOT NULL
  GROUP BY {each}
)"""
    options = AS_IT_IS if buckets <= _OPEN_FILES else {}
    return _insert(table.change.sql, table.column_names, properties, select, options)


def _numbered(type_: str) -> str:
    """SQL of a value of the type for each ``id``; NULL if there are not enough values."""
    expressions = {
        "date": "date_add(DATE'1970-01-01', CAST(id AS INT))",
        "timestamp": "timestamp_seconds(id)",
        "timestamp_ntz": "CAST(timestamp_seconds(id) AS TIMESTAMP_NTZ)",
        "binary": "CAST(CAST(id AS STRING) AS BINARY)",
    }
    return expressions.get(type_, f"try_cast(id AS {type_})")


def empty_commit_sql(table: Name, branch: str, columns: Sequence[str], properties: Mapping[str, str]) -> str:
    """The statement for an empty commit on a branch, whose properties repeat those of an expiring commit."""
    listed = quote_all(columns)
    return (
        f"INSERT INTO {table.branch(branch)} WITH ({write_options(properties)}) ({listed})\n"
        f"SELECT {listed}\nFROM {table.sql}\nWHERE false"
    )


def insert_plain(target: str, columns: Sequence[Column], properties: Mapping[str, str], select: str) -> str:
    """SQL of an append to a plain table, on main or on a branch."""
    listed = quote_all(column.name for column in columns)
    return f"INSERT INTO {target} WITH ({write_options(properties)}) ({listed})\n{select}"


def _bucket_of_a_task(table: KeyedTable, batch: Batch, cores: int | None) -> str:
    """SQL of the bucket of a row if the rows of a bucket are compared, sorted and written by a single task.

    Otherwise empty: there would be fewer tasks than cores, or the rows are counted already.
    """
    buckets = table.layout.buckets
    once = cores is not None and (cores <= buckets or buckets == 1) and not batch.counted
    return _own_buckets(table, as_stored=True) if once else ""


def _own_buckets(table: KeyedTable, *, as_stored: bool = False) -> str:
    """SQL of the bucket of a row if rows are shuffled here; otherwise empty, and Iceberg shuffles them."""
    layout = table.layout
    if not 0 < layout.buckets <= _OPEN_FILES or layout.partition_by:
        return ""
    # The batch may have a different type for the column, which the table casts.
    cast = f"TRY_CAST({quote(layout.bucket_by)} AS {table.types[layout.bucket_by]})" if as_stored else ""
    return layout.bucket_expression(table.name.catalog, cast)


def _insert(
    target: str,
    columns: Sequence[str],
    properties: Mapping[str, str],
    select: str,
    options: Mapping[str, str] | None = None,
) -> str:
    listed = write_options(properties, options or {})
    with_ = f" WITH ({listed})" if listed else ""
    return f"INSERT INTO {target}{with_} ({quote_all([*columns, ACTION, OFFSET, TXN])})\n{select}"
