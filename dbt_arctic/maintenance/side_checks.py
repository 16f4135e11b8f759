"""Checks that base and change table exist and are the ones that the view refers to. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed.names import Name, literal
from dbt_arctic.keyed.savepoint import savepoints
from dbt_arctic.keyed.table import PROPERTY_ID, PROPERTY_OF, KeyedTable, side_name
from dbt_arctic.maintenance.finding import Finding, from_error, rebuild_command, restore_command

_TAKEN = "it was dropped and created again manually"


def check_sides(
    table: KeyedTable,
    tables: Mapping[str, TableState],
    damaged: Mapping[str, CatalogUnavailable],
    catalog: str | None = None,
) -> Iterator[Finding]:
    """Check base and change table of the current generation.

    :param catalog: the name that the client which created them has for the catalog; ``None`` for that of the
        table.
    """
    storage_name = table.storage_name if catalog is None else replace(table.storage_name, catalog=catalog)
    expected = {table.base: table.generation.base_id, table.change: table.generation.change_id}
    for side, side_id in expected.items():
        if side.identifier in damaged:
            yield from_error("metadata", table.name, damaged[side.identifier])
        else:
            yield from _check_side(table, side, side_id, tables.get(side.identifier), storage_name)


def _check_side(
    table: KeyedTable, side: Name, expected_id: str, state: TableState | None, storage_name: Name
) -> Iterator[Finding]:
    if state is None:
        yield Finding(
            "side-missing",
            table.name.dotted,
            f"{side} does not exist",
            side.dotted,
            "it was dropped or renamed manually",
            f"rename it back if it was renamed; otherwise {rebuild_command(table.name)}",
        )
    elif state.properties.get(PROPERTY_ID) != expected_id:
        yield Finding(
            "side-replaced",
            table.name.dotted,
            f"{side} is not the table with which {table.name} was built",
            side.dotted,
            _TAKEN if PROPERTY_ID not in state.properties else "another table took its name",
            rebuild_command(table.name),
        )
    elif state.properties.get(PROPERTY_OF) != storage_name.dotted:
        yield Finding(
            "side-replaced",
            table.name.dotted,
            f"{side} belongs to {state.properties.get(PROPERTY_OF) or 'no table'} by its properties",
            side.dotted,
            "its properties were changed manually; maintenance would treat it as another table's",
            f"ALTER TABLE {side.sql} SET TBLPROPERTIES "
            f"({literal(PROPERTY_OF)} = {literal(storage_name.dotted)})",
        )
    elif state.current_snapshot_id is None:
        yield Finding(
            "side-emptied",
            table.name.dotted,
            f"{side} has lost its snapshots",
            side.dotted,
            "it was replaced or emptied manually",
            rebuild_command(table.name),
        )


def is_whole(table: KeyedTable, tables: Mapping[str, TableState]) -> bool:
    """Whether the other checks are possible."""
    expected = {table.base: table.generation.base_id, table.change: table.generation.change_id}
    return all(
        side.identifier in tables
        and tables[side.identifier].properties.get(PROPERTY_ID) == side_id
        and tables[side.identifier].current_snapshot_id is not None
        for side, side_id in expected.items()
    )


def check_previous(table: KeyedTable, tables: Mapping[str, TableState]) -> Iterator[Finding]:
    """Check the previous generation, which an undo and its consumers still read."""
    previous = table.previous
    if previous is None:
        return
    for role, side_id in (("base", previous.base_id), ("change", previous.change_id)):
        side = side_name(table.storage_name, role, previous.number)
        state = tables.get(side.identifier)
        if state is None or state.properties.get(PROPERTY_ID) != side_id:
            yield Finding(
                "previous-missing",
                table.name.dotted,
                f"{side} of the previous generation does not exist",
                side.dotted,
                "it was dropped manually; the full refresh cannot be undone, and a model that last read the "
                "previous generation must be rebuilt",
                f"{restore_command(table.name)}, which removes it from the view's properties",
            )
            return


def check_savepoints(table: KeyedTable, base: TableState, change: TableState) -> Iterator[Finding]:
    """Check that savepoints are tags on both side tables; an interrupted command leaves only one."""
    bases, changes = savepoints(base.tags), savepoints(change.tags)
    for name in sorted({*bases} ^ {*changes}):
        side = table.base if name in bases else table.change
        yield Finding(
            "savepoint",
            table.name.dotted,
            f"the savepoint {name} is on {side} only",
            side.dotted,
            "the savepoint command was interrupted, or a tag was dropped manually",
            f"dbt-arctic savepoint {table.name.schema}.{table.name.identifier} {name} --drop",
        )
