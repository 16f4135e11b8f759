"""A snapshot of a catalog: values that were read do not change, and failed reads are repeated."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dbt_arctic.catalog.api import Loaded, RelationEntry
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.once import Once
from dbt_arctic.errors import CatalogUnavailable
from tests.unit.catalog.conftest import HandmadeWarehouse


def test_what_changes_meanwhile_does_not_show(handmade: HandmadeWarehouse) -> None:
    handmade.table("a", "orders")
    handmade.view("a", "shown", {"kind": "old"})
    catalog = EmbeddedCatalog("lake", handmade.folder)
    look = Once(catalog)
    assert (look.load_table("a", "later"), look.load_view("a", "later")) == (None, None)
    seen = (look.list_schemas(), look.list_names("a"), look.list_relations("a"))
    loaded = (look.load_table("a", "orders"), look.load_view("a", "shown"))

    handmade.schema("b")
    handmade.table("a", "later")
    handmade.table("a", "orders", location="/elsewhere")
    handmade.view("a", "shown", {"kind": "new"})

    assert (look.list_schemas(), look.list_names("a"), look.list_relations("a")) == seen
    assert (look.load_table("a", "orders"), look.load_view("a", "shown")) == loaded
    assert look.load_table("a", "later") is None
    assert not look.needs_spark
    anew = Once(catalog)
    assert anew.load_table("a", "orders") == catalog.load_table("a", "orders") != loaded[0]
    assert anew.load_view("a", "shown") == catalog.load_view("a", "shown") != loaded[1]


def test_a_failed_read_is_repeated(handmade: HandmadeWarehouse) -> None:
    path = handmade.table("a", "orders")
    content = path.read_bytes()
    path.write_bytes(b"{")
    look = Once(EmbeddedCatalog("lake", handmade.folder))
    for _ in range(2):
        with pytest.raises(CatalogUnavailable):
            look.load_table("a", "orders")
    path.write_bytes(content)
    assert look.load_table("a", "orders") is not None


def test_each_relation_of_a_listing_is_read_once_unless_that_failed(handmade: HandmadeWarehouse) -> None:
    read: list[str] = []

    class Counting(EmbeddedCatalog):
        def load_all(self, schema: str, entries: Sequence[RelationEntry]) -> list[Loaded]:
            read.extend(one.name for one in entries)
            return super().load_all(schema, entries)

    for name in ("orders", "broken"):
        handmade.table("a", name)
    handmade.table("a", "broken").write_bytes(b"{")
    handmade.view("a", "shown")
    catalog = Counting("lake", handmade.folder)
    look = Once(catalog)
    orders = look.load_table("a", "orders")
    listed = [*look.list_names("a"), RelationEntry("a", "gone", "table")]
    assert [one.name for one in listed] == ["broken", "orders", "shown", "gone"]
    for asked in (["broken", "shown", "gone"], ["broken"]):
        broken, *others = look.load_all("a", listed)
        assert isinstance(broken, CatalogUnavailable)
        assert others == [orders, catalog.load_view("a", "shown"), None]
        assert read == asked
        read.clear()
