"""Which relations of a schema are read for some of its tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt_arctic.catalog.api import RelationEntry, TableState, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.maintenance.inventory import take_inventory

SCHEMA = "shop"


def keyed(name: str) -> KeyedTable:
    columns = (Column("id", "int"),)
    return KeyedTable(
        Name("lake", SCHEMA, name), Generation(1, "b", "c"), ("id",), Layout(2, ("id",)), columns
    )


@dataclass
class Shop(OneCatalog):
    """Keyed tables with their side tables, and plain tables, each with the number of times it was read."""

    keyed: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()
    read: list[str] = field(default_factory=list)

    def list_names(self, schema: str) -> list[RelationEntry]:
        sides = [side.identifier for name in self.keyed for side in keyed(name).side_tables]
        return [
            *(RelationEntry(schema, name, "view", {}) for name in self.keyed),
            *(RelationEntry(schema, name, "table", {}) for name in (*sides, *self.plain)),
        ]

    def load_table(self, schema: str, name: str) -> TableState | None:
        self.read.append(name)
        if name in self.damaged:
            raise CatalogUnavailable("its metadata is gone")
        return TableState(schema, name, "", {}, (), (), None, {})

    def load_view(self, schema: str, name: str) -> ViewState | None:
        self.read.append(name)
        return ViewState(schema, name, keyed(name).to_properties(), (), "")


def test_of_some_tables_only_these_and_their_sides_are_read_each_once() -> None:
    shop = Shop(("orders", "items"), ("log", "old"), ("orders__change_1",))
    found = take_inventory(shop, "lake", SCHEMA, {"orders", "log"})
    assert sorted(shop.read) == ["log", "orders", "orders__base_1", "orders__change_1"]
    assert (set(found.keyed), set(found.damaged_tables)) == ({"orders"}, {"orders__change_1"})
    assert set(found.tables) == {"log", "orders__base_1"}


def test_what_is_read_of_some_tables_is_what_is_read_of_all() -> None:
    shop = Shop(("orders", "items"), ("log", "old"), ("orders__change_1", "old"))
    everything = take_inventory(shop, "lake", SCHEMA)
    named = {one.name for one in shop.list_names(SCHEMA)}
    some = take_inventory(shop, "lake", SCHEMA, named)
    assert (some.tables, some.views, some.keyed) == (everything.tables, everything.views, everything.keyed)
    assert set(some.damaged_tables) == set(everything.damaged_tables) == {"orders__change_1", "old"}
    assert len(shop.read) == 2 * len(named)
