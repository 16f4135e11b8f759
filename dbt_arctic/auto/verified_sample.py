"""The sample of keys that a verification recomputes, and the SQL that compares them with the stored rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.null_safe_equality import same_row
from dbt_arctic.keyed.read import key_equality
from dbt_arctic.keyed.row_diff import is_within_tolerance
from dbt_arctic.keyed.table import ACTION, MARKER_TXN, TXN, Column, KeyedTable
from dbt_arctic.keyed.version import Version

WRITTEN = quote("_arctic_written")
_SAME_KEY = quote("_arctic_same_key")
_HERE = quote("_arctic_here")


@dataclass(frozen=True)
class Compared:
    """The columns of a table by how they are compared.

    :param exact: columns with equal values.
    :param near: floating-point sums, which may differ in their last digits.
    """

    exact: tuple[Column, ...]
    near: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All compared columns."""
        return (*self.exact, *self.near)


def sample_sql(table: KeyedTable, version: Version, txn: int, seed: int, size: int) -> str:
    """The keys of a sample, and ``WRITTEN``: whether the refresh has written the key.

    Half of them are keys that the refresh has written, the others are any keys that are stored. They are
    chosen by their hash with the seed, so the same seed and version give the same sample. It reads
    the key columns of both tables.

    :param txn: the transaction of the refresh.
    :param seed: a number that is different for each refresh.
    """
    key = quote_all(table.key)
    change = table.change.at(version.change_snapshot)
    chance = f"xxhash64({seed}, {key})"
    not_image = f"{quote(ACTION)} <> '-U'"
    # A key is in the base table once, and in any number of changes.
    return f"""\
SELECT {key}, {WRITTEN}
FROM (
  SELECT {key}, bool_or({WRITTEN}) AS {WRITTEN}
  FROM (
    SELECT * FROM (
      SELECT {key}, true AS {WRITTEN}
      FROM {change}
      WHERE {quote(TXN)} = {txn} AND {not_image}
      ORDER BY {chance}
      LIMIT {(size + 1) // 2}
    )
    UNION ALL
    SELECT * FROM (
      SELECT {key}, false AS {WRITTEN}
      FROM {table.base.at(version.base_snapshot)}
      ORDER BY {chance}
      LIMIT {size}
    )
    UNION ALL
    SELECT * FROM (
      SELECT {key}, false AS {WRITTEN}
      FROM {change}
      WHERE {quote(TXN)} > {MARKER_TXN} AND {not_image}
      GROUP BY {key}
      ORDER BY {chance}
      LIMIT {size}
    )
  )
  GROUP BY {key}
)
ORDER BY {WRITTEN} DESC, {chance}
LIMIT {size}"""


def rows_of_sample(sql: str, table: KeyedTable, sample: str, conditions: Sequence[str]) -> str:
    """The rows of a query that have a key of the sample.

    :param conditions: conditions on the key columns that hold for all keys of the sample. Spark moves them
        into the query, down to the tables whose files they exclude.
    """
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    columns = ", ".join(f"q.{quote(name)}" for name in table.column_names)
    return (
        f"SELECT {columns}\nFROM (\n{sql}\n) AS q\nLEFT SEMI JOIN {sample} AS s\n"
        f"  ON {key_equality('q', 's', table.key)}{where}"
    )


def differing_values(rows: str, stored: str, key: Sequence[str], compared: Compared) -> str:
    """The keys of which the rows of a query differ from the stored ones.

    Columns: the number of rows that the query has of the key (0 if none), whether it is stored, the key
    columns as strings, and for each other column whether it differs, its value by the query, and its stored
    value, as strings.

    :param rows: the rows of the query.
    :param stored: the stored rows of the same keys.
    """
    keys = ", ".join(f"CAST(coalesce(n.{quote(name)}, o.{quote(name)}) AS STRING)" for name in key)
    values = "".join(
        f",\n  NOT ({_same(column, compared)}), {_shown('n', column)}, {_shown('o', column)}"
        for column in compared.columns
        if column.name not in key
    )
    same = " AND ".join(_same(column, compared) for column in compared.columns)
    counted = f"count(*) OVER (PARTITION BY {quote_all(key)}) AS {_SAME_KEY}"
    return f"""\
SELECT coalesce(n.{_SAME_KEY}, 0), o.{_HERE} IS NOT NULL, {keys}{values}
FROM (
  SELECT *, {counted}
  FROM (
{rows}
  )
) AS n
FULL OUTER JOIN (
  SELECT *, true AS {_HERE}
  FROM (
{stored}
  )
) AS o
  ON {key_equality("n", "o", key)}
WHERE n.{_SAME_KEY} IS NULL OR n.{_SAME_KEY} > 1 OR o.{_HERE} IS NULL OR NOT ({same})"""


def _same(column: Column, compared: Compared) -> str:
    if column in compared.near:
        alike = is_within_tolerance(f"n.{quote(column.name)}", f"o.{quote(column.name)}", column.type)
        return f"coalesce({alike}, false)"
    return same_row("n", "o", {column.name: column.type})


def _shown(side: str, column: Column) -> str:
    value = f"{side}.{quote(column.name)}"
    if column.type == "binary":
        return f"hex({value})"
    return f"to_json({value})" if column.type == "variant" else f"CAST({value} AS STRING)"


__all__ = ["Compared", "differing_values", "rows_of_sample", "sample_sql"]
