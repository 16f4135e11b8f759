"""Major compaction as SQL text: pending changes into the base, then out of the change table."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_arctic.keyed.log import PROPERTY_MERGED, encode_merged
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.read import ColumnsAt, key_equality, newest_first, select_columns
from dbt_arctic.keyed.table import ACTION, TXN, KeyedTable

_RANK = quote("_arctic_rank")
_IN_PLACE = quote("spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled")


def set_merged_property(transactions: Iterable[int]) -> str:
    """``MERGE`` takes snapshot properties from the session only; reset right after it."""
    return f"SET {_session_property()}={encode_merged(transactions)}"


def reset_merged_property() -> str:
    return f"RESET {_session_property()}"


def set_in_place() -> str:
    """Let the merge of a table with user partitions join by bucket alone: a key may move between them.

    For this one statement: set for a whole session, it shuffles joins of merge-on-read views.
    """
    return f"SET {_IN_PLACE}=true"


def reset_in_place() -> str:
    return f"RESET {_IN_PLACE}"


def merge_changes(
    table: KeyedTable,
    change_snapshot: int,
    transactions: Iterable[int],
    branch: str,
    known: ColumnsAt | None = None,
) -> str:
    """Merge the latest change of each key into a branch of the base.

    Only transactions that no earlier compaction merged: in commit order they are the latest of their
    keys, because what was merged before is a prefix of it. With a sequence, a late change may have lost:
    to a row of the base, or to a change that was merged before and is still here, a tombstone above all.
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
    """The transactions with rows in the change table; for files that a rewrite has mixed."""
    return f"SELECT DISTINCT {quote(TXN)}\nFROM {table.change.at(change_snapshot)}"


def list_kept_rows(table: KeyedTable, change_snapshot: int) -> str:
    """For each transaction in the change table, whether it still has rows besides its deletes."""
    return (
        f"SELECT {quote(TXN)}, bool_or({quote(ACTION)} <> 'D')\n"
        f"FROM {table.change.at(change_snapshot)}\nGROUP BY {quote(TXN)}"
    )


def trim(table: KeyedTable, transactions: Iterable[int], keep_deletes: bool = False) -> str:
    """Remove merged transactions from the change table.

    A data file holds one transaction, so this drops whole files by metadata alone. Always a list,
    never a range: commits do not land in ``_txn`` order.

    :param keep_deletes: deletes stay, because an older row of their keys may still come.
    """
    listed = ", ".join(str(txn) for txn in sorted(transactions))
    kept = f" AND {quote(ACTION)} <> 'D'" if keep_deletes else ""
    return f"DELETE FROM {table.change.sql}\nWHERE {quote(TXN)} IN ({listed}){kept}"


def _session_property() -> str:
    return quote(f"spark.sql.iceberg.snapshot-property.{PROPERTY_MERGED}")
