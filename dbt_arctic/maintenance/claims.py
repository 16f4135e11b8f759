"""Which versions of tables somebody still has to read: what each table of a catalog says it consumed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dbt_arctic.catalog.api import CatalogReader
from dbt_arctic.keyed.log import consumed_versions
from dbt_arctic.keyed.table import PROPERTY_OF
from dbt_arctic.keyed.version import Consumed
from dbt_arctic.maintenance.inventory import Inventory, take_inventory


@dataclass(frozen=True)
class Claim:
    """The version of a table that a consumer still needs.

    :param consumer: the dotted name of who has read ``consumed`` last, and goes on from there.
    """

    consumer: str
    consumed: Consumed


@dataclass(frozen=True)
class Claims:
    """By the id of what was read, which it keeps under another name.

    :param unknown: what cannot be read, and why: nobody can say what it still needs.
    """

    by_id: dict[str, list[Claim]] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    def of(self, table_id: str, released: frozenset[str] = frozenset()) -> list[Claim]:
        """The claims on one table that still count.

        :param released: consumers whose claims do not count any more.
        """
        return [one for one in self.by_id.get(table_id, []) if one.consumer not in released]


def find_claims(catalog: CatalogReader, catalog_name: str) -> Claims:
    """Of every schema. The generation before a full refresh counts too: it may be shown again."""
    found = Claims()
    for schema in catalog.list_schemas():
        inventory = take_inventory(catalog, catalog_name, schema)
        for claim in _in_schema(inventory):
            found.by_id.setdefault(claim.consumed.table_id, []).append(claim)
        for name, error in {**inventory.damaged_tables, **inventory.damaged_views}.items():
            found.unknown[inventory.name(name).dotted] = error.why or error.what
        for name, strange in inventory.strange.items():
            found.unknown[inventory.name(name).dotted] = strange.what
    return found


def _in_schema(inventory: Inventory) -> Iterator[Claim]:
    named = {side.identifier: table for table in inventory.keyed.values() for side in table.side_tables}
    for name, state in inventory.tables.items():
        owner = named.get(name)
        if owner is None and PROPERTY_OF in state.properties:
            continue  # a generation that no view names
        consumer = (inventory.name(name) if owner is None else owner.name).dotted
        for consumed in consumed_versions(state.history()).values():
            yield Claim(consumer, consumed)
