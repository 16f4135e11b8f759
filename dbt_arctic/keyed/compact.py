"""SQL for compaction: merges changes into the base, trims the change table, and rewrites files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dbt_arctic.keyed.columns_at import ColumnsAt, select_columns
from dbt_arctic.keyed.layout import Layout, partition_expression
from dbt_arctic.keyed.log import PROPERTY_MERGED, encode_merged
from dbt_arctic.keyed.names import Name, literal, quote, quote_all
from dbt_arctic.keyed.read import key_equality, newest_first
from dbt_arctic.keyed.table import ACTION, MARKER_TXN, TXN, KeyedTable

_INDEX_FILE_BYTES = 128 * 1024 * 1024

PROPERTY_NOTHING_TO_TRIM = "arctic.nothing-to-trim"
"""On a change table with a sequence: JSON of ``NothingToTrim``."""

_RANK = quote("_arctic_rank")
NULL_TEXT = "NULL"
_AS_TEXT = frozenset({"tinyint", "smallint", "int", "bigint", "date", "string", "boolean"})
"""Types of partition fields whose text in metadata is also valid in SQL."""
_JOINS = "spark.sql.sources.v2.bucketing"
_NOT_FOR_A_SESSION = (f"{_JOINS}.pushPartValues.enabled", f"{_JOINS}.allowCompatibleTransforms.enabled")
"""Join bucket by bucket even if one side lacks buckets or has twice as many. ``engine.settings`` explains why
a session must not set these. A merge may, because its join has only its own two scans."""
_AFFECTED_BUCKETS_ONLY = f"{_JOINS}.partition.filter.enabled"
"""Skip buckets of the base without changes; otherwise all of them are read. This is safe for a merge, because
base rows without a match do not change."""
_IN_PLACE = f"{_JOINS}.allowJoinKeysSubsetOfPartitionKeys.enabled"
"""Join by bucket only, because a key may move between user partitions. If a whole session set this, joins of
merge-on-read views would need a shuffle."""


@dataclass(frozen=True)
class Place:
    """One user partition of a base, by its values as strings, and some of its buckets."""

    values: tuple[str, ...]
    buckets: tuple[int, ...] = ()


@dataclass(frozen=True)
class NothingToTrim:
    """Records that a trim found only tombstones that must be kept. Such a trim makes no commit.

    :param merged_ms: the time of the newest merge that it considered.
    :param looked_ms: the time of the trim.
    """

    merged_ms: int
    looked_ms: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> NothingToTrim | None:
        """Read the record from the properties of a change table."""
        text = properties.get(PROPERTY_NOTHING_TO_TRIM)
        return cls(*json.loads(text)) if text else None

    def holds(self, table: KeyedTable, merged_ms: int, now_ms: int) -> bool:
        """Whether the record still covers merges up to a point in time.

        This ends when deletes may be removed.
        """
        return merged_ms <= self.merged_ms and now_ms < self.looked_ms + table.tombstone_retention_s * 1000


def can_be_named(table: KeyedTable) -> bool:
    """Whether SQL can select single partitions of a base."""
    fields = [
        partition_expression(field, table.base.catalog, "", table.types)
        for field in table.layout.partition_by
    ]
    return all(type_ in _AS_TEXT for _, type_ in fields)


def settings_for_merge(table: KeyedTable, transactions: Iterable[int]) -> list[str]:
    """The session settings for the statement of a merge, which must not affect other statements.

    ``MERGE`` reads snapshot properties only from the session.
    """
    set_for = {_session_property(): encode_merged(transactions)}
    set_for |= dict.fromkeys((*_NOT_FOR_A_SESSION, _AFFECTED_BUCKETS_ONLY, *_of_partitions(table)), "true")
    return [f"SET {quote(name)}={value}" for name, value in set_for.items()]


def settings_after_merge(table: KeyedTable) -> list[str]:
    """The statements that undo ``settings_for_merge``."""
    reset = (_session_property(), _AFFECTED_BUCKETS_ONLY, *_of_partitions(table))
    # Not reset to a default, because a shared server may have them set.
    off = [f"SET {quote(name)}=false" for name in _NOT_FOR_A_SESSION]
    return [*(f"RESET {quote(name)}" for name in reset), *off]


def _of_partitions(table: KeyedTable) -> tuple[str, ...]:
    return (_IN_PLACE,) if table.layout.partition_by else ()


def merge_changes(
    table: KeyedTable,
    change_snapshot: int,
    transactions: Iterable[int],
    branch: str,
    known: ColumnsAt | None = None,
) -> str:
    """SQL that merges the latest change of each key into a branch of the base.

    Only transactions that no earlier compaction merged are included. In commit order they contain the latest
    changes of their keys, because the merged ones are a prefix. With a sequence, a late change may have lost
    to a row of the base, or to a merged change that is still stored, in particular a tombstone.
    """
    listed = ", ".join(str(txn) for txn in sorted(transactions))
    columns = table.column_names
    assignments = ", ".join(f"b.{quote(column)} = c.{quote(column)}" for column in columns)
    values = ", ".join(f"c.{quote(column)}" for column in columns)
    wins, of_all = "", f"{quote(TXN)} IN ({listed}) AND "
    picked = ""
    if table.sequence_by:
        sequence = quote(table.sequence_by)
        wins = f" AND c.{sequence} >= b.{sequence}"
        of_all, picked = "", f" AND {quote(TXN)} IN ({listed})"
    return f"""\
