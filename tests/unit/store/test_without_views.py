"""The records of keyed tables in a catalog without views: how they are found, listed and read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.adapter.engines import RECORDS
from dbt_arctic.adapter.keyed_sql_api import KeyedSqlApi
from dbt_arctic.adapter.relation import ArcticRelation
from dbt_arctic.catalog.api import RelationEntry, TableState, ViewState
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.catalog.without_views import WithRecords
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed import create
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.read import merge_on_read
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from dbt_arctic.store.state import find_keyed
from dbt_arctic.store.without_views import text_without_view, with_records
from tests.unit.catalog.conftest import HandmadeWarehouse, handmade

__all__ = ["handmade"]

ORDERS = KeyedTable(
    Name("lake", "a", "orders"),
    Generation(2, "base", "change"),
    ("id",),
    Layout(buckets=2, bucket_by="id"),
    (Column("id", "bigint"),),
    root="orders",
    has_view=False,
)


@pytest.fixture
def catalog(handmade: HandmadeWarehouse, monkeypatch: pytest.MonkeyPatch) -> WithRecords:
    """A catalog without views that has the record of a keyed table, and two plain tables."""
    monkeypatch.setattr(EmbeddedCatalog, "has_views", lambda catalog: False)
    handmade.table("a", "orders__arctic_keyed", properties=ORDERS.to_properties())
    handmade.table("a", "orders__base_2")
    handmade.table("a", "plain")
    handmade.table("a", "strange__arctic_keyed")  # a table of another program
    return WithRecords(EmbeddedCatalog("lake", handmade.folder), RECORDS)


def test_a_record_is_the_view_of_its_keyed_table(catalog: WithRecords) -> None:
    assert find_keyed(catalog, ORDERS.name) == ORDERS
    assert catalog.load_table("a", "orders__arctic_keyed") is None
    assert catalog.load_table("a", "plain") is not None
    assert catalog.load_view("a", "plain") is None
    kinds = {entry.name: entry.kind for entry in catalog.list_names("a")}
    assert kinds == {
        "orders": "view",
        "orders__base_2": "table",
        "plain": "table",
        "strange__arctic_keyed": "table",
    }
    (entry,) = (entry for entry in catalog.list_relations("a") if entry.kind == "view")
    assert entry.properties.items() >= ORDERS.to_properties().items()


def test_a_listing_of_names_loads_no_record(catalog: WithRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    load = EmbeddedCatalog.load_table

    def noted(reader: EmbeddedCatalog, schema: str, name: str) -> TableState | None:
        loaded.append(name)
        return load(reader, schema, name)

    monkeypatch.setattr(EmbeddedCatalog, "load_table", noted)
    assert "orders" in {entry.name for entry in catalog.list_names("a")}
    assert loaded == ["strange__arctic_keyed"]  # only its properties say whether it is one


def test_a_listing_is_loaded_with_its_records(
    catalog: WithRecords, handmade: HandmadeWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = RelationEntry("a", "orders__arctic_keyed", "table")
    listed = [*catalog.list_names("a"), record]
    by_name = dict(zip([one.name for one in listed], catalog.load_all("a", listed), strict=True))
    assert by_name == {
        "orders": catalog.load_view("a", "orders"),
        "orders__base_2": catalog.load_table("a", "orders__base_2"),
        "plain": catalog.load_table("a", "plain"),
        "strange__arctic_keyed": catalog.load_table("a", "strange__arctic_keyed"),
        record.name: None,
    }
    assert isinstance(by_name["orders"], ViewState)
    handmade.table("a", record.name, properties=ORDERS.to_properties()).write_bytes(b"{")
    (damaged,) = catalog.load_all("a", [RelationEntry("a", "orders", "view")])
    assert isinstance(damaged, CatalogUnavailable)

    def asked(catalog: EmbeddedCatalog) -> bool:
        raise AssertionError("it may take a statement on Spark")

    monkeypatch.setattr(EmbeddedCatalog, "has_views", asked)
    assert None not in catalog.load_all(
        "a", [one for one in listed if one.name in ("plain", "orders__base_2")]
    )


def test_a_catalog_with_views_has_no_records(catalog: WithRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmbeddedCatalog, "has_views", lambda catalog: True)
    assert find_keyed(catalog, ORDERS.name) is None
    assert catalog.load_table("a", "orders__arctic_keyed") is not None
    assert {entry.kind for entry in catalog.list_names("a")} == {"table"}
    assert text_without_view(catalog, ORDERS.name) is None


def test_statements_read_the_merged_rows_in_place_of_the_name(catalog: WithRecords) -> None:
    merged = f"(\n{merge_on_read(ORDERS)}\n)"
    name, base, plain = (f"`lake`.`a`.`{one}`" for one in ("orders", "orders__base_2", "plain"))
    assert text_without_view(catalog, ORDERS.name) == merged
    read = f"SELECT * FROM {name} AS o JOIN {plain} AS p USING (id) LEFT JOIN\n{name} AS q USING (id)"
    assert with_records(catalog, read) == read.replace(name, merged)
    told = f"SELECT 'told' AS told FROM {name} WHERE a = 'FROM {name}' -- JOIN {name}"
    assert with_records(catalog, told) == told.replace(f"told FROM {name}", f"told FROM {merged}")
    for same in (
        f"SELECT 'FROM {name}' FROM {plain} -- JOIN {name}",
        f"SELECT * FROM {base}",
        f"SELECT * FROM {plain}",
        f"DELETE FROM {name} WHERE id = 1",
        f"SELECT * FROM {name}.snapshots",
        f"INSERT INTO {name} VALUES (1)",
        f"DROP TABLE {name}",
    ):
        assert with_records(catalog, same) == same


def test_statements_change_the_record_in_place_of_the_view() -> None:
    record = "`lake`.`a`.`orders__arctic_keyed`"
    published = create.publish_view(ORDERS, "it's")
    assert published.startswith(f"CREATE OR REPLACE TABLE {record} (")
    assert "'comment' = 'it\\'s'" in published
    assert "SELECT" not in published
    assert create.publish_view(ORDERS, replaces=False).startswith(f"CREATE TABLE {record} (")
    for statement in (
        create.set_retention(ORDERS),
        create.forget_previous(ORDERS),
        create.name_previous(ORDERS),
    ):
        assert statement.startswith(f"ALTER TABLE {record} SET TBLPROPERTIES (")
    assert create.drop_description(ORDERS) == f"DROP TABLE IF EXISTS {record} PURGE"


def test_a_listing_of_a_catalog_with_views_does_not_load_each_view() -> None:
    class WithViews:
        def of(self, name: object) -> WithViews:
            return self

        def has_views(self) -> bool:
            return True

    adapter = SimpleNamespace(catalog=WithRecords(cast(Any, WithViews()), RECORDS))
    view = ArcticRelation.create(database="lake", schema="dev", identifier="orders")
    assert KeyedSqlApi.record(cast(Any, adapter), view) is None
