"""Finds the relation that belongs to a name, even after a swap of a table and a view was interrupted.

Tables and views share one namespace, so a swap takes two renames. Between them the name is free, and the old
and the new relation have names that this module recognises.
"""

from __future__ import annotations

from typing import Literal

from dbt_arctic.catalog.api import CatalogReader, RelationEntry
from dbt_arctic.keyed.names import Name
from dbt_arctic.refresh.clone import is_clone
from dbt_arctic.store.leftovers import aside_of
from dbt_arctic.store.state import keyed_from_view

Kind = Literal["table", "view", "keyed", "clone"]


def kind_of(catalog: CatalogReader, name: Name) -> Kind | None:
    """The kind of the relation that currently has a name.

    :raises NewerProtocol: a newer dbt-arctic wrote it.
    """
    if catalog.of(name).load_table(name.schema, name.identifier) is not None:
        return "table"
    view = catalog.of(name).load_view(name.schema, name.identifier)
    if view is None:
        return None
    if keyed_from_view(name, view) is not None:
        return "keyed"
    return "clone" if is_clone(view.properties) else "view"


def set_aside(catalog: CatalogReader, name: Name) -> list[RelationEntry]:
    """The relations that an interrupted swap left, in the order in which a recovery tries them."""
    left = [
        entry
        for entry in catalog.of(name).list_names(name.schema)
        if (aside := aside_of(entry.name)) is not None and aside.of == name.identifier
    ]
    return sorted(left, key=lambda entry: entry.name)


def standing(catalog: CatalogReader, name: Name) -> Name:
    """The relation that holds the rows of a name: the name itself, or a name that an interrupted swap left.

    A model is compiled before its run restores the name, so compilation resolves it with this function.
    """
    if kind_of(catalog, name) is None:
        for entry in set_aside(catalog, name):
            return name.sibling(entry.name)
    return name


def standing_kind(catalog: CatalogReader, name: Name) -> Kind | None:
    """The kind of the relation that ``standing`` returns."""
    kind = kind_of(catalog, name)
    if kind is not None:
        return kind
    return next((kind_of(catalog, name.sibling(entry.name)) for entry in set_aside(catalog, name)), None)
