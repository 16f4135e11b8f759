"""What a full refresh of a model would read of a table of the catalog, and tables that cannot be read."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt_arctic.adapter.model_lags import LagReader, ModelGraph, _full_refresh_of, lags_of
from dbt_arctic.catalog.api import TableState, ViewState
from dbt_arctic.catalog.multi_catalog import OneCatalog
from dbt_arctic.errors import CatalogUnavailable
from dbt_arctic.keyed.version import Consumed, encode_consumed
from dbt_arctic.scheduling.model_lag import ModelLag, problems_of
from dbt_arctic.sources.unread import RefreshSize
from tests.unit.compaction.conftest import MB, Log, Orders


class Catalog(OneCatalog):
    def __init__(self, orders: Orders) -> None:
        sides = {"base-1": orders.base.state, "change-1": orders.change.state}
        self.tables = {one.name: replace(one, properties={"arctic.id": id_}) for id_, one in sides.items()}
        self.view = ViewState("shop", "orders", orders.table.to_properties(), (), "")
        self.damaged: set[str] = set()

    def load_table(self, schema: str, name: str) -> TableState | None:
        if name in self.damaged:
            raise CatalogUnavailable(f"The metadata of `{name}` cannot be read.")
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


def lags(catalog: Catalog, *wanted: str) -> dict[str, ModelLag]:
    """The lags of ``orders``, which reads nothing, and ``daily``, which reads it."""
    nodes: dict[str, Any] = {
        name: SimpleNamespace(
            name=name,
            alias=name,
            schema="shop",
            database="lake",
            resource_type="model",
            depends_on=SimpleNamespace(nodes=[]),
        )
        for name in ("orders", "daily")
    }
    manifest = SimpleNamespace(sources={}, nodes=nodes)
    reader = LagReader(cast(Any, catalog), cast(Any, None), manifest, with_full_refresh=True)
    graph = ModelGraph(nodes, {"orders": (), "daily": ("orders",)})
    return {one.model: one for one in lags_of(reader, graph, wanted or ("daily",))}


def shop() -> Catalog:
    orders = Orders()
    orders.build()
    orders.change.commit(60, rows=10, consumed=encode_consumed({}))
    catalog = Catalog(orders)
    read = Consumed("change-1", f"1.{orders.change.snapshots[-1].snapshot_id}.1")
    daily = Log("daily")
    daily.commit(50, rows=10, consumed=encode_consumed({"lake.shop.orders": read}))
    catalog.tables["daily"] = daily.state
    return catalog


@pytest.mark.parametrize("side", ["base", "change"])
@pytest.mark.parametrize("is_missing", [True, False])
def test_a_table_whose_side_table_cannot_be_read_has_a_problem(side: str, is_missing: bool) -> None:
    catalog = shop()
    assert [problems_of(one) for one in lags(catalog).values()] == [[], []]
    name = f"orders__{side}_1"
    if is_missing:
        del catalog.tables[name]
    else:
        catalog.damaged.add(name)
    found = lags(catalog)
    assert found["orders"].problem.endswith(": dbt-arctic verify")
    assert name in found["orders"].problem
    (upstream,) = found["daily"].waiting
    assert name in upstream.problem


def test_if_no_table_can_be_read_that_is_the_error() -> None:
    catalog = shop()
    catalog.damaged |= {*catalog.tables}
    with pytest.raises(CatalogUnavailable):
        lags(catalog, "orders")
