"""Another machine's clock was ten minutes ahead when it committed: Iceberg refuses each commit until then."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit

from tests.dbt.keyed.conftest import Shop, Terminal

AHEAD_MS = 600_000


def ahead(shop: Shop, table: str) -> str:
    """Give the last commit of a table the time of a fast clock. Returns where its metadata was before."""
    with contextlib.closing(sqlite3.connect(shop.warehouse / "catalog.db")) as database, database:
        ((before,),) = database.execute(
            "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?",
            [shop.schema, table],
        ).fetchall()
        path = Path(urlsplit(before).path)
        document = json.loads(path.read_text(encoding="utf-8"))
        for snapshot in document["snapshots"]:
            if snapshot["snapshot-id"] == document["current-snapshot-id"]:
                snapshot["timestamp-ms"] += AHEAD_MS
        document["snapshot-log"][-1]["timestamp-ms"] += AHEAD_MS
        document["last-updated-ms"] += AHEAD_MS
        changed = path.with_name(f"99999-{path.name.partition('-')[2]}")
        changed.write_text(json.dumps(document), encoding="utf-8")
    move(shop, table, before.replace(path.name, changed.name))
    return str(before)


def move(shop: Shop, table: str, location: str) -> None:
    """Make another metadata file the current one, as a commit does."""
    with contextlib.closing(sqlite3.connect(shop.warehouse / "catalog.db")) as database, database:
        database.execute(
            "UPDATE iceberg_tables SET metadata_location = ? WHERE table_namespace = ? AND table_name = ?",
            [location, shop.schema, table],
        )


def test_a_slow_clock_is_named_and_loses_nothing(shop: Shop) -> None:
    for name, config in {
        "keyed": "unique_key='id', buckets=1",
        "plain": "incremental_strategy='append'",
    }.items():
        shop.model(
            name,
            f"""{{{{ config(materialized='incremental', {config}) }}}}
            select id, amount from {{{{ incremental_pull(source('raw', 'raw_orders')) }}}}""",
        )
    shop.source("raw_orders", "SELECT 1 AS id, 10 AS amount")
    shop.dbt("run")
    tables = ("keyed__change_1", "plain")
    before = {table: ahead(shop, table) for table in tables}
    shop.sql("INSERT INTO {s}.raw_orders VALUES (2, 20)")
    for said in shop.refusals("run").values():
        assert "AR-209" in said
        assert "synchronize the clocks" in said
    said = Terminal(shop)("sql", "update keyed set amount = 0", code=2)
    assert "AR-209" in said
    assert shop.rows("keyed") == shop.rows("plain") == [(1, 10)]

    for table in tables:  # the time has passed
        move(shop, table, before[table])
    shop.dbt("run")
    assert shop.rows("keyed") == shop.rows("plain") == [(1, 10), (2, 20)]
