"""SQL for the changes between two states of a table, whose rows are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_arctic.keyed.columns_at import ColumnsAt
from dbt_arctic.keyed.log import LogRange
from dbt_arctic.keyed.names import quote, quote_all
from dbt_arctic.keyed.null_safe_equality import same_row
from dbt_arctic.keyed.read import Images, key_equality, latest_changes, merge_on_read
from dbt_arctic.keyed.table import ACTION, KeyedTable
from dbt_arctic.keyed.version import Version


def difference(
    before: str,
    after: str,
    key: Sequence[str],
    types: Mapping[str, str],
    images: Images = "after",
    *,
    retyped: bool = False,
) -> str:
    """SQL for the changes between two states: changed and new rows, and deleted keys.

    :param before: SQL for the old state.
    :param after: SQL for the new state.
    :param types: the columns of both, with their Spark types.
    :param images: ``both`` adds the old row of each changed or deleted key as ``-U``.
    :param retyped: whether a column has another type in the old state. Then each row counts as changed,
        because what a model computes from 1 and 1.0 may differ.

    A deleted key is a ``D`` row with the old values. Unchanged rows are left out.
    """
    listed = quote_all(types)
    same = "FALSE" if retyped else same_row("o", "n", types)
    matched = key_equality("o", "n", key)
    parts = [
        f"SELECT {listed}, 'U' AS {quote(ACTION)}\nFROM (\n{after}\n) AS n\n"
        f"WHERE NOT EXISTS (\n  SELECT 1 FROM (\n{before}\n  ) AS o WHERE {same}\n)",
        f"SELECT {listed}, 'D' AS {quote(ACTION)}\nFROM (\n{before}\n) AS o\n"
        f"WHERE NOT EXISTS (\n  SELECT 1 FROM (\n{after}\n  ) AS n WHERE {matched}\n)",
    ]
    if images == "both":
        parts.append(
            f"SELECT {listed}, '-U' AS {quote(ACTION)}\nFROM (\n{before}\n) AS o\n"
            f"WHERE NOT EXISTS (\n  SELECT 1 FROM (\n{after}\n  ) AS n WHERE {same}\n)"
        )
    return "\nUNION ALL\n".join(parts)


def changed_keys(table: KeyedTable, log: LogRange, at: Version, known: ColumnsAt | None = None) -> str:
    """SQL for the keys in a range of the log. No other key can differ between its ends."""
    return f"SELECT {quote_all(table.key)} FROM (\n{latest_changes(table, log, at, known)}\n)"


def changes(
    table: KeyedTable,
    before: Version,
    after: Version,
    log: LogRange,
    images: Images,
    known: ColumnsAt | None = None,
) -> str:
    """SQL for the changes of a keyed table between two versions of one generation.

    Both states are restricted to the keys in the log before they are compared.
    """
    keys = changed_keys(table, log, after, known)
    before_them, after_them = (merge_on_read(table, at, known, keys=keys) for at in (before, after))
    return difference(before_them, after_them, table.key, table.types, images)
