"""The table of an automatic model's auxiliary view: its name, and the model that owns it."""

from __future__ import annotations

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.refresh.build import drop_keyed
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import find_keyed


def state_name(name: Name) -> Name:
    """What the state of a model is called."""
    return name.sibling(f"{name.identifier}__state")


def owner_of_state(name: Name) -> str:
    """The owner recorded on an auxiliary state, which distinguishes it from a model of the same name."""
    return f"the state of {name.dotted}"


def find_state(catalog: CatalogReader, name: Name) -> KeyedTable | None:
    """The state of an automatic model, if it has one."""
    stored = find_keyed(catalog, state_name(name))
    return stored if stored is not None and stored.owner == owner_of_state(name) else None


def is_free(catalog: CatalogReader, name: Name) -> bool:
    """Whether a state may be made: nothing else has its name."""
    state = state_name(name)
    if find_state(catalog, name) is not None:
        return True
    return (
        catalog.load_table(state.schema, state.identifier) is None
        and catalog.load_view(state.schema, state.identifier) is None
    )


def drop_lost_state(context: Context, name: Name) -> None:
    """Where a model is no query over a state any more, or is gone: what it had goes."""
    stored = find_state(context.catalog, name)
    if stored is not None:
        drop_keyed(context, stored)


__all__ = ["drop_lost_state", "find_state", "is_free", "owner_of_state", "state_name"]
