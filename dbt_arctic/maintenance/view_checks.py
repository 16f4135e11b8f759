"""Checks the view's query, and that base, change table and view have the same columns. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dbt_arctic.catalog.api import CatalogColumn, TableState, ViewState
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.schema_difference import stored_type
from dbt_arctic.keyed.table import SYSTEM_COLUMNS, KeyedTable
from dbt_arctic.maintenance.finding import Finding, rebuild_command, restore_command

_SYSTEM_TYPES = {"_action": "string", "_offset": "bigint", "_txn": "bigint"}


def check_body(table: KeyedTable, view: ViewState, catalog: str | None = None) -> Iterator[Finding]:
    """Check the view's query.

    CREATE OR REPLACE VIEW keeps properties, so a replaced view still looks keyed.

    :param catalog: the name that the client which created the view has for its catalog; ``None`` for that of
        the table.
    """
    if view.is_record:
        return  # it has no query that could be replaced
    written = table if catalog is None else replace(table, name=replace(table.name, catalog=catalog))
    if _plain(view.sql) != _plain(merge_on_read(written.visible)):
        yield Finding(
            "view-replaced",
            table.name.dotted,
            f"the query of the view {table.name} is not the one that dbt-arctic writes",
            table.name.dotted,
            "it was replaced manually, or another version of dbt-arctic wrote it",
            restore_command(table.name),
        )


def check_columns(table: KeyedTable, base: TableState, change: TableState) -> Iterator[Finding]:
    """Compare the columns of the view with those of the side tables.

    :param base: the base's current state.
    :param change: the change table's current state.
    """
    stored = tuple(column for column in change.columns if column.name not in SYSTEM_COLUMNS)
    if table.projected:
        yield Finding(
            "columns",
            table.name.dotted,
            f"a change of nested fields of {table.name} is not complete",
            table.name.dotted,
            "it was interrupted or is still running; readers do not see it, and compaction waits for it",
            f"dbt run --select {table.name.identifier}, which completes it",
        )
        return
    yield from _compare(table, table.base, base.columns)
    yield from _compare(table, table.change, stored)
    system = {column.name: column.type for column in change.columns if column.name in SYSTEM_COLUMNS}
    if system != _SYSTEM_TYPES:
        missing = ", ".join(f"{name} {type_}" for name, type_ in _SYSTEM_TYPES.items())
        yield Finding(
            "columns",
            table.name.dotted,
            f"{table.change} does not have the columns {missing}",
            table.change.dotted,
            "it was altered manually",
            rebuild_command(table.name),
        )
    required = [column.name for column in stored if not column.nullable]
    if required:
        yield Finding(
            "columns",
            table.name.dotted,
            f"{table.change} does not allow NULL in {', '.join(required)}",
            table.change.dotted,
            "it was altered manually; a delete has only a key",
            f"ALTER TABLE {table.change.sql} ALTER COLUMN {quote(required[0])} DROP NOT NULL",
        )
    strict = [c.name for c in base.columns if not c.nullable and c.name not in table.required]
    if strict:
        yield Finding(
            "columns",
            table.name.dotted,
            f"{table.base} does not allow NULL in {', '.join(strict)}, but the view does not record this",
            table.base.dotted,
            "it was altered manually; compaction fails at the first NULL",
            f"ALTER TABLE {table.base.sql} ALTER COLUMN {quote(strict[0])} DROP NOT NULL",
        )


def _compare(table: KeyedTable, side: Name, columns: tuple[CatalogColumn, ...]) -> Iterator[Finding]:
    found = {column.name: column.type for column in columns}
    shown = {column.name: stored_type(column.type) for column in table.columns}
    missing = [name for name in shown if name not in found]
    extra = [name for name in found if name not in shown]
    other = [name for name in shown if name in found and found[name] != shown[name]]
    if missing or other:
        parts = [f"lacks {name}" for name in missing]
        parts += [f"has {name} as {found[name]}, but the view has {shown[name]}" for name in other]
        yield Finding(
            "columns",
            table.name.dotted,
            f"{side} {'; '.join(parts)}",
            side.dotted,
            "a column was dropped, renamed or changed manually",
            rebuild_command(table.name),
        )
    if extra:
        yield Finding(
            "columns",
            table.name.dotted,
            f"{side} has {', '.join(extra)}, which the view does not have",
            side.dotted,
            "a change of columns was interrupted, or a column was added manually",
            f"dbt run --select {table.name.identifier}, which completes the change if the model has the "
            f"column; otherwise ALTER TABLE {side.sql} DROP COLUMN {quote(extra[0])}",
        )


def _plain(sql: str) -> str:
    return " ".join(sql.split())
