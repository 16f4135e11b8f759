"""Keyed tables in a catalog without views: one that says so, and in which no view is created.

Their rows are compared with an oracle in plain Python. Nothing has their name, so each read that does not
know them fails. ``make matrix`` does the same in Glue, which has no views.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from dbt_arctic.adapter import engines
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.settings import OtherCatalog
from tests.dbt.keyed.conftest import Shop, Terminal
from tests.dbt.keyed.test_other_catalogs import use

Orders = dict[int, tuple[str, int]]
"""The region and the amount of each order."""

KEYED = "materialized='incremental', buckets=2, unique_key='id'"
AUTO = (
    "materialized='incremental', incremental_strategy='auto', unique_key='region', buckets=2, "
    "full_refresh_above=1.0"
)
THERE = "database='flat'"
SUMS = "region, count(*) as orders, sum(amount) as amount"
MODELS = {
    "orders": f"{{{{ config({KEYED}, {THERE}, delete_when='amount < 0') }}}} "
    "select id, region, amount from {{ source('raw', 'raw_orders') }}",
    "totals": f"{{{{ config({AUTO}, {THERE}) }}}} select {SUMS} from {{{{ ref('orders') }}}} group by region",
    "over": f"{{{{ config({AUTO}, {THERE}) }}}} "
    f"select {SUMS} from {{{{ merged(ref('orders')) }}}} group by region",
    # In a catalog with views.
    "pulled": f"{{{{ config({KEYED}) }}}} "
    "select id, amount + 1 as amount, _action from {{ incremental_pull(ref('orders')) }}",
    "both": f"{{{{ config({AUTO}) }}}} select o.region, count(*) as orders, sum(p.amount) as amount "
    "from {{ ref('orders') }} as o join {{ merged(ref('pulled')) }} as p on p.id = o.id group by o.region",
    "whole": f"{{{{ config(materialized='table', {THERE}) }}}} select * from {{{{ merged(ref('orders')) }}}}",
}
TESTS = {"version": 2, "models": [{"name": "orders", "columns": [{"name": "id", "tests": ["unique"]}]}]}


@dataclass
class Flat:
    """The project, and what its tables contain."""

    shop: Shop
    catalog: EmbeddedCatalog
    connection: SessionConnection
    orders: Orders
    file: Path

    def load(self, rows: Orders) -> None:
        listed = ", ".join(f"({id_}, '{region}', {amount})" for id_, (region, amount) in rows.items())
        self.shop.source("raw_orders", f"SELECT * FROM VALUES {listed} AS v(id, region, amount)")
        self.orders |= rows
        self.orders = {id_: row for id_, row in self.orders.items() if row[1] >= 0}

    def rows(self, name: str, columns: str) -> list[tuple[Any, ...]]:
        sql = f"select {columns} from {{{{ ref('{name}') }}}}"
        (entry,) = self.shop.dbt("show", "--inline", sql, "--limit", "1000").results
        return sorted(tuple(int(v) if k != "region" else v for k, v in row.items()) for row in _cells(entry))

    def sums(self, more: int = 0) -> list[tuple[Any, ...]]:
        regions = {region for region, _ in self.orders.values()}
        amounts = {one: [a + more for region, a in self.orders.values() if region == one] for one in regions}
        return sorted((one, len(found), sum(found)) for one, found in amounts.items())

    def compare(self) -> None:
        orders = sorted((id_, *row) for id_, row in self.orders.items())
        assert self.rows("orders", "id, region, amount") == orders
        assert self.rows("whole", "id, region, amount") == orders
        assert self.rows("pulled", "id, amount") == [(id_, amount + 1) for id_, _, amount in orders]
        for name, more in {"totals": 0, "over": 0, "both": 1}.items():
            assert self.rows(name, "region, orders, amount") == self.sums(more), name

    def lose_record(self, name: str) -> None:
        """Remove the metadata file of a keyed table's record."""
        with closing(sqlite3.connect(self.file)) as database:
            found = database.execute(
                "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?", [f"{name}__arctic_keyed"]
            ).fetchall()
        ((location,),) = found
        Path(location.removeprefix("file:")).unlink()

    def forget(self, name: str) -> None:
        """Remove a table from the catalog, whose files stay."""
        with closing(sqlite3.connect(self.file)) as database, database:
            database.execute("DELETE FROM iceberg_tables WHERE table_name = ?", [name])

    def names(self) -> dict[str, str]:
        return {entry.name: entry.kind for entry in self.catalog.list_names(self.shop.schema)}


