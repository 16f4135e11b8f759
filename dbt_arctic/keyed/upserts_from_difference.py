"""SQL for a batch of upserts and deletes that turns the stored rows of some keys into the computed ones.

Unchanged rows are left out, so that a change without effect writes nothing. Rows that share a key are always
kept, with their number, so that the batch rejects them.
"""

from __future__ import annotations

from dbt_arctic.keyed.batch import ROWS_OF_KEY
from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.null_safe_equality import same_row
from dbt_arctic.keyed.read import Logged, key_equality, merge_on_read
from dbt_arctic.keyed.table import ACTION, KeyedTable
from dbt_arctic.keyed.version import Version

_SAME_KEY = quote("_arctic_same_key")
_IS_IMAGE = quote("_arctic_is_image")


def difference_from(
    table: KeyedTable,
    rows: str,
    version: Version,
    known: ColumnsAt,
    keys: str | None = None,
    ranges: tuple[str, ...] = (),
    logged: Logged = "several",
    images: bool = False,
    unique: bool = False,
) -> str:
    """Columns: those of the table, ``_action``, and ``ROWS_OF_KEY``, which is NULL for a deleted key.

    :param rows: the rows as they should be, with the columns of the table.
    :param keys: SQL of the only keys that may differ, with the key columns; ``None`` for all.
    :param ranges: conditions on the key columns that hold for all of ``keys``.
    :param logged: the contents of the change table at the version.
    :param images: whether to add the stored row of each changed or deleted key as ``-U``.
    :param unique: whether ``rows`` cannot contain duplicate keys.
    """
    stored = merge_on_read(table, version, known, logged, keys)
    if ranges:
        stored = f"SELECT *\nFROM (\n{stored}\n) AS m\nWHERE {' AND '.join(ranges)}"
    first = quote(table.key[0])
    gone = f"n.{_SAME_KEY} IS NULL"
    is_stored = f"{_IS_IMAGE} OR {gone}" if images else gone
    columns = ",\n  ".join(_shown(column, table.key, is_stored, images) for column in table.column_names)
    same = same_row("n", "o", {column.name: column.type for column in table.columns})
    counted = "1L" if unique else f"count(*) OVER (PARTITION BY {quote_all(table.key)})"
    each = f"CASE WHEN o.{first} IS NULL THEN array(false) ELSE array(false, true) END"
    with_images = f"\nLATERAL VIEW explode({each}) AS {_IS_IMAGE}" if images else ""
    return f"""\
SELECT {columns},
  CASE {f"WHEN {_IS_IMAGE} THEN '-U' " if images else ""}WHEN {gone} THEN 'D' ELSE 'U' END AS {quote(ACTION)},
  n.{_SAME_KEY} AS {quote(ROWS_OF_KEY)}
FROM (
  SELECT *, {counted} AS {_SAME_KEY}
  FROM (
{rows}
  )
) AS n
FULL OUTER JOIN (
{stored}
) AS o
  ON {key_equality("n", "o", table.key)}{with_images}
WHERE {gone} OR n.{_SAME_KEY} > 1 OR o.{first} IS NULL OR NOT ({same})"""


def _shown(column: str, key: tuple[str, ...], is_stored: str, images: bool) -> str:
    name = quote(column)
    if column in key:
        return f"CASE WHEN {is_stored} THEN o.{name} ELSE n.{name} END AS {name}"
    return f"CASE WHEN {_IS_IMAGE} THEN o.{name} ELSE n.{name} END AS {name}" if images else f"n.{name}"
