"""Relations of other catalogs than the one in which the models are, and what the SQL of their views names.

Another project may have another name for the same catalog, which the texts of its views contain. In this
session, that name may be unknown, or be that of a different catalog.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from dbt_arctic.catalog.api import CatalogReader, ViewState
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name, quote
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.store.context import Context
from dbt_arctic.store.relation_reads import with_reads
from dbt_arctic.store.state import keyed_from_view


def is_readable(catalog: CatalogReader, name: Name, own: Name) -> bool:
    """Whether metadata of a name can be read.

    It is in the catalog of ``own``, or in another one of the profile.

    :param own: a name in the profile's own catalog.
    """
    if name.catalog.lower() == own.catalog.lower():
        return True
    try:
        # The only reader of a profile reads its own catalog, whatever the name.
        return catalog.of(name) is not catalog.of(own)
    except ConfigError:
        return False


def is_of_others(catalog: CatalogReader, name: Name) -> bool:
    """Whether a name is in another catalog than the profile's own.

    :param catalog: the readers of the profile, not one that ``of`` returned.
    """
    return catalog.of(name) is not catalog


def is_renamed(table: KeyedTable, view: ViewState) -> bool:
    """Whether the view of a keyed table names its side tables in a catalog of another name."""
    for side in (table.base, table.change):
        without_catalog = side.sql.removeprefix(quote(side.catalog))
        if view.sql.count(without_catalog) != view.sql.count(side.sql):
            return True
    return False


def catalog_in_text(table: KeyedTable, view: ViewState) -> str | None:
    """The name that the text of a keyed table's view has for its catalog.

    :returns: ``None`` if the text does not name the base table.
    """
    side = re.escape(table.base.sql.removeprefix(quote(table.base.catalog)))
    found = re.search(rf"`([^`]+)`{side}", view.sql)
    return None if found is None else found.group(1)


def has_other_name(catalog: CatalogReader, table: KeyedTable, view: ViewState | None) -> bool:
    """Whether a keyed table is in another catalog, for which the client that created it has another name."""
    return view is not None and is_of_others(catalog, table.name) and is_renamed(table, view)


def require_same_name(catalog: CatalogReader, name: Name, where: str) -> None:
    """Refuse to write to a keyed table of another catalog whose view has another name for that catalog.

    A write may replace the view, whose text would then have this profile's name. The clients that use the
    other one would read from a catalog that they do not know, or from a different one. The tables of a build
    have that name as well, so a build in progress would not be recognised.

    :raises ConfigError: names the catalog as the view does.
    """
    if not is_of_others(catalog, name) or not catalog.of(name).has_views():
        return  # a record has no text
    view = catalog.of(name).load_view(name.schema, name.identifier)
    table = None if view is None else keyed_from_view(name, view)
    if view is None or table is None or not has_other_name(catalog, table, view):
        return
    theirs = catalog_in_text(table, view)
    named = "another name" if theirs is None else f"the name {theirs}"
    raise ConfigError(
        f"the view of the keyed table {name} has {named} for its catalog",
        where=where,
        why="a write may replace the view, and the client that created it does not know the name "
        f"{name.catalog}",
        fix="give the catalog in profiles.yml the name that this client has for it, or write to a table of "
        "another name",
    )


def merged_text(table: KeyedTable) -> str:
    """The query of a keyed table's view, with the name that its catalog has here, for a FROM clause."""
    return f"(\n{merge_on_read(table.visible)}\n)"


def require_own_names(catalog: CatalogReader, view: Name, named: Name) -> None:
    """Refuse a view of another catalog whose text names a relation outside of that catalog.

    :param named: a relation that its text names.
    :raises ConfigError: it is unknown which catalog is meant.
    """
    if named.catalog.lower() != view.catalog.lower() and is_of_others(catalog, view):
        raise ConfigError(
            f"the view {view} reads {named}, which is not in its own catalog",
            where=view.dotted,
            why=f"where it was created, {named.catalog} may be the name of another catalog than here",
            fix="read the tables that it reads, or create it over tables of its own catalog only",
        )


def with_relation_texts(context: Context, texts: Mapping[Name, str]) -> Context:
    """The context in which SQL that is executed as written reads relations by these texts."""
    if not texts:
        return context

    def run(step: str, sql: str, table: KeyedTable | None = None) -> int | None:
        return context.run(step, with_texts(sql, texts), table)

    return replace(
        context,
        run=run,
        query=lambda sql: context.query(with_texts(sql, texts)),
        query_schema=lambda sql: context.query_schema(with_texts(sql, texts)),
    )


def with_texts(sql: str, texts: Mapping[Name, str]) -> str:
    """SQL that reads some relations by texts, as ``ref()`` and ``source()`` write them."""
    return with_reads(sql, texts.get) if any(name.sql in sql for name in texts) else sql
