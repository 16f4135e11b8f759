"""What a full refresh of a model would read of a table of the catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from dbt_arctic.adapter.model_lags import _full_refresh_of
from dbt_arctic.catalog.api import TableState, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.sources.unread import RefreshSize
from tests.unit.compaction.conftest import MB, Orders


class Catalog(OneCatalog):
    def __init__(self, orders: Orders) -> None:
        sides = {"base-1": orders.base.state, "change-1": orders.change.state}
        self.tables = {one.name: replace(one, properties={"arctic.id": id_}) for id_, one in sides.items()}
        self.view = ViewState("shop", "orders", orders.table.to_properties(), (), "")

    def load_table(self, schema: str, name: str) -> TableState | None:
        return self.tables.get(name)

    def load_view(self, schema: str, name: str) -> ViewState | None:
        return self.view if name == "orders" else None


def test_deleted_rows_and_markers_are_not_read() -> None:
    orders = Orders(buckets=4)
    orders.build(rows=1000, size=100 * MB)
    orders.merge(50, orders.upsert(60, rows=10, size=MB), hidden=7)
    catalog = cast(Any, Catalog(orders))
    assert _full_refresh_of(catalog, "lake.shop.orders") == RefreshSize("row", 1000 - 7 + 10, 101 * MB)
    assert _full_refresh_of(catalog, "lake.shop.orders__base_1") == RefreshSize("row", 1000 - 7, 100 * MB)
    assert _full_refresh_of(catalog, "lake.shop.missing") is None
    # Totals are optional in Iceberg.
    (base, *_), state = orders.base.snapshots, orders.base.state
    catalog.tables[state.name] = replace(state, snapshots=(replace(base, summary={}),), current_snapshot_id=1)
    assert _full_refresh_of(catalog, "lake.shop.orders__base_1") == RefreshSize("row")
