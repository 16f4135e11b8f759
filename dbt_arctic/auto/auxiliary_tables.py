"""The tables of an automatic model's auxiliary views: their names, and the model that owns them."""

from __future__ import annotations

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.planner.auxiliary.view_selection import MOST
from dbt_arctic.refresh.build import drop_keyed
from dbt_arctic.store.context import Context
from dbt_arctic.store.state import find_keyed

_OF_STATE = "the state of "


def state_name(name: Name, place: int = 1) -> Name:
    """What a state of a model is called.

    :param place: among the model's states, in the order in which they are refreshed.
    """
    return name.sibling(f"{name.identifier}__state{'' if place == 1 else f'_{place}'}")


def owner_of_state(name: Name) -> str:
    """The owner recorded on an auxiliary view, which distinguishes it from a model of the same name."""
    return f"{_OF_STATE}{name.dotted}"


def model_of_state(table: KeyedTable) -> str | None:
    """The dotted name of the model whose auxiliary view a table is; ``None`` if it is none."""
    return table.owner.removeprefix(_OF_STATE) if table.owner.startswith(_OF_STATE) else None


def find_state(catalog: CatalogReader, name: Name, place: int = 1) -> KeyedTable | None:
    """A state of an automatic model, if it has one in this place."""
    stored = find_keyed(catalog, state_name(name, place))
    return stored if stored is not None and stored.owner == owner_of_state(name) else None


def find_states(catalog: CatalogReader, name: Name) -> list[KeyedTable]:
    """The states of an automatic model, in the order in which they are refreshed."""
    found = []
    for place in range(1, MOST + 1):
        stored = find_state(catalog, name, place)
        if stored is None:
            break
        found.append(stored)
    return found


def is_free(catalog: CatalogReader, name: Name, place: int = 1) -> bool:
    """Whether a state may be made: nothing else has its name."""
    state = state_name(name, place)
    if find_state(catalog, name, place) is not None:
        return True
    return (
        catalog.of(state).load_table(state.schema, state.identifier) is None
        and catalog.of(state).load_view(state.schema, state.identifier) is None
    )


def drop_states(context: Context, name: Name, first: int = 1) -> None:
    """Drop the states that a model does not need any more.

    The last one goes first: after an interruption, the others are still found one after the other.

    :param first: the place of the first of them.
    """
    for place in reversed(range(first, MOST + 1)):
        stored = find_state(context.catalog, name, place)
        if stored is not None:
            drop_keyed(context, stored)


__all__ = [
    "drop_states",
    "find_state",
    "find_states",
    "is_free",
    "model_of_state",
    "owner_of_state",
    "state_name",
]
