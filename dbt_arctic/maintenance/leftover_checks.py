"""Reports leftovers in a schema as findings. Pure; ``leftovers`` decides what is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import side_generation, side_root
from dbt_arctic.maintenance.finding import Finding, clean_command, from_error, restore_command
from dbt_arctic.maintenance.inventory import Inventory, roots
from dbt_arctic.maintenance.leftovers import KeptLeftover, Kind, Removal, Retention, find_leftovers
from dbt_arctic.store.leftovers import aside_of

_WORDS: Mapping[Kind, str] = {
    "generation": "is a side table that no view uses",
    "branch": "was left behind",
    "staging": "is a staging table that was left behind",
    "set-aside": "was renamed and never dropped",
    "state": "is an auxiliary view without its model",
    "index": "is an index without its table",
}
_NEVER_MS = 10**15


def check_leftovers(inventory: Inventory, now_ms: int) -> Iterator[Finding]:
    """What ``dbt-arctic clean`` would remove, and what it keeps because the user must decide."""
    found = find_leftovers(inventory, now_ms, Retention(keep_previous_ms=_NEVER_MS))
    for removal in found.removals:
        yield _removable(removal)
    yield from _without_view(inventory, found.kept)
    for kept in found.kept:
        aside = aside_of(kept.target.identifier)
        if kept.kind == "interrupted-swap" and aside is not None:
            yield Finding(
                "interrupted-swap",
                kept.target.sibling(aside.of).dotted,
                f"{kept.target.sibling(aside.of)} is missing; its rows are in {kept.target.identifier}",
                kept.target.dotted,
                kept.why,
                f"dbt run --select {aside.of}, which renames it back first",
            )


def check_unreadable(inventory: Inventory) -> Iterator[Finding]:
    """Views and tables of the catalog whose metadata cannot be read."""
    there = roots(inventory)
    for name, error in sorted(inventory.damaged_views.items()):
        view = inventory.name(name)
        repair = f"{restore_command(view)}, which needs no backup; or: {error.fix}" if name in there else ""
        yield from_error("metadata", view, error, repair)
    known_sides = {
        side.identifier for table in inventory.keyed.values() for side in (table.base, table.change)
    }
    for name, damage in sorted(inventory.damaged_tables.items()):
        if name not in known_sides:
            yield from_error("metadata", inventory.name(name), damage)
    for name, invalid in sorted(inventory.invalid_views.items()):
        view = inventory.name(name)
        newer = invalid.code == "AR-402"
        fix = restore_command(view) if name in there and not newer else ""
        yield from_error("newer-protocol" if newer else "view-properties", view, invalid, fix)


def _removable(removal: Removal) -> Finding:
    owner = removal.table.name if removal.table is not None else removal.target
    return Finding(
        f"leftover-{removal.kind}",
        owner.dotted,
        f"{removal.what} {_WORDS[removal.kind]}",
        removal.target.dotted,
        removal.why,
        clean_command(removal.target),
    )


def _without_view(inventory: Inventory, kept: list[KeptLeftover]) -> Iterator[Finding]:
    """Side tables whose view is missing or was replaced; the rows still exist."""
    by_root: dict[str, set[int]] = {}
    for one in kept:
        root = side_root(one.target.identifier)
        if one.kind == "no-view" and root is not None:
            number = side_generation(one.target.sibling(root), one.target.identifier)
            by_root.setdefault(root, set()).add(number or 0)
    for root, numbers in sorted(by_root.items()):
        name = inventory.name(root)
        newest = max(numbers)
        yield Finding(
            "view-missing",
            name.dotted,
            f"{_what_is_there(inventory, name)}, but generation {newest} of the keyed table still exists",
            name.dotted,
            "the view was dropped or replaced manually; or a run was interrupted: a first build, or one that "
            "changed the model's materialization",
            f"{restore_command(name)} restores generation {newest}; dbt run --select {root} builds a new "
            f"one; {clean_command(name)} --dropped removes it",
        )


def _what_is_there(inventory: Inventory, name: Name) -> str:
    if name.identifier in inventory.views:
        return f"{name} is an ordinary view"
    if inventory.exists(name.identifier):
        return f"{name} is a table"
    return f"{name} does not exist"
