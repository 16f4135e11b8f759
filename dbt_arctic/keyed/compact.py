"""Major compaction as SQL text: pending changes into the base, then out of the change table."""

from __future__ import annotations

from collections.abc import Iterable

from dbt_arctic.keyed.log import PROPERTY_MERGED, encode_merged
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.read import NEWEST_FIRST, ColumnsAt, key_equality, select_columns
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

    Only transactions that no earlier compaction merged: they are the latest of their keys, because
    what was merged before is a prefix of the commit order.
    """
    listed = ", ".join(str(txn) for txn in sorted(transactions))
    columns = table.column_names
    assignments = ", ".join(f"b.{quote(column)} = c.{quote(column)}" for column in columns)
    values = ", ".join(f"c.{quote(column)}" for column in columns)
    return f"""\
MERGE INTO {table.base.branch(branch)} AS b
USING (
  SELECT {quote_all(columns)}, {quote(ACTION)}
  FROM (
    SELECT {select_columns(table, change_snapshot, known or {})}, {quote(ACTION)},
      row_number() OVER (PARTITION BY {quote_all(table.key)} ORDER BY {NEWEST_FIRST}) AS {_RANK}
    FROM {table.change.at(change_snapshot)}
    WHERE {quote(TXN)} IN ({listed}) AND {quote(ACTION)} <> '-U'
  )
  WHERE {_RANK} = 1
) AS c
  ON {key_equality("b", "c", table.key)}
WHEN MATCHED AND c.{quote(ACTION)} = 'D' THEN DELETE
WHEN MATCHED THEN UPDATE SET {assignments}
WHEN NOT MATCHED AND c.{quote(ACTION)} <> 'D' THEN INSERT ({quote_all(columns)}) VALUES ({values})"""


def list_transactions(table: KeyedTable, change_snapshot: int) -> str:
    """The transactions with rows in the change table; for files that a rewrite has mixed."""
    return f"SELECT DISTINCT {quote(TXN)}\nFROM {table.change.at(change_snapshot)}"


def trim(table: KeyedTable, transactions: Iterable[int]) -> str:
    """Remove merged transactions from the change table.

    A data file holds one transaction, so this drops whole files by metadata alone. Always a list,
    never a range: commits do not land in ``_txn`` order.
    """
    listed = ", ".join(str(txn) for txn in sorted(transactions))
    return f"DELETE FROM {table.change.sql}\nWHERE {quote(TXN)} IN ({listed})"


def _session_property() -> str:
    return quote(f"spark.sql.iceberg.snapshot-property.{PROPERTY_MERGED}")
