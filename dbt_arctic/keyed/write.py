"""SQL for writes to a keyed table: a batch reduced to one row per key, and its commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dbt_arctic.errors import ConfigError, KeyColumnMissing
from dbt_arctic.keyed.checks import Check, raise_error_sql, shown_row, when_broken
from dbt_arctic.keyed.log import PROPERTY_TXN
from dbt_arctic.keyed.names import Name, quote, quote_all
from dbt_arctic.keyed.table import ACTION, MARKER_TXN, OFFSET, RESERVED_COLUMNS, TXN, Column, KeyedTable
from dbt_arctic.keyed.write_options import AS_IT_IS, partition_options, write_options

ROWS_OF_KEY = "_arctic_rows"
"""The number of rows in a batch with the key of a row, if the batch already has it."""

_ROWS = quote(ROWS_OF_KEY)
_RANK = quote("_arctic_rank")

_BUCKET = quote("_arctic_bucket")

_OPEN_FILES = 64
"""Maximum number of files that a task writes concurrently, each with buffered rows in memory."""


@dataclass(frozen=True)
class Batch:
    """The SQL of a model as upserts and deletes of keys.

    :param sql: the compiled SQL of the model.
    :param columns: the columns to write, in the order of the table. Columns that the model lacks are NULL.
    :param model_columns: the columns of the SQL.
    :param deduplicate_by: SQL expressions; of several rows with one key, the greatest wins.
    :param sequence_by: the column that orders the changes of a key; it takes precedence over
        ``deduplicate_by``.
    :param delete_when: SQL condition over the model's columns; rows for which it is true are deletes.
    :param images: whether some rows are before-images, ``-U``, of keys that have another row in the batch.
    :param counted: whether the SQL has ``ROWS_OF_KEY``.
    :param unavailable: whether the SQL has ``UNAVAILABLE``, the columns whose values a row lacks.
    :param checks: constraints on every stored row; a delete stores only its key.
    :param stored_types: by column, the type of the table, where the SQL returns another one.
    """

    model: str
    sql: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    model_columns: tuple[str, ...]
    deduplicate_by: tuple[str, ...] = ()
    delete_when: str | None = None
    checks: tuple[Check, ...] = ()
    sequence_by: str | None = None
    images: bool = False
    counted: bool = False
    unavailable: bool = False
    stored_types: Mapping[str, str] = field(default_factory=dict)

    @property
    def can_delete(self) -> bool:
        """Whether any of its rows may be a delete."""
        return self.has_action or bool(self.delete_when)

    @property
    def has_action(self) -> bool:
        """Whether the SQL has a column ``_action``."""
        return ACTION in self._produced

    @property
    def _produced(self) -> frozenset[str]:
        """The columns that the SQL returns, in lower case, because Spark's names are case-insensitive."""
        return frozenset(column.lower() for column in self.model_columns)

    def check_columns(self) -> None:
        """Check the batch before any statement runs.

        :raises KeyColumnMissing: the SQL does not return a key column.
        :raises ConfigError: another setting refers to a missing column, or a column name is reserved.
        """
        missing = [column for column in self.key if column not in self.model_columns]
        if missing:
            raise KeyColumnMissing(
                f"unique_key contains {', '.join(missing)}, which the model does not return",
                where=self.model,
                why=f"its columns are: {', '.join(self.model_columns)}",
                fix="select the key columns under these names, or correct unique_key",
            )
        if self.sequence_by is not None and self.sequence_by.lower() not in self._produced:
            raise ConfigError(
                f"sequence_by is {self.sequence_by}, which the model does not return",
                where=self.model,
                why=f"its columns are: {', '.join(self.model_columns)}",
                fix="select the column under that name, or correct sequence_by",
            )
        reserved = [
            column
            for column in self.model_columns
            if column.lower() in RESERVED_COLUMNS and column.lower() != ACTION
        ]
        if reserved:
            raise ConfigError(
                f"the model returns {', '.join(reserved)}, which is a reserved name of keyed tables",
                where=self.model,
                fix="give the column another name with AS",
            )

    @property
    def is_checked_as_stored(self) -> bool:
        """Whether duplicate keys can be found in a new table after it is written.

        This requires that nothing compares the rows of a key, and that none of them is a delete, which a base
        does not store.
        """
        return not (self.counted or self.can_delete or self.sequence_by or self.deduplicate_by)

    def one_row_per_key(self, txn: int, *, as_stored: bool = False, bucket: str = "") -> str:
        """SQL with one row per key: the columns, ``_action``, ``_offset`` and ``_txn``.

        NULL keys, ambiguous duplicates and rows that violate a constraint fail the statement from inside the
        column ``_offset``, which is stored, so that no optimization can drop the check.

        :param as_stored: whether duplicates are left to ``duplicates_in``.
        :param bucket: SQL of the bucket of a row. Rows are shuffled by bucket before they are grouped by key,
            and stay there.
        """
        source, key = self.sql, quote_all(self.key)
        if bucket:
            source = f"SELECT *, {bucket} AS {_BUCKET}\nFROM (\n{source}\n)\nDISTRIBUTE BY {_BUCKET}"
            key = f"{_BUCKET}, {key}"
        ordering = [*([quote(self.sequence_by)] if self.sequence_by else []), *self.deduplicate_by]
        if ordering:
            order = ", ".join(f"({expression}) DESC NULLS LAST" for expression in ordering)
            source = (
                "SELECT *\nFROM (\n"
                f"  SELECT *, rank() OVER (PARTITION BY {key} ORDER BY {order}) AS {_RANK}\n"
                f"  FROM (\n{source}\n  )\n)\nWHERE {_RANK} = 1"
            )
        selected = ", ".join(map(self._selected, self.columns))
        if not self.counted and not as_stored:
            rows = f"count({self._changes}) OVER (PARTITION BY {key})"
            source = f"  SELECT *, {rows} AS {_ROWS}\n  FROM (\n{source}\n  )"
        return f"""\
SELECT {selected},
  {self.action_sql} AS {quote(ACTION)},
  {self._check(as_stored)} AS {quote(OFFSET)},
  CAST({txn} AS BIGINT) AS {quote(TXN)}
FROM (
{source}
)"""

    def _selected(self, column: str) -> str:
        name = quote(column)
        if column.lower() not in self._produced:
            return f"NULL AS {name}"
        return f"{self.in_stored_type(column, name)} AS {name}" if column in self.stored_types else name

    def in_stored_type(self, column: str, value: str) -> str:
        """SQL of a value. Spark would convert stored values next to it to the type of the batch."""
        type_ = self.stored_types.get(column)
        return value if type_ is None else f"CAST({value} AS {type_})"

    @property
    def _changes(self) -> str:
        return f"CASE WHEN {quote(ACTION)} <> '-U' THEN 1 END" if self.images else "*"

    @property
    def action_sql(self) -> str:
        """SQL of ``_action``, which fails for a value that is not one of the known ones."""
        conditions = []
        known = "'U', 'D', '-U'" if self.images else "'U', 'D'"
        if self.has_action:
            unknown = raise_error_sql(
                "AR-301",
                "_action has a value that is neither 'U' (upsert) nor 'D' (delete): ",
                f"coalesce(CAST({quote(ACTION)} AS STRING), 'NULL')",
                self.model,
                "",
                "map the source's codes to 'U' and 'D' in the model",
            )
            conditions.append(
                f"WHEN {quote(ACTION)} IS NULL OR {quote(ACTION)} NOT IN ({known}) THEN {unknown}"
            )
            conditions.append(f"WHEN {quote(ACTION)} = 'D' THEN 'D'")
            if self.images:
                conditions.append(f"WHEN {quote(ACTION)} = '-U' THEN '-U'")
        if self.delete_when:
            end = "\n" if "--" in self.delete_when else ""  # the condition may end with a comment
            conditions.append(f"WHEN ({self.delete_when}{end}) THEN 'D'")
        return f"CASE {' '.join(conditions)} ELSE 'U' END" if conditions else "'U'"

    def duplicates_in(self, base: Name, *, in_place: bool) -> str:
        """SQL that returns 0 if each key of a base has one row, and otherwise fails. Reads only keys.

        :param in_place: bucket by bucket, each in one task; otherwise keys are shuffled.
        """
        key = quote_all(self.key)
        keys = base.sql if in_place else f"(SELECT /*+ REPARTITION({key}) */ {key} FROM {base.sql}) AS k"
        return (
            f"coalesce((\n  SELECT max({self._duplicate()})\n"
            f"  FROM (SELECT {key} FROM {keys} GROUP BY {key} HAVING count(1) > 1) AS doubled\n), 0L)"
        )

    def _duplicate(self) -> str:
        error = raise_error_sql(
            "AR-304",
            "several rows of a batch have the same key: ",
            self._shown_key,
            self.model,
            "it is unknown which of them is the latest",
            "make unique_key unique in the model, or, unless it is automatic, "
            "set deduplicate_by to the column that orders them",
        )
        return f"CAST({error} AS BIGINT)"

    @property
    def _shown_key(self) -> str:
        return shown_row(self.key)

    def _check(self, as_stored: bool) -> str:
        row = self._shown_key
        any_null = " OR ".join(f"{quote(column)} IS NULL" for column in self.key)
        null_key = raise_error_sql(
            "AR-303",
            "a row has NULL in its key: ",
            row,
            self.model,
            "a key must identify the row that an update or delete is meant for",
            "filter these rows out in the model, or give them a key with coalesce()",
        )
        duplicate = "" if as_stored else f"WHEN {_ROWS} > 1 THEN {self._duplicate()}"
        action = self.action_sql
        only_if = "" if action == "'U'" else f"{action} = 'U'"
        broken = "".join(
            f"\n    {branch}" for branch in when_broken(self.checks, self.key, self.model, only_if)
        )
        # A before-image is not a change and has no offset; file statistics then give the number of
        # before-images.
        no_change = f"WHEN {quote(ACTION)} = '-U' THEN CAST(NULL AS BIGINT) " if self.images else ""
        no_place = ""
        if self.sequence_by:
            null_sequence = raise_error_sql(
                "AR-309",
                f"a row has NULL in {self.sequence_by}: ",
                row,
                self.model,
                "sequence_by orders the changes of a key, and NULL cannot be ordered",
                "filter these rows out in the model, or give them a value with coalesce()",
            )
            no_place = f"WHEN {quote(self.sequence_by)} IS NULL THEN CAST({null_sequence} AS BIGINT) "
        return (
            f"CASE WHEN {any_null} THEN CAST({null_key} AS BIGINT) {no_place}{no_change}"
            f"{duplicate}{broken} ELSE 0L END"
        )


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
    buckets = table.layout.buckets
    once = cores is not None and (cores <= buckets or buckets == 1) and not batch.counted
    bucket = _own_buckets(table, as_stored=True) if once and not in_one_task else ""
    # Rows were already shuffled by bucket, so Iceberg need not shuffle them again. If the number of buckets
    # has changed since, a task writes several buckets.
    options = partition_options(table.layout) or (AS_IT_IS if bucket or in_one_task else {})
    rows = batch.one_row_per_key(txn, bucket=bucket)
    return _insert(target, batch.columns, {PROPERTY_TXN: str(txn), **properties}, rows, options)


