"""SQL for a batch that replaces partitions or the whole table, with a single append of the differences.

Rows that are already stored are not written again, so a backfill adds only actual changes to the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.layout import partition_expression
from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.keyed.null_safe_equality import same_row
from dbt_arctic.keyed.read import key_equality, merge_on_read
from dbt_arctic.keyed.replace import GONE_OFFSET
from dbt_arctic.keyed.table import ACTION, OFFSET, TXN, KeyedTable
from dbt_arctic.keyed.version import Version
from dbt_arctic.keyed.write import insert_rows

_PRUNABLE = frozenset({"date", "int", "bigint", "string", "boolean"})
"""Types whose text Spark parses as the same value, independently of session settings."""
_MOST_LITERALS = 500


@dataclass(frozen=True)
class StagedBatch:
    """The batch after it was written to a separate branch: checked, and one row per key."""

    snapshot_id: int
    txn: int

    def rows(self, table: KeyedTable) -> str:
        """SQL of its rows."""
        return f"SELECT *\nFROM {table.change.at(self.snapshot_id)}\nWHERE {quote(TXN)} = {self.txn}"


def list_partitions(table: KeyedTable, staged: StagedBatch) -> str:
    """SQL for the partitions that the batch has rows for, as strings. A deleted row may only have its key."""
    values = ", ".join(f"CAST({value} AS STRING)" for value in _fields(table, ""))
    return (
        f"SELECT DISTINCT {values}\nFROM (\n{staged.rows(table)}\n)\nWHERE {quote(ACTION)} = 'U'\n"
        f"LIMIT {_MOST_LITERALS + 1}"
    )


def replace_rows(
    table: KeyedTable,
    staged: StagedBatch,
    version: Version,
    partitions: Sequence[Sequence[str | None]] | None,
    txn: int,
    properties: Mapping[str, str],
    branch: str,
    known: ColumnsAt | None = None,
) -> str:
    """SQL of an append to a branch of the change table: the batch, and a delete for each key that it lacks.

    :param partitions: the result of ``list_partitions``: only keys with rows in one of these are deleted.
        ``None`` for the whole table.
    """
    gone = merge_on_read(table, version, known)
    if partitions is not None:
        gone = _in_partitions(table, staged, gone, partitions)
    columns = ",\n  ".join(
        f"CASE WHEN n.{quote(TXN)} IS NULL THEN g.{name} ELSE n.{name} END AS {name}"
        for name in map(quote, table.column_names)
    )
    alike = same_row("n", "g", table.types)
    select = f"""\
SELECT {columns},
  coalesce(n.{quote(ACTION)}, 'D') AS {quote(ACTION)},
  CASE WHEN n.{quote(TXN)} IS NULL THEN {GONE_OFFSET}L ELSE 0L END AS {quote(OFFSET)},
  CAST({txn} AS BIGINT) AS {quote(TXN)}
FROM (
{staged.rows(table)}
) AS n
FULL OUTER JOIN (
{gone}
) AS g
  ON {key_equality("n", "g", table.key)}
WHERE n.{quote(TXN)} IS NULL OR g.{quote(table.key[0])} IS NULL OR n.{quote(ACTION)} = 'D'
  OR NOT ({alike})"""
    return insert_rows(table, txn, properties, select, branch)


def _in_partitions(
    table: KeyedTable, staged: StagedBatch, rows: str, partitions: Sequence[Sequence[str | None]]
) -> str:
    """SQL of the rows in the partitions of the batch.

    The join decides; literals let Iceberg skip other files.
    """
    names = [quote(f"_arctic_p{at}") for at in range(len(table.layout.partition_by))]
    listed = ", ".join(f"{value} AS {name}" for value, name in zip(_fields(table, ""), names, strict=True))
    matched = " AND ".join(
        f"{value} <=> p.{name}" for value, name in zip(_fields(table, "m."), names, strict=True)
    )
    skipping = _literals(table, partitions)
    where = f"\nWHERE {skipping}" if skipping else ""
    return f"""\
SELECT m.*
FROM (
SELECT *
FROM (
{rows}
) AS r{where}
) AS m
LEFT SEMI JOIN (
  SELECT DISTINCT {listed}
  FROM (
{staged.rows(table)}
  )
  WHERE {quote(ACTION)} = 'U'
) AS p
  ON {matched}"""


def _literals(table: KeyedTable, partitions: Sequence[Sequence[str | None]]) -> str:
    if len(partitions) > _MOST_LITERALS:
        return ""
    types = table.types
    conditions = []
    for at, field in enumerate(table.layout.partition_by):
        value, type_ = partition_expression(field, table.name.catalog, "", types)
        if type_ not in _PRUNABLE:
            continue
        texts = sorted({text for row in partitions if (text := row[at]) is not None})
        among = [f"{value} IN ({', '.join(f'CAST({literal(text)} AS {type_})' for text in texts)})"]
        if any(row[at] is None for row in partitions):
            among.append(f"{value} IS NULL")
        conditions.append(f"({' OR '.join(among if texts else among[1:] or ['false'])})")
    return " AND ".join(conditions)


def _fields(table: KeyedTable, prefix: str) -> list[str]:
    types = table.types
    return [
        partition_expression(field, table.name.catalog, prefix, types).sql
        for field in table.layout.partition_by
    ]
