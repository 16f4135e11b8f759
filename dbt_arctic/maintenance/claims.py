"""Finds the table versions that consumers still need, from the consumed versions each table has recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.savepoint import consumed_at, savepoints
from dbt_arctic.keyed.table import PROPERTY_OF
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.maintenance.inventory import Inventory, take_inventory


@dataclass(frozen=True)
class Claim:
    """The version of a table that a consumer still needs.

    :param consumer: the dotted name of the table that last read ``consumed`` and continues from there.
    """

    consumer: str
    consumed: Consumed


@dataclass(frozen=True)
class Claims:
    """Claims by the id of the table that was read, because a rename keeps the id.

    :param by_savepoint: the claims of versions that savepoints keep, in the same form.
    :param unknown: tables that cannot be read, and why; it is unknown what they still need.
    """

    by_id: dict[str, list[Claim]] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    by_savepoint: dict[str, list[Claim]] = field(default_factory=dict)

    def of(self, table_id: str, released: frozenset[str] = frozenset()) -> list[Claim]:
        """The claims on one table.

        :param released: consumers whose claims are ignored.
        """
        return [one for one in self.by_id.get(table_id, []) if one.consumer not in released]

    def of_savepoints(self, table_id: str) -> list[Claim]:
        """The claims of savepoints on one table. After a rollback, the consumer continues from there."""
        return self.by_savepoint.get(table_id, [])


def find_claims(catalog: CatalogReader, catalog_name: str) -> Claims:
    """Collect the claims of all schemas of all catalogs of the profile.

    The previous generation counts too, because it may be restored.

    :param catalog_name: the catalog of the tables on which the claims are. What the consumers in a further
        one still need is unknown if that one cannot be read.
    """
    found = Claims()
    own = Name(catalog_name, "", "")
    for name in catalog.names_with(own):
        try:
            _add_claims(found, catalog, name)
        except CatalogUnavailable as error:
            if name == own.catalog:
                raise
            found.unknown[f"the catalog {name}"] = error.why or error.what
    return found


def _add_claims(found: Claims, catalog: CatalogReader, catalog_name: str) -> None:
    for schema in catalog.of(Name(catalog_name, "", "")).list_schemas():
        inventory = take_inventory(catalog, catalog_name, schema)
        for claim in _in_schema(inventory):
            found.by_id.setdefault(claim.consumed.table_id, []).append(claim)
        for claim in _of_savepoints(inventory):
            found.by_savepoint.setdefault(claim.consumed.table_id, []).append(claim)
        for name, error in {**inventory.damaged_tables, **inventory.damaged_views}.items():
            found.unknown[inventory.name(name).dotted] = error.why or error.what
        for name, invalid in inventory.invalid_views.items():
            found.unknown[inventory.name(name).dotted] = invalid.what


def _in_schema(inventory: Inventory) -> Iterator[Claim]:
    named = {side.identifier: table for table in inventory.keyed.values() for side in table.side_tables}
    for name, state in inventory.tables.items():
        owner = named.get(name)
        if owner is None and PROPERTY_OF in state.properties:
            continue  # a generation that no view refers to
        consumer = (inventory.name(name) if owner is None else owner.name).dotted
        for consumed in consumed_versions(state.history()).values():
            yield Claim(consumer, consumed)


def _of_savepoints(inventory: Inventory) -> Iterator[Claim]:
    for name, state in inventory.tables.items():
        of = state.properties.get(PROPERTY_OF, inventory.name(name).dotted)
        for savepoint, snapshot in savepoints(state.tags).items():
            consumed = consumed_versions(state.history(snapshot)) or consumed_at(state.properties, snapshot)
            for one in consumed.values():
                yield Claim(f"savepoint {savepoint} of {of}", one)