def insert_rows(table: KeyedTable, txn: int, properties: Mapping[str, str], select: str, branch: str) -> str:
    """SQL of the single commit of a computed write: appends complete rows to a branch of the change table."""
    written, options = {PROPERTY_TXN: str(txn), **properties}, partition_options(table.layout)
    return _insert(table.change.branch(branch), table.column_names, written, select, options)


def fill_base(table: KeyedTable, batch: Batch, properties: Mapping[str, str]) -> str:
    """SQL of the rows of a new generation: upserts only, checked like every batch.

    If ``batch.is_checked_as_stored``, duplicates must be checked afterwards.
    """
    columns, layout = quote_all(batch.columns), table.layout
    # The check is in a filter here, because the base has no column that could store it. The task number makes
    # it nondeterministic, so Spark does not push it below a join or an aggregate, where it would check other
    # rows.
    rows = (
        f"SELECT {columns}\nFROM (\n{batch.one_row_per_key(0, as_stored=batch.is_checked_as_stored)}\n)\n"
        f"WHERE {quote(OFFSET)} = least(spark_partition_id(), 0) AND {quote(ACTION)} = 'U'"
    )
    options = {"distribution-mode": "hash", **partition_options(layout)}
    if bucket := _own_buckets(table):
        # Iceberg would sort by bucket and then by key. A task has few buckets and one file for each of them
        # anyway, and Spark sorts faster by a single column. A large bucket is split between tasks.
        options = AS_IT_IS
        rows = (
            f"SELECT {columns}\nFROM (\nSELECT /*+ REBALANCE({_BUCKET}) */ *\nFROM (\n"
            f"SELECT *, {bucket} AS {_BUCKET}\nFROM (\n{rows}\n)\n)\n)\nSORT BY {layout.order_clause()}"
        )
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
