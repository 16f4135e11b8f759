"""SQL for a batch that replaces an interval: its upserts, and deletes of keys that are no longer in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.log import PROPERTY_TXN
from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.keyed.read import key_equality, merge_on_read
from dbt_arctic.keyed.table import ACTION, OFFSET, TXN, KeyedTable
from dbt_arctic.keyed.version import Version

GONE_OFFSET = 1
"""``_offset`` of the computed deletes, which distinguishes them from deletes of the model."""


def replace_interval(
    table: KeyedTable,
    batch: Batch,
    version: Version,
    condition: str,
    txn: int,
    properties: Mapping[str, str],
    branch: str,
    known: ColumnsAt | None = None,
) -> str:
    """SQL of an append to a branch of the change table: the batch and computed deletes.

    A key is deleted if it has a row in the interval at ``version`` and none in the batch.

    :param condition: SQL condition for the rows of the table in the interval.
    """
    summary = ", ".join(
        f"{quote('snapshot-property.' + name)}={literal(value)}"
        for name, value in {PROPERTY_TXN: str(txn), **properties}.items()
    )
    columns = ",\n  ".join(
        f"CASE WHEN n.{quote(TXN)} IS NULL THEN g.{name} ELSE n.{name} END AS {name}"
        for name in map(quote, table.column_names)
    )
    target = quote_all([*table.column_names, ACTION, OFFSET, TXN])
    return f"""\
INSERT INTO {table.change.branch(branch)} WITH ({summary}) ({target})
SELECT {columns},
  coalesce(n.{quote(ACTION)}, 'D') AS {quote(ACTION)},
  coalesce(n.{quote(OFFSET)}, {GONE_OFFSET}L) AS {quote(OFFSET)},
  CAST({txn} AS BIGINT) AS {quote(TXN)}
FROM (
{batch.one_row_per_key(txn)}
) AS n
FULL OUTER JOIN (
  SELECT *
  FROM (
{merge_on_read(table, version, known)}
  )
  WHERE {condition}
) AS g
  ON {key_equality("n", "g", table.key)}"""


def from_attempt(table: KeyedTable, batch: Batch, snapshot_id: int, txn: int) -> Batch:
    """The batch as it was written by an unpublished attempt, so that its query does not run again.

    :param snapshot_id: the head of the attempt's branch.
    """
    columns = (*table.column_names, ACTION)
    sql = (
        f"SELECT {quote_all(columns)}\nFROM {table.change.at(snapshot_id)}\n"
        f"WHERE {quote(TXN)} = {txn} AND {quote(OFFSET)} < {GONE_OFFSET}"
    )
    return replace(batch, sql=sql, model_columns=columns, deduplicate_by=(), delete_when=None)
