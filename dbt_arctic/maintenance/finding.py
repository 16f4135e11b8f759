"""A problem of a keyed table as a value: what, where, why, and the command that repairs it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt_arctic.errors import ArcticError
from dbt_arctic.keyed.names import Name


@dataclass(frozen=True)
class Finding:
    """One finding of ``dbt-arctic verify``.

    :param kind: a stable identifier for programs; docs/reference/maintenance.md lists all of them.
    """

    kind: str
    table: str
    what: str
    where: str
    why: str
    fix: str


def from_error(kind: str, table: Name, error: ArcticError, fix: str = "") -> Finding:
    """A finding from an error."""
    return Finding(kind, table.dotted, error.what, error.where or table.dotted, error.why, fix or error.fix)


def rebuild_command(table: Name) -> str:
    """The command that rebuilds a table."""
    return f"dbt run --full-refresh --select {table.identifier}"


def restore_command(table: Name) -> str:
    """The command that restores a table."""
    return f"dbt-arctic restore {table.schema}.{table.identifier}"


def clean_command(table: Name) -> str:
    """The command that removes leftovers."""
    return f"dbt-arctic clean --schema {table.schema}"
