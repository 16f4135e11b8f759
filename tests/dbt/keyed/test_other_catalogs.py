"""A project that reads what another project has built in a catalog of its own.

Both have tables of the same names, down to the side tables, with other rows. So a table that is read from the
wrong catalog exists, and has wrong rows.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.catalog.embedded import EmbeddedCatalog
from dbt_arctic.cli.main import main
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.keyed.names import Name
from dbt_arctic.store.state import load_keyed
from tests.dbt.keyed.conftest import Shop, opened_shop

Rows = dict[int, tuple[int, int]]
"""The amount and the city of each order."""

MIRRORED = """
CREATE TRIGGER mirror_{event} AFTER {event} ON iceberg_tables WHEN NEW.catalog_name = 'lake' BEGIN
  DELETE FROM iceberg_tables WHERE catalog_name = 'archive'
    AND table_namespace = NEW.table_namespace AND table_name = NEW.table_name;
  INSERT INTO iceberg_tables SELECT 'archive', table_namespace, table_name, metadata_location,
    previous_metadata_location, iceberg_type FROM iceberg_tables WHERE catalog_name = 'lake'
    AND table_namespace = NEW.table_namespace AND table_name = NEW.table_name;
END;
"""
"""The catalog has a second name. A catalog on a server has as many names as clients."""


@dataclass
class Archive:
    """The other project: a keyed table and a plain one, and what is in them.

    :param catalog: its own name for its catalog, which the project that reads calls ``archive``.
    """

    shop: Shop
    catalog: str
    orders: Rows = field(default_factory=dict)
    events: list[int] = field(default_factory=list)

    def log(self, name: str) -> list[Snapshot]:
        """The commits of a keyed table, newest first."""
        catalog = EmbeddedCatalog(self.catalog, self.shop.warehouse)
        table = load_keyed(catalog, Name(self.catalog, self.shop.schema, name))
        change = catalog.load_table(self.shop.schema, table.change.identifier)
        assert change is not None
        return change.history()

    def run(self, orders: Rows, deleted: tuple[int, ...] = (), events: tuple[int, ...] = ()) -> None:
        """Write to both tables."""
        self.orders = {id_: row for id_, row in {**self.orders, **orders}.items() if id_ not in deleted}
        self.events += events
        rows = [f"({id_}, {amount}, {city}, false)" for id_, (amount, city) in orders.items()]
        rows += [f"({id_}, 0, 0, true)" for id_ in deleted]
        self.shop.model(
            "orders",
            "{{ config(materialized='incremental', unique_key='id', delete_when='gone', buckets=2) }} "
            f"select * from values {', '.join(rows)} as v(id, amount, city, gone)",
        )
        self.shop.model(
            "events",
            "{{ config(materialized='incremental', incremental_strategy='append') }} "
            f"select * from values {', '.join(f'({number})' for number in events)} as v(number)",
        )
        self.shop.dbt("run")


def use(shop: Shop, **settings: Any) -> None:
    """Change the target of a project."""
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text())
    profile["shop"]["outputs"]["dev"] |= settings
    shop.file("profiles.yml", yaml.safe_dump(profile))


def mirror(warehouse: Path) -> None:
    """Give the catalog ``lake`` of a warehouse the second name ``archive``."""
    with closing(sqlite3.connect(warehouse / "catalog.db")) as connection:
        for event in ("INSERT", "UPDATE"):
            connection.executescript(MIRRORED.format(event=event))
        connection.execute(
            "INSERT INTO iceberg_tables SELECT 'archive', table_namespace, table_name, metadata_location, "
            "previous_metadata_location, iceberg_type FROM iceberg_tables"
        )
        connection.execute(
            "INSERT INTO iceberg_namespace_properties SELECT 'archive', namespace, property_key, "
            "property_value FROM iceberg_namespace_properties"
        )
        connection.commit()


def declared_sources(schema: str) -> dict[str, Any]:
    in_archive = {
        "database": "archive",
        "schema": schema,
        "config": {"freshness": {"warn_after": {"count": 1, "period": "hour"}}},
    }
    amounts = {"accepted_values": {"arguments": {"values": [10, 20], "quote": False}}}
    columns = [
        {"name": "id", "data_tests": ["unique", "not_null"]},
        {"name": "amount", "data_tests": [amounts]},
    ]
    tables = [{"name": "orders", "columns": columns}, {"name": "events"}]
    by_column = {"name": "orders", "config": {"loaded_at_field": "timestamp_seconds(amount)"}}
    sources = [
        {"name": "arc", **in_archive, "tables": tables},
        {"name": "by_column", **in_archive, "tables": [by_column]},
    ]
    return {"version": 2, "sources": sources}


@pytest.fixture(params=["archive", "lake"])
def archive(
    request: pytest.FixtureRequest, shop: Shop, tmp_path: Path, shop_connection: SessionConnection
) -> Iterator[Archive]:
    folder, warehouse = tmp_path / "other_project", tmp_path / "other_warehouse"
    folder.mkdir()
    with opened_shop(folder, warehouse, shop_connection) as other:
        other.schema = shop.schema
        use(other, catalog=request.param, schema=shop.schema)
        made = Archive(other, request.param)
        made.run({1: (10, 1), 2: (20, 1), 3: (30, 2)}, events=(1, 2))
        if request.param == "lake":
            mirror(warehouse)
        use(shop, catalogs={"archive": {"type": "sqlite", "warehouse": str(warehouse)}})
        shop.file("models/archive.yml", yaml.safe_dump(declared_sources(shop.schema)))
        # Tables of the same names, in the catalog of this project.
        shop.model(
            "orders",
            "{{ config(materialized='incremental', unique_key='id', buckets=2) }} "
            "select * from values (1, -1, 1, false), (9, -9, 9, false) as v(id, amount, city, gone)",
        )
        shop.model("events", "{{ config(materialized='table') }} select -1 as number")
        shop.dbt("run")
        yield made


def test_another_project_is_read_exactly(shop: Shop, archive: Archive) -> None:
    shop.model("whole", "{{ config(materialized='table') }} select * from {{ source('arc', 'orders') }}")
    shop.model(
        "pulled",
        "{{ config(materialized='incremental', unique_key='id', buckets=2) }} "
        "select id, amount, city, _action from {{ incremental_pull(source('arc', 'orders')) }}",
    )
    shop.model(
        "appended",
        "{{ config(materialized='incremental', incremental_strategy='append') }} "
        "select number from {{ incremental_pull(source('arc', 'events')) }}",
    )
    shop.model(
        "automatic",
        "{{ config(materialized='incremental', incremental_strategy='auto', unique_key='city', "
        "full_refresh_above=1.0) }} "
        "select a.city, sum(a.amount) as amount, max(o.amount) as ours "
        "from {{ source('arc', 'orders') }} as a left join {{ ref('orders') }} as o on o.id = a.id "
        "group by a.city",
    )
    # What the analysis does not know is executed as it is written.
    shop.model(
        "as_written",
        "{{ config(materialized='incremental', incremental_strategy='auto', unique_key='id') }} "
        "select id, amount from {{ source('arc', 'orders') }} tablesample (100 percent)",
    )
    names = ["whole", "pulled", "appended", "automatic", "as_written"]
    for changes in ({}, {"orders": {2: (25, 2), 4: (40, 3)}, "deleted": (3,), "events": (3,)}):
        if changes:
            archive.run(**changes)
        shop.dbt("run", "--select", *names)
        orders = archive.orders
        assert shop.rows("whole", "id, amount, city") == sorted((i, *row) for i, row in orders.items())
        assert shop.rows("pulled", "id, amount, city") == shop.rows("whole", "id, amount, city")
        assert shop.rows("as_written") == shop.rows("whole", "id, amount")
        assert shop.rows("appended") == [(number,) for number in archive.events]
        assert shop.rows("automatic") == sorted(by_city(orders))
    assert shop.recorded["automatic"]["strategy"] == "incremental"
    # A commit to a table of the same name in this project is nothing new there.
    shop.sql("INSERT INTO {s}.events VALUES (-2)")
    shop.dbt("run", "--select", "appended", "pulled", "automatic")
    assert shop.recorded["automatic"]["strategy"] == "skip"
    assert shop.rows("appended") == [(number,) for number in archive.events]


def by_city(orders: Rows) -> list[tuple[int, int, int | None]]:
    ours = {1: -1, 9: -9}
    return [
        (
            city,
            sum(amount for amount, of in orders.values() if of == city),
            max((ours[id_] for id_, (_, of) in orders.items() if of == city and id_ in ours), default=None),
        )
        for city in {city for _, city in orders.values()}
    ]


def test_what_dbt_says_of_another_project_is_of_that_project(shop: Shop, archive: Archive) -> None:
    archive.run({3: (20, 2)}, events=(3,))
    written_ms = archive.log("orders")[0].timestamp_ms
    shop.try_dbt("source", "freshness")  # stale by its column
    found = json.loads((shop.folder / "target" / "sources.json").read_text(encoding="utf-8"))
    loaded = {one["unique_id"]: one["max_loaded_at"] for one in found["results"]}
    by_metadata = datetime.fromisoformat(loaded["source.shop.arc.orders"].replace("Z", "+00:00"))
    assert abs(by_metadata.timestamp() * 1000 - written_ms) < 1
    assert loaded["source.shop.by_column.orders"].startswith("1970-01-01T00:00:20")

    tests = shop.dbt("test", "--select", "source:arc").results
    assert [str(one.status) for one in tests] == ["pass"] * 3

    shop.dbt("docs", "generate")
    documented = json.loads((shop.folder / "target" / "catalog.json").read_text(encoding="utf-8"))
    theirs, ours = documented["sources"]["source.shop.arc.orders"], documented["nodes"]["model.shop.orders"]
    assert (theirs["metadata"]["database"], ours["metadata"]["database"]) == ("archive", "lake")
    assert (theirs["stats"]["num_rows"]["value"], ours["stats"]["num_rows"]["value"]) == (3, 2)

    use(shop, consistent_reads=True)
    shop.model("whole", "{{ config(materialized='table') }} select * from {{ source('arc', 'orders') }}")
    shop.dbt("run", "--select", "whole")
    assert shop.rows("whole", "id, amount") == [(1, 10), (2, 20), (3, 20)]


def test_a_name_that_would_read_from_here_is_not_stored(shop: Shop, archive: Archive) -> None:
    place = f"archive.{shop.schema}.orders"
    # A statement that is no model is executed as it is. The models must not read this.
    shown = shop.dbt("show", "--inline", f"select id from {place} order by id").results[0].agate_table
    rows = [int(row[0]) for row in shown.rows]
    shop.model(
        "shown", "{{ config(materialized='view') }} select id, amount from {{ source('arc', 'orders') }}"
    )
    shop.model("named", f"select id from {place}")
    config = "config(materialized='table', database='cold', schema='missing')"
    shop.model("elsewhere", f"{{{{ {config} }}}} select 1 as id")
    assert "elsewhere has the catalog cold" in shop.fail("run", "--select", "elsewhere")
    assert [sql for sql in shop.script.ran if "missing" in sql] == []
    if archive.catalog == "archive":
        assert rows == [1, 2, 3]
        shop.dbt("run", "--select", "shown", "named")
        return
    assert rows == [1, 9]
    # What is written there would have a name in its view that the other project does not know.
    config = "config(materialized='incremental', unique_key='id', database='archive', alias='orders')"
    shop.model("ours", f"{{{{ {config} }}}} select 1 as id, 2 as amount, 3 as city")
    shop.model(
        "across", "{{ config(materialized='view', database='archive') }} select id from {{ ref('orders') }}"
    )
    before = archive.log("orders")
    refused = shop.refusals("run", "--full-refresh", "--select", "shown", "named", "ours", "across")
    assert ".orders has the name lake for its catalog" in refused["ours"]
    assert "which is in another catalog" in refused["across"]
    assert archive.log("orders") == before
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    verified = CliRunner().invoke(main, ["verify", "--catalog", "archive", "--all", *folders])
    assert "1 keyed table: no findings" in verified.output, "a name of others is not damage"
    for arguments in (["rollback", place, "current"], ["expire", place], ["savepoint", place, "kept"]):
        done = CliRunner().invoke(main, [*arguments, *folders])
        assert "has the name lake for its catalog" in f"{done.output}{done.exception}"
    assert "AR-301 the view of the keyed table" in refused["shown"]
    assert "make it a table" in refused["shown"]
    assert "write it with source()" in refused["named"]