def _cells(entry: Any) -> list[dict[str, Any]]:
    table = entry.agate_table
    return [dict(zip(table.column_names, row, strict=True)) for row in table.rows]


@pytest.fixture
def flat(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Flat]:
    folder = tmp_path / "flat"
    folder.mkdir()
    monkeypatch.setattr(EmbeddedCatalog, "has_views", lambda catalog: catalog._name != "flat")
    monkeypatch.setattr(engines, "HAVE_VIEWS", ())
    use(shop, catalogs={"flat": {"type": "sqlite", "warehouse": str(folder)}})
    settings = replace(shop.connection.settings, others=(OtherCatalog("flat", str(folder), {}),))
    for name, text in MODELS.items():
        shop.model(name, text)
    shop.file("models/tests.yml", yaml.safe_dump(TESTS))
    connection = SessionEngine(settings).connect()
    yield Flat(shop, EmbeddedCatalog("flat", folder), connection, {}, folder / "catalog.db")
    connection.close()
    views = [sql for sql in shop.script.ran if re.search(r"\bVIEW\s+`?flat\b", sql)]
    assert not views


def test_keyed_tables_without_a_view_have_the_rows_of_an_oracle(flat: Flat, type_in: Terminal) -> None:
    shop = flat.shop
    flat.load({1: ("north", 5), 2: ("north", 20), 3: ("south", 30)})
    built = {one.node.name: one.message for one in shop.dbt("build").results if one.message}
    assert built["orders"] == "BUILD 3 rows, without a view"
    assert "without a view" not in built["pulled"]
    flat.compare()
    assert "orders" not in flat.names()
    assert flat.names()["orders__arctic_keyed"] == "table"

    flat.load({1: ("south", 7), 2: ("north", -1), 4: ("east", 40)})
    refreshed = {one.node.name: one.message for one in shop.dbt("build").results if one.message}
    assert all(refreshed[name].startswith("INCREMENTAL") for name in ("totals", "over", "both")), refreshed
    flat.compare()

    table = f"flat.{shop.schema}.orders"
    type_in("compact", table, "--kind", "major")
    assert "orders" in type_in("status", "--catalog", "flat")
    type_in("verify", "--catalog", "flat")
    shop.dbt("run-operation", "keyed_sql", "--args", f"{{sql: 'update {table} set amount = 9 where id = 1'}}")
    flat.orders[1] = ("south", 9)
    flat.load({5: ("east", 50)})
    shop.dbt("build")
    flat.compare()

    flat.load({3: ("north", 31)})
    shop.dbt("build", "--full-refresh")
    flat.orders = {3: ("north", 31)}  # only the rows of the source
    flat.compare()
    shop.dbt("docs", "generate")

    plain = f"flat.{shop.schema}.whole"
    type_in("adopt", plain, "--key", "id", "--yes")
    assert flat.names()["whole__arctic_keyed"] == "table"
    assert "whole" not in flat.names()
    flat.compare()
    type_in("adopt", plain, "--undo", "--yes")
    assert flat.names()["whole"] == "table"

    # Spark can neither replace nor drop a record whose metadata file is missing.
    flat.lose_record("orders")
    told = type_in("restore", table, "--yes", code=2)
    assert "orders__arctic_keyed, which has no rows, from the catalog" in told
    flat.forget("orders__arctic_keyed")
    type_in("restore", table, "--yes")
    flat.compare()


def test_what_needs_a_view_is_refused_and_a_read_by_name_fails(flat: Flat) -> None:
    shop = flat.shop
    flat.load({1: ("north", 5)})
    shop.dbt("run", "--select", "orders")
    shop.model(
        "shown", f"{{{{ config(materialized='view', {THERE}) }}}} select * from {{{{ ref('whole') }}}}"
    )
    assert "AR-301" in (refused := shop.fail("run", "--select", "shown"))
    assert "`flat` has no views" in refused
    # A view that names the table could not be read by other clients either.
    shop.model("shown", "{{ config(materialized='view') }} select * from {{ ref('orders') }}")
    assert "AR-301" in (refused := shop.fail("run", "--select", "shown"))
    assert "has no view" in refused
    shop.model("shown", f"{{{{ config(materialized='table') }}}} select * from flat.{shop.schema}.orders")
    assert "TABLE_OR_VIEW_NOT_FOUND" in shop.fail("run", "--select", "shown")
    shop.model(
        "shown", "{{ config(materialized='table') }} select * from {{ merged(source('raw', 'raw_orders')) }}"
    )
    assert "is not a keyed table" in shop.fail("run", "--select", "shown")
