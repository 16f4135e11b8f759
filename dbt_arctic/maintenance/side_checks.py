"""Are base and change table there, and are they those that the view names? Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbt_arctic.catalog.api import TableState
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed.names import Name, literal
from dbt_arctic.keyed.savepoint import savepoints
from dbt_arctic.keyed.table import PROPERTY_ID, PROPERTY_OF, KeyedTable, side_name
from dbt_arctic.maintenance.finding import Finding, from_error, rebuild, restore

_TAKEN = "it was dropped and created again by hand"


def check_sides(
    table: KeyedTable, tables: Mapping[str, TableState], damaged: Mapping[str, CatalogUnavailable]
) -> Iterator[Finding]:
    """Base and change table of the generation that is shown."""
    expected = {table.base: table.generation.base_id, table.change: table.generation.change_id}
    for side, side_id in expected.items():
        if side.identifier in damaged:
            yield from_error("metadata", table.name, damaged[side.identifier])
        else:
            yield from _check_side(table, side, side_id, tables.get(side.identifier))


def _check_side(
    table: KeyedTable, side: Name, expected_id: str, state: TableState | None
) -> Iterator[Finding]:
    if state is None:
        yield Finding(
            "side-missing",
            table.name.dotted,
            f"{side} does not exist",
            side.dotted,
            "it was dropped or renamed by hand",
            f"rename it back if it was renamed; else {rebuild(table.name)}",
        )
    elif state.properties.get(PROPERTY_ID) != expected_id:
        yield Finding(
            "side-replaced",
            table.name.dotted,
            f"{side} is not the table that {table.name} was built with",
            side.dotted,
            _TAKEN if PROPERTY_ID not in state.properties else "another table took its name",
            rebuild(table.name),
        )
    elif state.properties.get(PROPERTY_OF) != table.made_as.dotted:
        yield Finding(
            "side-replaced",
            table.name.dotted,
            f"{side} says that it belongs to {state.properties.get(PROPERTY_OF) or 'no table'}",
            side.dotted,
            "its properties were changed by hand; it would be removed or kept as another table's",
            f"ALTER TABLE {side.sql} SET TBLPROPERTIES "
            f"({literal(PROPERTY_OF)} = {literal(table.made_as.dotted)})",
        )
    elif state.current_snapshot_id is None:
        yield Finding(
            "side-emptied",
            table.name.dotted,
            f"{side} has lost its snapshots",
            side.dotted,
            "it was replaced or emptied by hand",
            rebuild(table.name),
        )


def is_whole(table: KeyedTable, tables: Mapping[str, TableState]) -> bool:
    """Whether the other checks can be made."""
    expected = {table.base: table.generation.base_id, table.change: table.generation.change_id}
    return all(
        side.identifier in tables
        and tables[side.identifier].properties.get(PROPERTY_ID) == side_id
        and tables[side.identifier].current_snapshot_id is not None
        for side, side_id in expected.items()
    )


def check_previous(table: KeyedTable, tables: Mapping[str, TableState]) -> Iterator[Finding]:
    """The generation before, which undo and models that consumed it still read."""
    previous = table.previous
    if previous is None:
        return
    for role, side_id in (("base", previous.base_id), ("change", previous.change_id)):
        side = side_name(table.made_as, role, previous.number)
        state = tables.get(side.identifier)
        if state is None or state.properties.get(PROPERTY_ID) != side_id:
            yield Finding(
                "previous-missing",
                table.name.dotted,
                f"{side} of the generation before is gone",
                side.dotted,
                "it was dropped by hand: the full refresh cannot be undone, and a model that last read the "
                "generation before has to be rebuilt",
                f"{restore(table.name)}, which lets the view forget it",
            )
            return


def check_savepoints(table: KeyedTable, base: TableState, change: TableState) -> Iterator[Finding]:
    """A savepoint is a tag on both; a command that was cut off leaves one."""
    bases, changes = savepoints(base.tags), savepoints(change.tags)
    for name in sorted({*bases} ^ {*changes}):
        side = table.base if name in bases else table.change
        yield Finding(
            "savepoint",
            table.name.dotted,
            f"the savepoint {name} is on {side} only",
            side.dotted,
            "the command that makes savepoints was cut off, or a tag was dropped by hand",
            f"dbt-arctic savepoint {table.name.schema}.{table.name.identifier} {name} --drop",
        )
