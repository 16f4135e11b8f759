"""``clean``: removes what ``leftovers`` selects. Each item is checked again before it is removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dbt_arctic.keyed import create
from dbt_arctic.keyed.branch import drop_branch
from dbt_arctic.maintenance.drop import drop_side
from dbt_arctic.maintenance.inventory import Inventory, take_inventory
from dbt_arctic.maintenance.leftovers import Removal, Retention, find_leftovers
from dbt_arctic.refresh.build import drop_keyed
from dbt_arctic.store.context import Context
from dbt_arctic.store.publish_view import forget_previous


def remove_leftovers(
    context: Context,
    catalog_name: str,
    removals: Sequence[Removal],
    retention: Retention,
    report: Callable[[Removal, bool], None] = lambda removal, done: None,
) -> int:
    """Remove the items that the user agreed to, if they are still leftovers. Returns the number removed.

    Between the question and the answer, a run may have published a branch or restored a generation. The
    schema is therefore read again, and only items that would be offered again are removed.

    :param report: called with each removal, and whether it was done.
    """
    count = 0
    for schema in sorted({removal.target.schema for removal in removals}):
        inventory = take_inventory(context.catalog, catalog_name, schema)
        still = {
            _identity(removal) for removal in find_leftovers(inventory, context.now_ms(), retention).removals
        }
        forgotten: set[str] = set()
        for removal in removals:
            if removal.target.schema != schema:
                continue
            done = _identity(removal) in still
            if done:
                done = _remove(context, catalog_name, inventory, removal, forgotten)
                count += done
            report(removal, done)
    return count


def _remove(
    context: Context, catalog_name: str, inventory: Inventory, removal: Removal, forgotten: set[str]
) -> bool:
    """Remove one item and return whether it was removed."""
    table, target = removal.table, removal.target
    if removal.branch:
        context.run("drop_branch", drop_branch(target, removal.branch), table)
    elif removal.is_view and target.identifier in inventory.keyed:
        drop_keyed(context, inventory.keyed[target.identifier])
    elif removal.is_view:
        context.run("drop_aside", create.drop_view(target), table)
    elif removal.kind in ("previous", "generation"):
        if removal.kind == "previous" and table is not None and table.name.identifier not in forgotten:
            forget_previous(context, table)
            forgotten.add(table.name.identifier)
        return drop_side(context, catalog_name, target, table)
    else:
        step = {
            "staging": "drop_staging",
            "set-aside": "drop_aside",
            "rejected": "drop_rejected",
            "index": "drop_index",
        }[removal.kind]
        context.run(step, create.drop_table(target), table)
    return True


def _identity(removal: Removal) -> tuple[str, str, str]:
    return removal.kind, removal.target.dotted, removal.branch
