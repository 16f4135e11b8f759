"""Finds the consumers of a keyed table: tables whose newest commit records a read of it, and clones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dbt_arctic.catalog.api import CatalogReader, TableState
from dbt_arctic.errors import ArcticError, CatalogUnavailable
from dbt_arctic.keyed.clone_origin import began_as
from dbt_arctic.keyed.log import consumed_versions, log_range
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import PROPERTY_OF, KeyedTable
from dbt_arctic.keyed.version import Consumed, Version
from dbt_arctic.maintenance.inventory import take_inventory
from dbt_arctic.refresh.clone import is_clone
from dbt_arctic.store.state import load_change


@dataclass(frozen=True)
class Consumer:
    """One table that may hold copies of rows.

    :param consumed: the version that it last read; ``None`` for a clone, which has no rows of its own, for a
        table that began as one, and for a table that cannot be read.
    :param began_as_clone: whether it was a clone until its first write, which copied the rows.
    :param why: why it is unknown whether the table reads from this one, or that it began as a clone.
    """

    name: str
    consumed: Consumed | None = None
    is_clone: bool = False
    began_as_clone: bool = False
    why: str = ""


@dataclass(frozen=True)
class _Clone:
    """A relation that is or was a clone.

    :param source: what it was cloned from, which may be a clone, too.
    :param has_rows: whether it has rows of its own.
    """

    name: Name
    source: Name
    has_rows: bool


def find_consumers(catalog: CatalogReader, of: KeyedTable) -> list[Consumer]:
    """The consumers in all schemas of all catalogs of the profile, by name.

    Those that read it by another name are included. A further catalog that cannot be read is one of them.
    """
    found: dict[str, Consumer] = {}
    clones: list[_Clone] = []
    for name in catalog.names_with(of.name):
        for one in _in_catalog(catalog, of, name):
            if isinstance(one, _Clone):
                clones.append(one)
            else:
                found[one.name] = one
    for consumer in _clones_of(of.name, clones):
        found.setdefault(consumer.name, consumer)
    found.pop(of.name.dotted, None)
    return [found[name] for name in sorted(found)]


def _clones_of(name: Name, clones: Sequence[_Clone]) -> Iterator[Consumer]:
    """The clones of a table, and the clones of these, whether or not they have been written since."""
    left, sources = list(clones), {name}
    while reached := [one for one in left if one.source in sources]:
        left = [one for one in left if one.source not in sources]
        sources = {one.name for one in reached}
        for one in reached:
            why = "it began as a clone, and its first write copied the rows" if one.has_rows else ""
            yield Consumer(one.name.dotted, is_clone=not one.has_rows, began_as_clone=one.has_rows, why=why)


def _in_catalog(catalog: CatalogReader, of: KeyedTable, name: str) -> Iterator[Consumer | _Clone]:
    try:
        for schema in catalog.of(Name(name, "", "")).list_schemas():
            yield from _in_schema(catalog, of, name, schema)
    except CatalogUnavailable as error:
        if name == of.name.catalog:
            raise
        yield Consumer(f"the catalog {name}", why=f"it cannot be read: {error.why or error.what}")


def can_continue(catalog: CatalogReader, table: KeyedTable, consumer: Consumer) -> bool:
    """Whether the changes since a consumer's last read are still available for its next pull."""
    if consumer.consumed is None:
        return consumer.is_clone or consumer.began_as_clone
    if consumer.consumed.table_id != table.generation.change_id:
        return False
    try:
        before = Version.parse(consumer.consumed.version)
    except ArcticError:
        return False  # read when the table was still a plain table
    return log_range(load_change(catalog, table).history(), before.change_snapshot) is not None


def _in_schema(
    catalog: CatalogReader, of: KeyedTable, catalog_name: str, schema: str
) -> Iterator[Consumer | _Clone]:
    inventory = take_inventory(catalog, catalog_name, schema)
    shown = {
        side.identifier: table for table in inventory.keyed.values() for side in (table.base, table.change)
    }
    for name, state in inventory.tables.items():
        owner = shown.get(name)
        if owner is None and PROPERTY_OF in state.properties:
            continue  # belongs to an old generation, into which nothing is pulled any more
        shown_name = inventory.name(name) if owner is None else owner.name
        consumed = _consumed(state, of)
        if consumed is not None:
            yield Consumer(shown_name.dotted, consumed)
        if (source := began_as(state.properties)) is not None:
            yield _Clone(shown_name, source, has_rows=True)
    for name, view in inventory.views.items():
        if (source := began_as(view.properties)) is not None:
            yield _Clone(inventory.name(name), source, has_rows=not is_clone(view.properties))
    damaged: dict[str, CatalogUnavailable] = {**inventory.damaged_tables, **inventory.damaged_views}
    for name, error in damaged.items():
        yield Consumer(inventory.name(name).dotted, why=f"it cannot be read: {error.why}")
    for name, invalid in inventory.invalid_views.items():
        yield Consumer(inventory.name(name).dotted, why=f"its properties are invalid: {invalid.what}")


def _consumed(state: TableState, of: KeyedTable) -> Consumed | None:
    read = consumed_versions(state.history())
    ids = {made.change_id for made in (of.generation, of.previous) if made is not None}
    return read.get(of.name.dotted) or next((one for one in read.values() if one.table_id in ids), None)
