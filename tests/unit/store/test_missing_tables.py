"""A name that is not a keyed table is answered with the name that may be meant."""

from __future__ import annotations

import pytest

from dbt_arctic.catalog.api import CatalogReader, RelationEntry, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.errors import UnknownRelation
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.state import load_keyed


class _Catalog(OneCatalog):
    """A schema with the plain view ``orders`` and the clone ``cloned``, and one with ``customers``."""

    def __init__(self) -> None:
        self._names = {"shop": ["orders", "cloned"], "shop_ods": ["customers"]}

    def load_view(self, schema: str, name: str) -> ViewState | None:
        there = name in self._names.get(schema, [])
        properties = {"arctic.clone": '["lake", "prod", "cloned"]'} if name == "cloned" else {}
        return ViewState(schema, name, properties, (), "SELECT 1") if there else None

    def load_table(self, schema: str, name: str) -> None:
        return None

    def list_schemas(self) -> list[str]:
        return list(self._names)

    def list_names(self, schema: str) -> list[RelationEntry]:
        return [RelationEntry(schema, name, "view") for name in self._names[schema]]


@pytest.mark.parametrize(
    ("schema", "identifier", "what", "fix"),
    [
        ("shop", "orders", "lake.shop.orders is not a keyed table", "name a keyed table"),
        ("shop", "cloned", "lake.shop.cloned is a clone that was not written yet", "write it with its model"),
        ("shop", "customers", "there is no table lake.shop.customers", "did you mean shop_ods.customers?"),
        ("shop", "orderz", "there is no table lake.shop.orderz", "did you mean orders?"),
        ("shop", "nothing", "there is no table lake.shop.nothing", "name a keyed table"),
        ("new", "nothing", "there is no table lake.new.nothing", "name a keyed table"),
    ],
)
def test_the_error_suggests_what_is_there(schema: str, identifier: str, what: str, fix: str) -> None:
    catalog: CatalogReader = _Catalog()  # type: ignore[assignment]  # it has what is called
    with pytest.raises(UnknownRelation) as found:
        load_keyed(catalog, Name("lake", schema, identifier))
    assert found.value.what == what
    assert (found.value.fix or "").startswith(fix)
