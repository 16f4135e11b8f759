"""Drops side tables that no view uses, safely against a concurrent run that starts to use them."""

from __future__ import annotations

from dbt_arctic.keyed import create
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.store.context import Context


def drop_side(context: Context, catalog_name: str, target: Name, table: KeyedTable | None) -> bool:
    """Drop a side table and return whether it was dropped.

    The intention is recorded before the views are read. A view that uses the table by then is seen here. A
    run that starts to use it later sees the intention and withdraws it.
    """
    if context.catalog.of(target).load_table(target.schema, target.identifier) is None:
        return False
    context.run("announce_drop", create.announce_drop(target, context.run_id), table)
    now = take_inventory(context.catalog, catalog_name, target.schema)
    if any(target in shown.side_tables for shown in now.keyed.values()):
        context.run("withdraw_drop", create.withdraw_drop(target), table)
        return False
    context.run("drop_side_table", create.drop_table(target), table)
    return True
