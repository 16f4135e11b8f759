"""Side tables that nobody shows are dropped, unless somebody shows them at this very moment."""

from __future__ import annotations

from dbt_arctic.keyed import create
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.store.context import Context


def drop_side(context: Context, catalog_name: str, target: Name, table: KeyedTable | None) -> bool:
    """Whether it went.

    The intention comes first, then the look at the views: who has shown it by then is seen; who shows it
    later sees the intention, and takes it back.
    """
    if context.catalog.load_table(target.schema, target.identifier) is None:
        return False
    context.run("announce_drop", create.announce_drop(target, context.run_id), table)
    now = take_inventory(context.catalog, catalog_name, target.schema)
    if any(target in shown.side_tables for shown in now.keyed.values()):
        context.run("withdraw_drop", create.withdraw_drop(target), table)
        return False
    context.run("drop_side_table", create.drop_table(target), table)
    return True
