"""Topics in Avro: each message is decoded with the schema that it was written with."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dbt_arctic.cli.main import main
from dbt_arctic.engine.session import SessionConnection
from tests.avro import encode, framed
from tests.schema_registry import registry

from .conftest import Shop
from .kafka_topics import Broker, Topic, add_reader

LOGIN = "dbt:hunter22"
AMOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 10}
FIELDS: list[dict[str, Any]] = [
    {"name": "status", "type": ["null", "string"]},
    {"name": "amount", "type": AMOUNT},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
]
FIRST = {"type": "record", "name": "order", "fields": FIELDS}
SECOND = {"type": "record", "name": "order", "fields": [{"name": "note", "type": "string"}, *FIELDS]}
KEYED = """{{ config(materialized='incremental', unique_key='order_id', deduplicate_by='_source_offset') }}
select order_id, status, amount, at, note, _source_offset, _action
from {{ incremental_pull(source('shop', 'orders')) }}"""
APPENDED = """{{ config(materialized='incremental', incremental_strategy='append') }}
select *, _action as action from {{ incremental_pull(source('shop', 'NAME')) }}"""


@pytest.fixture
def broker(kafka_broker: Broker, shop_connection: SessionConnection, tmp_path: Path) -> Broker:
    (tmp_path / "jars").mkdir()
    add_reader(shop_connection, tmp_path / "jars", "avro")
    return kafka_broker


def declare(shop: Shop, servers: str, **tables: dict[str, Any]) -> None:
    made = [{"name": name, "config": {"meta": {"arctic": one}}} for name, one in tables.items()]
    shared = {"from": "kafka", "servers": servers, "format": "avro"}
    source = {"name": "shop", "schema": "nowhere", "config": {"meta": {"arctic": shared}}, "tables": made}
    shop.file("models/shop.yml", yaml.safe_dump({"version": 2, "sources": [source]}, sort_keys=False))


def log_in(shop: Shop) -> None:
    path = shop.folder / "profiles.yml"
    profile = yaml.safe_load(path.read_text(encoding="utf-8"))
    profile["shop"]["outputs"]["dev"]["kafka"] = {"schema.registry.basic.auth.user.info": LOGIN}
    path.write_text(yaml.safe_dump(profile), encoding="utf-8")


def send(topic: Topic, key: bytes | None, value: bytes | None) -> int:
    offset: int = topic.producer.send(topic.name, key=key, value=value, partition=0).get(10).offset
    return offset


def order(number: int, **values: Any) -> dict[str, Any]:
    return {"status": f"s{number}", "amount": Decimal(f"{number}.0123456789"), "at": number, **values}


def test_each_message_has_the_schema_that_it_was_written_with(
    shop: Shop, broker: Broker, dbt_log: None
) -> None:
    topic = broker.topic(1)
    columns = {"order_id": "bigint", "status": "string", "amount": "decimal(30,10)", "at": "timestamp"}
    settings = {
        **{"topic": topic.name, "columns": {**columns, "note": "string"}, "key": "order_id"},
        **{"key_format": "avro", "on_bad_row": "quarantine"},
    }
    log_in(shop)
    with registry(LOGIN) as running:
        declare(shop, broker.servers, orders={**settings, "registry": running.url})
        shop.model("orders", KEYED)
        key, first = running.add("long"), running.add(FIRST)

        def keyed(number: int) -> bytes:
            return framed(key, "long", number)

        send(topic, keyed(1), framed(first, FIRST, order(1)))
        send(topic, keyed(2), framed(first, FIRST, order(2, status=None)))
        shop.dbt("run")
        second = running.add(SECOND)
        send(topic, keyed(2), None)
        send(topic, keyed(3), framed(second, SECOND, order(3, note="n|'\"")))
        send(topic, keyed(1), framed(first, FIRST, order(1, at=-1)))
        bad = [
            send(topic, keyed(4), framed(second, SECOND, order(4, note="n"))[:-3]),
            send(topic, keyed(5), framed(99, FIRST, order(5))),
            send(topic, keyed(6), b'{"status": "no Avro"}'),
        ]
        shop.dbt("run")
        texts = "order_id, status, cast(amount as string), unix_micros(at), note"
        assert shop.rows("orders", texts) == [
            (1, "s1", "1.0123456789", -1, None),
            (3, "s3", "3.0123456789", 3, "n|'\""),
        ]
        rejected = shop.sql("SELECT position, raw FROM {s}.orders__rejected ORDER BY position")
        assert [row[0] for row in rejected] == bad
        assert rejected[1][1].startswith("not Avro of the schema 99: 0000000063")
        assert [row[1][:9] for row in rejected] == ["not Avro "] * 2 + ["not Avro:"]
        assert f"/schemas/ids/{second}" in running.requests
        shop.dbt("run")  # nothing is new
        assert shop.script.jobs == 0
    send(topic, keyed(1), framed(first, FIRST, order(1)))
    assert "AR-106 the schema registry" in shop.fail("run")
    written = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in [*(shop.folder / "target").rglob("*"), *(shop.folder / "logs").rglob("*")]
        if path.is_file() and path.suffix != ".msgpack"
    )
    assert "hunter22" not in written
    views = [row for row in shop.sql("SHOW VIEWS IN {s}") if "__pull_" in str(row)]
    assert not views, "temporary views are dropped"


def test_ingest_init_finds_the_columns_in_the_registry(shop: Shop, kafka_broker: Broker) -> None:
    topic = kafka_broker.topic(1)
    log_in(shop)
    with registry(LOGIN) as running:
        key = {"type": "record", "name": "key", "fields": [{"name": "order_id", "type": "long"}]}
        first, second = running.add(key), running.add(FIRST)
        send(topic, framed(first, key, {"order_id": 1}), framed(second, FIRST, order(1)))
        words = ["ingest", "init", "shop", "--kafka", kafka_broker.servers, "--registry", running.url]
        folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
        written = CliRunner().invoke(main, [*words, "--topic", topic.name, *folders])
    assert written.exit_code == 0, written.output
    made = yaml.safe_load((shop.folder / "models" / "shop" / "shop.yml").read_text(encoding="utf-8"))
    (table,) = made["sources"][0]["tables"]
    assert table["config"]["meta"]["arctic"] == {
        **{"topic": topic.name, "format": "avro", "registry": running.url, "key_format": "avro"},
        **{"key": ["order_id"]},
        "columns": {
            **{"status": "string", "amount": "decimal(30,10)", "at": "timestamp", "order_id": "bigint"}
        },
    }


def test_a_schema_in_a_file_and_change_events(shop: Shop, broker: Broker) -> None:
    plain, changed = broker.topic(1), broker.topic(1)
    shop.file("schemas/order.avsc", json.dumps(FIRST))
    row = {"type": "record", "name": "row", "fields": [{"name": "id", "type": "long"}, *FIELDS[:2]]}
    said = [{"name": name, "type": "string"} for name in ("connector", "sequence", "schema", "table")]
    source = {"type": "record", "name": "source", "fields": [*said, {"name": "lsn", "type": "long"}]}
    sides = [
        {"name": name, "type": ["null", row if name == "before" else "row"]} for name in ("before", "after")
    ]
    fields = [*sides, {"name": "source", "type": source}, {"name": "op", "type": "string"}]
    envelope = {"type": "record", "name": "envelope", "fields": fields}

    def event(operation: str, lsn: int, before: Any, after: Any) -> dict[str, Any]:
        place = {"connector": "postgresql", "schema": "public", "table": "orders", "lsn": lsn}
        return {
            "op": operation,
            "source": {**place, "sequence": json.dumps([None, str(lsn)])},
            **{"before": before, "after": after},
        }

    def stored(number: int, status: str) -> dict[str, Any]:
        return {"id": number, "status": status, "amount": Decimal("12345678901234567890.0123456789")}

    with registry() as running:
        columns = {"status": "string", "amount": "decimal(30,10)", "at": "timestamp"}
        declare(
            shop,
            broker.servers,
            plain={"topic": plain.name, "schema": "schemas/order.avsc", "columns": columns},
            changed={
                **{"topic": changed.name, "format": "debezium", "registry": running.url, "key": "id"},
                "columns": {"id": "bigint", "status": "string", "amount": "decimal(30,10)"},
            },
        )
        shop.model("plain", APPENDED.replace("NAME", "plain"))
        shop.model(
            "changed",
            "{{ config(materialized='incremental', unique_key='id', sequence_by='_source_sequence') }}\n"
            "select * from {{ incremental_pull(source('shop', 'changed')) }}",
        )
        number = running.add(envelope)
        send(plain, None, encode(FIRST, order(7)))
        for one in (event("c", 1, None, stored(1, "a")), event("u", 3, None, stored(1, "c"))):
            send(changed, None, framed(number, envelope, one))
        shop.dbt("run")
        send(changed, None, framed(number, envelope, event("u", 2, None, stored(1, "late"))))
        send(changed, None, framed(number, envelope, event("c", 4, None, stored(2, "b"))))
        send(changed, None, framed(number, envelope, event("d", 5, stored(2, "b"), None)))
        shop.dbt("run")
    assert shop.rows("plain", "status, cast(amount as string), unix_micros(at)") == [
        ("s7", "7.0123456789", 7)
    ]
    exact = "12345678901234567890.0123456789"
    assert shop.rows("changed", "id, status, cast(amount as string)") == [(1, "c", exact)]
    send(plain, None, b"\x02")
    assert "AR-311" in shop.fail("run", "--select", "plain")
