"""A project whose models read a topic, a folder and a database, each in two of the ways that there are."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dbt_arctic.engine.session import SessionConnection, SessionEngine
from dbt_arctic.engine.settings import SparkSettings
from tests.dbt.keyed.conftest import SETTINGS, SPARK_CONF, Shop, opened_shop
from tests.dbt.keyed.database_servers import Server, running_server
from tests.dbt.keyed.kafka_topics import Broker, add_reader, broker
from tests.dbt.sources.outside import Outside
from tests.matrix.components import PASSWORD

APPEND = "{{ config(materialized='incremental', incremental_strategy='append') }}\n"
ORDERS = "{{ incremental_pull(source('shop', 'orders')) }}"
MODELS = {
    "appended": APPEND + f"select _source_partition, _source_offset, status from {ORDERS}",
    "by_key": "{{ config(materialized='incremental', unique_key='order_id', sequence_by='_source_timestamp', "
    # A key may be in two partitions at the same offset, once partitions were added.
    "deduplicate_by=['_source_offset', '_source_partition']) }}\n"
    f"select order_id, status, _source_timestamp, _source_offset, _source_partition, _action from {ORDERS}",
    "once": APPEND + "select id, city from {{ incremental_pull(source('landing', 'once')) }}",
    "again": "{{ config(materialized='incremental', unique_key='id') }}\n"
    "select id, city from {{ incremental_pull(source('landing', 'again')) }}",
    "accounts": "{{ config(materialized='incremental', unique_key='id') }}\n"
    "select id, name, _action from {{ incremental_pull(source('crm', 'accounts')) }}",
    "both": APPEND + "select 'message' as kind, concat_ws('-', _source_partition, _source_offset) as place "
    f"from {ORDERS}\nunion all\n"
    "select 'event', cast(id as string) from {{ incremental_pull(source('crm', 'events')) }}",
}


@dataclass(frozen=True)
class Parts:
    """The components that all stories share: a Spark, a broker and a PostgreSQL."""

    connection: SessionConnection
    warehouse: Path
    broker: Broker
    server: Server


@contextlib.contextmanager
def running_parts() -> Iterator[Parts]:
    """Start everything, and stop it at the end of the block."""
    with contextlib.ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="soak-sources-")))
        warehouse = folder / "lake"
        settings = SparkSettings(catalog="lake", warehouse=str(warehouse), spark_conf=SPARK_CONF, **SETTINGS)
        connection = SessionEngine(settings).connect()
        opened.callback(connection.close)
        for name in ("kafka", "postgresql"):
            (folder / name).mkdir()
            add_reader(connection, folder / name, name)
        server = opened.enter_context(running_server("postgresql"))
        yield Parts(connection, warehouse, opened.enter_context(broker(folder / "kafka")), server)


@dataclass(frozen=True)
class Place:
    """A project, and what it reads. The target ``ci`` is for clones of the tables of ``dev``."""

    shop: Shop
    outside: Outside

    def schema(self, target: str) -> str:
        return self.shop.schema if target == "dev" else f"{self.shop.schema}_{target}"


@contextlib.contextmanager
def opened_place(parts: Parts, chance: random.Random) -> Iterator[Place]:
    """A project in a folder of its own, with a topic and tables of its own."""
    with contextlib.ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="soak-sources-")))
        shop = opened.enter_context(opened_shop(folder, parts.warehouse, parts.connection))
        landing = folder / "landing"
        names = uuid.uuid4().hex[:8]
        outside = Outside(chance, parts.broker.topic(2), parts.server, landing, names)
        opened.callback(outside.close)
        _write(shop, outside)
        shop.sql(f"CREATE SCHEMA lake.{shop.schema}_ci")
        yield Place(shop, outside)
        # Runs before the folder is gone, from which dbt has been called.
        os.chdir(Path(__file__).parent)
        for schema in (shop.schema, f"{shop.schema}_ci"):
            _remove(parts.warehouse, schema)


def _remove(warehouse: Path, schema: str) -> None:
    """Remove a schema's tables, quickly. A catalog that kept them would hold tables that cannot be read."""
    with contextlib.closing(sqlite3.connect(warehouse / "catalog.db")) as database, database:
        database.execute("DELETE FROM iceberg_tables WHERE table_namespace = ?", [schema])
    shutil.rmtree(warehouse / schema, ignore_errors=True)


def _write(shop: Shop, outside: Outside) -> None:
    orders = {
        **{"from": "kafka", "servers": outside.topic.servers, "topic": outside.topic.name, "format": "json"},
        **{"columns": {"order_id": "bigint", "status": "string"}, "key": "order_id"},
        "on_data_loss": "{{ var('on_data_loss', 'fail') }}",
    }
    files = {
        **{"from": "files", "path": "landing/clicks", "format": "json"},
        "columns": {"id": "bigint", "city": "string"},
    }
    crm = {"from": "jdbc", "url": outside.server.url}
    made: dict[str, dict[str, Any]] = {
        "shop": {"orders": orders},
        "landing": {
            "once": {**files, "changed_files": "ignore"},
            "again": {**files, "changed_files": "reread"},
        },
        "crm": {
            "accounts": {
                **{**crm, "table": f"accounts_{outside.names}", "cursor": "updated_at"},
                **{"deletes": "compare", "partitions": 2},
            },
            "events": {**crm, "table": f"events_{outside.names}", "cursor": "id", "overlap": 0},
        },
    }
    sources = [
        {
            "name": name,
            "schema": "nowhere",
            "tables": [
                {"name": one, "config": {"meta": {"arctic": arctic}}} for one, arctic in tables.items()
            ],
        }
        for name, tables in made.items()
    ]
    shop.file("models/outside.yml", yaml.safe_dump({"version": 2, "sources": sources}, sort_keys=False))
    for name, text in MODELS.items():
        shop.model(name, text)
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    outputs = profile["shop"]["outputs"]
    outputs["dev"]["jdbc"] = {"crm": {"password": PASSWORD}}
    outputs["ci"] = {**outputs["dev"], "schema": f"{shop.schema}_ci"}
    shop.file("profiles.yml", yaml.safe_dump(profile))


__all__ = ["MODELS", "Parts", "Place", "opened_place", "running_parts"]
