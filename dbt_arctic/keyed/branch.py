"""SQL for branches of a table."""

from __future__ import annotations

from dbt_arctic.keyed.names import Name, literal, quote


def create_branch(table: Name, branch: str, snapshot_id: int | None) -> str:
    """The statement that creates a branch at a snapshot; an empty one if the table has no snapshot."""
    at = "" if snapshot_id is None else f" AS OF VERSION {snapshot_id}"
    return f"ALTER TABLE {table.sql} CREATE BRANCH {quote(branch)}{at}"


def drop_branch(table: Name, branch: str) -> str:
    """The statement that drops a branch."""
    return f"ALTER TABLE {table.sql} DROP BRANCH IF EXISTS {quote(branch)}"


def fast_forward(table: Name, branch: str) -> str:
    """The statement for a compare-and-swap: main becomes the branch's head, unless main has moved."""
    return (
        f"CALL {quote(table.catalog)}.system.fast_forward("
        f"table => {table.procedure_argument()}, branch => 'main', to => {literal(branch)})"
    )
