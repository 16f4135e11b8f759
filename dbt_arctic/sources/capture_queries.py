"""SQL that reads the changes of a table from a capture table. Pure."""

from __future__ import annotations

from dbt_arctic.databases.api import UnseenTransactions
from dbt_arctic.keyed.names import literal
from dbt_arctic.sources.capture_settings import FollowedDatabase
from dbt_arctic.sources.capture_table import Captured

PLACE_DIGITS = 20
"""The length of a position in the place of a change."""


def place_after(kind: FollowedDatabase, end: int) -> str:
    """Text that sorts after the place of each change up to a position, and before that of each later one.

    The place of a change begins with the end of its transaction in the log of MariaDB, and with the beginning
    of its commit in that of PostgreSQL.

    >>> place_after("mariadb", 9)
    '00000000000000000010'
    """
    return f"{end + (kind == 'mariadb'):0{PLACE_DIGITS}}"


def unread_statement(
    captured: Captured, table: str, position: int, until: int | None = None, table_id: str = ""
) -> str:
    """SQL of the messages of a table after a position.

    :param until: the position up to which they are read; ``None`` for all.
    :param table_id: leaves out those of other tables that had its name; empty if there are none.
    """
    limit = "" if until is None else f" AND `transaction_end` <= {until}"
    if table_id:
        own = literal(table_id)
        limit += f" AND coalesce(get_json_object(`message`, '$.table_id'), {own}) = {own}"
    return (
        f"SELECT `position`, `message`\nFROM {captured.name.at(captured.state.current_snapshot_id)}\n"
        f"WHERE `table_name` = {literal(table)} AND `transaction_end` > {position}{limit}"
    )


def shapes_statement(captured: Captured, table: str, position: int) -> str:
    """SQL of the shapes of the messages after a position, and of the ids of the tables that had the name.

    An empty shape is that of a truncation. A database without ids has empty ones.
    """
    shape, table_id = (
        f"coalesce(get_json_object(`message`, '$.{one}'), '')" for one in ("shape", "table_id")
    )
    return f"SELECT DISTINCT {shape}, {table_id}\nFROM (\n{unread_statement(captured, table, position)}\n)"


def unseen_statement(captured: Captured, table: str, unseen: UnseenTransactions) -> str:
    """SQL of the first changes of a table that are not seen.

    Columns: the position before them; their place; and when they were made, in milliseconds. The place is the
    beginning of that of each change of the transaction, and greater than those before. All are NULL if all
    changes are seen.
    """
    return (
        "SELECT min(`transaction_end`) - 1,\n"
        f"  min(left(get_json_object(`message`, '$.place'), {PLACE_DIGITS})),\n"
        "  min(CAST(get_json_object(`message`, '$.at_ms') AS BIGINT))\n"
        f"{_changes_of(captured, table)} AND {_is_unseen(unseen)}"
    )


def later_seen_statement(captured: Captured, table: str, unseen: UnseenTransactions, position: int) -> str:
    """SQL of one row if a change of a table after a position is seen; else of none."""
    return (
        f"SELECT 1\n{_changes_of(captured, table)} AND `transaction_end` > {position}\n"
        f"  AND NOT {_is_unseen(unseen)}\nLIMIT 1"
    )


def between_statement(captured: Captured, start: int, end: int) -> str:
    """SQL of the positions, transactions and times of all changes between two positions."""
    at = captured.name.at(captured.state.current_snapshot_id)
    return (
        "SELECT `transaction_end`, `transaction_id`, `position`, get_json_object(`message`, '$.at_ms')\n"
        f"FROM {at}\nWHERE `transaction_end` > {start} AND `transaction_end` <= {end}"
    )


def _changes_of(captured: Captured, table: str) -> str:
    at = captured.name.at(captured.state.current_snapshot_id)
    return f"FROM {at}\nWHERE `table_name` = {literal(table)}"


def _is_unseen(unseen: UnseenTransactions) -> str:
    """SQL of whether the transaction of a change is not seen."""
    conditions = []
    if unseen.ids:
        conditions.append(f"`transaction_id` IN ({', '.join(map(str, unseen.ids))})")
    if unseen.beginning is not None:
        # Ids begin again after the greatest one.
        conditions.append(f"pmod(`transaction_id` - {unseen.beginning}, 4294967296) < 2147483648")
    if unseen.after is not None:
        conditions.append(f"`transaction_end` > {unseen.after}")
    return f"({' OR '.join(conditions) or 'false'})"


__all__ = [
    "PLACE_DIGITS",
    "between_statement",
    "later_seen_statement",
    "place_after",
    "shapes_statement",
    "unread_statement",
    "unseen_statement",
]
