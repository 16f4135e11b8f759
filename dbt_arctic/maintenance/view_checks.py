"""Does the view say what it must, and do base, change table and view have the same columns? Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dbt_arctic.catalog.api import CatalogColumn, TableState, ViewState
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.schema_difference import stored_type
from dbt_arctic.keyed.table import SYSTEM_COLUMNS, KeyedTable
from dbt_arctic.maintenance.finding import Finding, rebuild, restore

_SYSTEM_TYPES = {"_action": "string", "_offset": "bigint", "_txn": "bigint"}


def check_body(table: KeyedTable, view: ViewState) -> Iterator[Finding]:
    """Replacing a view keeps its properties, so one that was replaced by hand still looks keyed."""
    if _plain(view.sql) != _plain(merge_on_read(table.visible)):
        yield Finding(
            "view-replaced",
            table.name.dotted,
            f"the view {table.name} does not read its base and change table as dbt-arctic wrote it",
            table.name.dotted,
            "it was replaced by hand, or another version of dbt-arctic wrote it",
            restore(table.name),
        )


def check_columns(table: KeyedTable, base: TableState, change: TableState) -> Iterator[Finding]:
    """Compare the columns of the view with those of the side tables.

    :param base: and :param change: as they are now.
    """
    stored = tuple(column for column in change.columns if column.name not in SYSTEM_COLUMNS)
    if table.projected:
        yield Finding(
            "columns",
            table.name.dotted,
            f"a change of fields inside the columns of {table.name} is not finished",
            table.name.dotted,
            "it was cut off, or is being made; readers see none of it, and compaction waits for it",
            f"dbt run --select {table.name.identifier}, which finishes it",
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
            "it was altered by hand",
            rebuild(table.name),
        )
    required = [column.name for column in stored if not column.nullable]
    if required:
        yield Finding(
            "columns",
            table.name.dotted,
            f"{table.change} does not take NULL in {', '.join(required)}",
            table.change.dotted,
            "it was altered by hand; a delete has a key and nothing else",
            f"ALTER TABLE {table.change.sql} ALTER COLUMN {quote(required[0])} DROP NOT NULL",
        )
    strict = [c.name for c in base.columns if not c.nullable and c.name not in table.required]
    if strict:
        yield Finding(
            "columns",
            table.name.dotted,
            f"{table.base} does not take NULL in {', '.join(strict)}, and the view does not say so",
            table.base.dotted,
            "it was altered by hand; compaction fails at the first NULL",
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
        parts += [f"has {name} as {found[name]}, and the view as {shown[name]}" for name in other]
        yield Finding(
            "columns",
            table.name.dotted,
            f"{side} {'; '.join(parts)}",
            side.dotted,
            "a column was dropped, renamed or changed by hand",
            rebuild(table.name),
        )
    if extra:
        yield Finding(
            "columns",
            table.name.dotted,
            f"{side} has {', '.join(extra)}, which the view does not show",
            side.dotted,
            "a change of columns was cut off, or a column was added by hand",
            f"dbt run --select {table.name.identifier}, which goes on with the change if the model has the "
            f"column; else ALTER TABLE {side.sql} DROP COLUMN {quote(extra[0])}",
        )


def _plain(sql: str) -> str:
    return " ".join(sql.split())