MERGE INTO {table.base.branch(branch)} AS b
USING (
  SELECT {quote_all(columns)}, {quote(ACTION)}
  FROM (
    SELECT {select_columns(table, change_snapshot, known or {})}, {quote(ACTION)}, {quote(TXN)},
      row_number() OVER (PARTITION BY {quote_all(table.key)} ORDER BY {newest_first(table)}) AS {_RANK}
    FROM {table.change.at(change_snapshot)}
    WHERE {of_all}{quote(ACTION)} <> '-U'
  )
  WHERE {_RANK} = 1{picked}
) AS c
  ON {key_equality("b", "c", table.key)}
WHEN MATCHED AND c.{quote(ACTION)} = 'D'{wins} THEN DELETE
WHEN MATCHED{wins} THEN UPDATE SET {assignments}
WHEN NOT MATCHED AND c.{quote(ACTION)} <> 'D' THEN INSERT ({quote_all(columns)}) VALUES ({values})"""


def list_transactions(table: KeyedTable, change_snapshot: int) -> str:
    """SQL for the transactions with rows in the change table, for files that a rewrite has merged."""
    return f"SELECT DISTINCT {quote(TXN)}\nFROM {table.change.at(change_snapshot)}"


def list_kept_rows(table: KeyedTable, change_snapshot: int) -> str:
    """SQL that returns for each transaction in the change table whether it has rows other than deletes."""
    return (
        f"SELECT {quote(TXN)}, bool_or({quote(ACTION)} <> 'D')\n"
        f"FROM {table.change.at(change_snapshot)}\nGROUP BY {quote(TXN)}"
    )


def trim(table: KeyedTable, transactions: Iterable[int], keep_deletes: bool = False) -> str:
    """SQL that removes merged transactions from the change table.

    A data file holds one transaction, so this drops whole files by metadata alone. The condition is always a
    list and never a range, because commits do not land in ``_txn`` order.

    :param keep_deletes: whether deletes are kept, because an older row of their keys may still arrive.
    """
    listed = ", ".join(str(txn) for txn in sorted(transactions))
    kept = f" AND {quote(ACTION)} <> 'D'" if keep_deletes else ""
    return f"DELETE FROM {table.change.sql}\nWHERE {quote(TXN)} IN ({listed}){kept}"


def note_nothing_to_trim(table: KeyedTable, note: NothingToTrim) -> str:
    """The statement that stores the record."""
    name, value = literal(PROPERTY_NOTHING_TO_TRIM), literal(json.dumps([note.merged_ms, note.looked_ms]))
    return f"ALTER TABLE {table.change.sql} SET TBLPROPERTIES ({name} = {value})"


def rewrite_changes(table: KeyedTable, target_bytes: int, every_file: bool = False) -> str:
    """Compact the change table's files bucket by bucket. Rows keep their commit order.

    Bucket markers stay in their own files, which have no statistics, so that no plan skips a bucket.

    :param every_file: also rewrite files of sufficient size, into the current number of buckets.
    """
    where = f"{quote(TXN)} > {MARKER_TXN}"
    options = {"min-input-files": "2", "delete-ratio-threshold": "0.1"}
    if every_file:
        options = {"rewrite-all": "true"}
    return _rewrite(table.change, target_bytes, options, where)


def change_bucket_count(side: Name, layout: Layout, buckets: int) -> str:
    """Change the number of buckets for new files; existing files keep their buckets.

    :param layout: the layout with the old number of buckets.
    """
    column = quote(layout.bucket_by)
    return (
        f"ALTER TABLE {side.sql} REPLACE PARTITION FIELD bucket({layout.buckets}, {column}) "
        f"WITH bucket({buckets}, {column})"
    )


def rewrite_base(
    table: KeyedTable, buckets: Iterable[int], target_bytes: int, places: Sequence[Place] = ()
) -> str:
    """Rewrite base files sorted and without deleted rows, so that files of a bucket have disjoint key ranges.

    :param table: with the base's current number of buckets.
    :param buckets: the buckets to rewrite; empty for all.
    :param places: the partitions to rewrite, each with its buckets; empty for all.
    """
    options = {"rewrite-all": "true"}
    conditions = [_in_place(table, place) for place in places]
    where = " OR ".join(f"({one})" for one in conditions) or _in_buckets(table, buckets)
    order = ", ".join(f"{quote(column)} ASC NULLS FIRST" for column in table.layout.sort_by)
    return _rewrite(table.base, target_bytes, options, where, order)


def _in_place(table: KeyedTable, place: Place) -> str:
    conditions = []
    for field, text in zip(table.layout.partition_by, place.values, strict=True):
        value, type_ = partition_expression(field, table.base.catalog, "", table.types)
        is_it = f"{value} = {literal(text) if type_ == 'string' else f'CAST({literal(text)} AS {type_})'}"
        if text == NULL_TEXT:
            # An empty string stands for NULL in metadata, but may also be a value.
            is_it = f"({value} IS NULL OR {is_it})" if type_ == "string" else f"{value} IS NULL"
        conditions.append(is_it)
    in_buckets = _in_buckets(table, place.buckets)
    return " AND ".join([*conditions, in_buckets] if in_buckets else conditions)


def _in_buckets(table: KeyedTable, buckets: Iterable[int]) -> str:
    layout, numbers = table.layout, sorted(buckets)
    if not numbers or not layout.buckets:
        return ""
    bucket = layout.bucket_expression(table.base.catalog)
    return f"{bucket} IN ({', '.join(map(str, numbers))})"


def rewrite_plain(table: Name, target_bytes: int, every_file: bool = False) -> str:
    """Compact small files of a plain table, and files with many deleted rows.

    :param every_file: also rewrite all other files, into the current partitioning.
    """
    options = {"min-input-files": "2", "delete-ratio-threshold": "0.1"}
    return _rewrite(table, target_bytes, {"rewrite-all": "true"} if every_file else options)


def rewrite_index(name: Name, column: str) -> str:
    """Merge the small files of an index, sorted, so that a value is in few of its files."""
    options, sort_order = {"min-input-files": "2"}, f"{quote(column)} ASC NULLS FIRST"
    return _rewrite(name, _INDEX_FILE_BYTES, options, sort_order=sort_order)


def _rewrite(
    table: Name, target_bytes: int, options: Mapping[str, str], where: str = "", sort_order: str = ""
) -> str:
    listed = ", ".join(
        f"{literal(name)}, {literal(value)}"
        for name, value in {**options, "target-file-size-bytes": str(target_bytes)}.items()
    )
    arguments = [f"table => {table.procedure_argument()}"]
    if sort_order:
        arguments += ["strategy => 'sort'", f"sort_order => {literal(sort_order)}"]
    if where:
        arguments.append(f"where => {literal(where)}")
    arguments.append(f"options => map({listed})")
    return f"CALL {quote(table.catalog)}.system.rewrite_data_files({', '.join(arguments)})"


def _session_property() -> str:
    return f"spark.sql.iceberg.snapshot-property.{PROPERTY_MERGED}"
