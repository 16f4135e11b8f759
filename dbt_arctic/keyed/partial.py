"""SQL for a batch with only some columns; the other columns keep their stored values.

Complete rows are stored. Readers, pulls and compaction therefore do not need to support partial updates, and
a later change of the setting does not change the meaning of stored rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.checks import when_broken
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.read import key_equality, merge_on_read
from dbt_arctic.keyed.table import ACTION, OFFSET, TXN, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.keyed.write import insert_rows


def fill_kept_columns(
    table: KeyedTable,
    batch: Batch,
    updated: tuple[str, ...],
    version: Version,
    txn: int,
    properties: Mapping[str, str],
    branch: str,
    known: ColumnsAt | None = None,
) -> str:
    """SQL of an append to a branch of the change table.

    It has the rows of the batch, completed from the merged rows.

    Only the columns ``updated`` change in a row whose key exists. Any other row is written as it is in the
    batch. The checks of the batch apply to the completed row.

    :param updated: columns of the table, all of which the batch produces.
    """
    kept = {column for column in table.column_names if column not in {*updated, *table.key}}
    found = f"m.{quote(table.key[0])} IS NOT NULL"
    columns = ",\n    ".join(
        f"CASE WHEN {found} AND n.{quote(ACTION)} = 'U' THEN m.{name} ELSE n.{name} END AS {name}"
        if column in kept
        else f"n.{name}"
        for column, name in ((column, quote(column)) for column in table.column_names)
    )
    system = f"n.{quote(ACTION)}, n.{quote(OFFSET)}"
    select = f"""\
SELECT {quote_all(table.column_names)}, {quote(ACTION)},
  {_checked(batch)} AS {quote(OFFSET)},
  CAST({txn} AS BIGINT) AS {quote(TXN)}
FROM (
  SELECT {columns},
    {system}
  FROM (
{replace(batch, checks=()).one_row_per_key(txn)}
  ) AS n
  LEFT JOIN (
{merge_on_read(table, version, known)}
  ) AS m
    ON {key_equality("n", "m", table.key)}{without_losers(table, version) if batch.checks else ""}
)"""
    return insert_rows(table, txn, properties, select, branch)


def without_losers(table: KeyedTable, version: Version) -> str:
    """Exclude rows that lose against a newer delete.

    They could violate a check, because the row that would complete them is deleted.
    """
    if table.sequence_by is None:
        return ""
    key, sequence = quote_all(table.key), quote(table.sequence_by)
    return f"""
  LEFT JOIN (
    SELECT {key}, max({sequence}) AS `_arctic_gone`
    FROM {table.change.at(version.change_snapshot)}
    WHERE {quote(ACTION)} = 'D'
    GROUP BY {key}
  ) AS d
    ON {key_equality("n", "d", table.key)}
  WHERE n.{quote(ACTION)} <> 'U' OR NOT coalesce(d.`_arctic_gone` >= n.{sequence}, false)"""


def _checked(batch: Batch) -> str:
    broken = " ".join(when_broken(batch.checks, batch.key, batch.model, f"{quote(ACTION)} = 'U'"))
    return f"CASE {broken} ELSE {quote(OFFSET)} END" if broken else quote(OFFSET)
