"""SQL for a rollback: an append that turns the current rows into those of an earlier state."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.keyed.changes_between import difference
from dbt_arctic.keyed.checks import Check, when_broken
from dbt_arctic.keyed.log import PROPERTY_TXN
from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.keyed.table import ACTION, OFFSET, TXN, KeyedTable


def insert_difference(
    table: KeyedTable, now: str, then: str, txn: int, properties: Mapping[str, str], branch: str
) -> str:
    """SQL of an append to a branch of the change table: upserts of changed or deleted rows, and deletes.

    :param now: SQL of the current merged rows.
    :param then: SQL of the merged rows to restore.
    """
    summary = ", ".join(
        f"{quote('snapshot-property.' + name)}={literal(value)}"
        for name, value in {PROPERTY_TXN: str(txn), **properties}.items()
    )
    columns = quote_all(table.column_names)
    return (
        f"INSERT INTO {table.change.branch(branch)} WITH ({summary}) "
        f"({quote_all([*table.column_names, ACTION, OFFSET, TXN])})\n"
        f"SELECT {columns}, {quote(ACTION)}, {_checked_offset(table)}, CAST({txn} AS BIGINT)\n"
        f"FROM (\n{difference(now, then, table.key, table.types)}\n)"
    )


def _checked_offset(table: KeyedTable) -> str:
    checks = required_checks(table)
    if not checks:
        return "0L"
    broken = " ".join(when_broken(checks, table.key, table.name.identifier, f"{quote(ACTION)} = 'U'"))
    return f"CASE {broken} ELSE 0L END"


def required_checks(table: KeyedTable) -> tuple[Check, ...]:
    """NOT NULL checks for columns that were added later.

    An old row has NULL there, which the base may not allow.
    """
    return tuple(
        Check(f"not_null on {name}", "NOT NULL", f"{quote(name)} IS NULL") for name in table.required
    )


def rows_and_deletes(table: KeyedTable, rows: str, deletes: str) -> str:
    """SQL that rebuilds a table with ``sequence_by``, including its tombstones."""
    columns = quote_all((*table.column_names, ACTION))
    return (
        f"SELECT {quote_all(table.column_names)}, 'U' AS {quote(ACTION)}\nFROM (\n{rows}\n)\n"
        f"UNION ALL\nSELECT {columns}\nFROM (\n{deletes}\n)"
    )
