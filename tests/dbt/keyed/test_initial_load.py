"""The first build loads the table of a database without its log, which is followed from then on."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import yaml

from tests.dbt.keyed.test_change_events import event
from tests.matrix.components import PASSWORD

from .conftest import Shop
from .database_servers import Server

MODEL = """\
{{ config(materialized='incremental', unique_key='id', sequence_by='_source_sequence', buckets=1) }}
select id, name, _source_sequence, _action from {{ incremental_pull(source('log', 'orders')) }}
{% if not is_incremental() %}
union all
select id, name, 'SEQUENCE', 'U' from {{ incremental_pull(source('crm', 'orders')) }}
{% endif %}"""


@pytest.fixture
def server(postgres_server: Server) -> Server:
    return postgres_server


def declare(shop: Shop, server: Server) -> None:
    columns = {"id": "bigint", "name": "string"}
    log = {"from": "files", "path": "landing", "format": "debezium", "key": "id", "columns": columns}
    table = {"from": "jdbc", "url": server.url, "table": "orders", "partitions": 4}
    sources = [
        {
            "name": name,
            "schema": "nowhere",
            "tables": [{"name": "orders", "config": {"meta": {"arctic": one}}}],
        }
        for name, one in (("log", log), ("crm", table))
    ]
    shop.file("models/sources.yml", yaml.safe_dump({"version": 2, "sources": sources}))
    path = shop.folder / "profiles.yml"
    profile = yaml.safe_load(path.read_text(encoding="utf-8"))
    for output in profile["shop"]["outputs"].values():
        output["jdbc"] = {"crm": {"password": PASSWORD}}
    path.write_text(yaml.safe_dump(profile), encoding="utf-8")


class Database:
    """Changes of the table, and the events that the log has of them."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server, self.chance = server, random.Random(seed)
        self.events: list[dict[str, Any]] = []
        self.keys: set[int] = set()
        server.sql("DROP TABLE IF EXISTS orders", "CREATE TABLE orders (id bigint PRIMARY KEY, name text)")

    def change(self, times: int) -> None:
        statements = []
        for _ in range(times):
            key, position = self.chance.randrange(8), len(self.events) + 1
            if key in self.keys and self.chance.random() < 0.4:
                self.keys.remove(key)
                statements.append(f"DELETE FROM orders WHERE id = {key}")
                self.events.append(event(position, "d", key))
                continue
            name = f"n{position}"
            statements.append(
                f"INSERT INTO orders VALUES ({key}, '{name}') ON CONFLICT (id) DO UPDATE SET name = '{name}'"
            )
            self.events.append(event(position, "u" if key in self.keys else "c", key, name))
            self.keys.add(key)
        self.server.sql(*statements)

    def rows(self) -> list[tuple[Any, ...]]:
        return self.server.sql("SELECT id, name FROM orders ORDER BY id")


def test_the_first_build_loads_the_table_and_then_the_log_is_followed(shop: Shop, server: Server) -> None:
    declare(shop, server)
    shop.model("orders", MODEL.replace("SEQUENCE", ""))
    shop.model("wrong", MODEL.replace("SEQUENCE", "~"))
    database = Database(server, seed=3)
    database.change(60)

    def deliver(name: str, events: list[dict[str, Any]]) -> None:
        delivered = [*events, *database.chance.sample(events, len(events) // 3)]
        database.chance.shuffle(delivered)
        shop.file(f"landing/{name}", "".join(json.dumps(one) + "\n" for one in delivered))

    # The log begins later than the table, and lags behind it.
    deliver("1.json", database.events[30:50])
    shop.dbt("run")
    database.change(10)
    deliver("2.json", database.events[45:])
    shop.dbt("run")
    stored = "SELECT id, name FROM {s}.TABLE ORDER BY id"
    assert shop.sql(stored.replace("TABLE", "orders")) == database.rows()
    assert shop.sql(stored.replace("TABLE", "wrong")) != database.rows()

    database.change(10)
    shop.dbt("run", "--full-refresh", "--select", "orders")
    deliver("3.json", database.events[70:])
    shop.dbt("run", "--select", "orders")
    assert shop.sql(stored.replace("TABLE", "orders")) == database.rows()
