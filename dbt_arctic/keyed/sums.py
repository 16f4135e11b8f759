"""Stored sums and counts, and what is to be added to them, as SQL text: a batch of upserts and deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.keyed.read import ColumnsAt, merge_on_read
from dbt_arctic.keyed.table import ACTION, KeyedTable
from dbt_arctic.keyed.version import Version

_IS_CHANGE = quote("_arctic_is_change")
_BELOW_ZERO = "a count of rows fell below zero: the stored sums are not those of the rows that were read"


def added(
    table: KeyedTable,
    changes: str,
    version: Version,
    known: ColumnsAt,
    *,
    rows: str,
    counts: Sequence[str],
    counted: Mapping[str, str],
    whole: bool,
) -> str:
    """Columns: the table's, and ``_action``. Groups to which nothing was added do not appear.

    :param changes: SQL of the key and what to add to each other column, any number of rows a group.
    :param rows: the column that counts rows; :param counts: all columns that count.
    :param counted: for each other column the one that counts its values.
    :param whole: whether there is one group, which stays without a row.
    """
    numbers = [*counts, *counted]
    types = table.types
    totals = ",\n    ".join(
        f"sum({quote(name)}) AS {quote(name)}, "
        f"coalesce(sum(CASE WHEN {_IS_CHANGE} THEN {quote(name)} END), 0) AS {quote('_added_' + name)}"
        for name in numbers
    )
    shown = []
    for name in table.column_names:
        value = quote(name)
        if name == rows:
            value = f"CASE WHEN {value} < 0 THEN raise_error({literal(_BELOW_ZERO)}) ELSE {value} END"
        elif name in counted:
            value = f"CASE WHEN {quote(counted[name])} > 0 THEN {value} END"
        shown.append(quote(name) if name in table.key else f"CAST({value} AS {types[name]}) AS {quote(name)}")
    differs = " OR ".join(f"{quote('_added_' + name)} <> 0" for name in numbers)
    columns = quote_all([*table.key, *numbers])
    action = "'U'" if whole else f"CASE WHEN {quote(rows)} = 0 THEN 'D' ELSE 'U' END"
    # A group that came and went between two refreshes was never stored.
    gone = "" if whole else f"\n  AND NOT ({quote(rows)} = 0 AND {quote('_added_' + rows)} = 0)"
    stored = merge_on_read(table, version, known)
    return f"""\
SELECT {", ".join(shown)},
  {action} AS {quote(ACTION)}
FROM (
  SELECT {quote_all(table.key)},
    {totals}
  FROM (
    SELECT {columns}, true AS {_IS_CHANGE} FROM (
{changes}
    )
    UNION ALL
    SELECT {columns}, false AS {_IS_CHANGE} FROM (
{stored}
    )
  )
  GROUP BY {quote_all(table.key)}
)
WHERE ({differs}){gone}"""
