"""Kafka topics as sources: each message is read once, by each model, whatever ends the run."""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import replace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dbt_arctic.cli.main import main

from .conftest import Shop
from .kafka_topics import LOGIN, PASSWORD, Broker, Message, Topic
from .test_operator_commands import Terminal

COLUMNS = {"order_id": "bigint", "status": "string", "amount": "decimal(10,2)"}
BY_KEY = """{{ config(materialized='incremental', unique_key='order_id', deduplicate_by='_source_offset') }}
select order_id, status, amount, _source_partition, _source_offset, _action
from {{ incremental_pull(source('shop', 'orders')) }}"""
APPENDED = """{{ config(materialized='incremental', incremental_strategy='append') }}
select cast(_source_key as string) as message_key, status, _source_headers, _source_timestamp,
  _source_partition, _source_offset, _action as action
from {{ incremental_pull(source('shop', 'orders')) }}"""


@pytest.fixture
def running(kafka_broker: Broker) -> Broker:
    return kafka_broker


def declare(shop: Shop, servers: str, **tables: dict[str, Any]) -> None:
    """Sources with settings of their own, next to those that all of them share."""
    fresh = {"warn_after": {"count": 1, "period": "day"}}
    made = [
        {"name": name, "config": {"meta": {"arctic": one}, "freshness": fresh}}
        for name, one in tables.items()
    ]
    shared = {"from": "kafka", "servers": servers, "format": "json", "columns": COLUMNS}
    source = {"name": "shop", "schema": "nowhere", "config": {"meta": {"arctic": shared}}, "tables": made}
    shop.file("models/shop.yml", yaml.safe_dump({"version": 2, "sources": [source]}, sort_keys=False))


def log_in(shop: Shop) -> None:
    path = shop.folder / "profiles.yml"
    profile = yaml.safe_load(path.read_text(encoding="utf-8"))
    profile["shop"]["outputs"]["dev"]["kafka"] = LOGIN
    path.write_text(yaml.safe_dump(profile), encoding="utf-8")


def order(number: int, status: str = "new") -> dict[str, Any]:
    return {"order_id": number, "status": status, "amount": number + 0.25, "ignored": [1]}


def merged(topic: Topic) -> list[tuple[Any, ...]]:
    """The newest message of each key; a key has one partition."""
    newest = {message.key: message for message in topic.messages}
    rows = []
    for key, message in newest.items():
        if message.value is not None:
            value = json.loads(message.value)
            rows.append((int(key or 0), value["status"], message.partition, message.offset))
    return sorted(rows)


def check(shop: Shop, topic: Topic, *extra: tuple[int, int]) -> None:
    """Both tables have what the topic had when it was read; appended rows are there once."""
    found = shop.rows("by_key", "order_id, status, _source_partition, _source_offset")
    assert sorted(map(tuple, found)) == merged(topic)
    read = [tuple(row) for row in shop.sql("SELECT _source_partition, _source_offset FROM {s}.appended")]
    assert sorted(read) == sorted([*((m.partition, m.offset) for m in topic.messages), *extra])


def test_each_message_is_read_once(shop: Shop, running: Broker) -> None:
    topic = running.topic()
    declare(shop, running.with_login, orders={"topic": topic.name, "key": "order_id"})
    log_in(shop)
    shop.model("by_key", BY_KEY)
    shop.model("appended", APPENDED)
    shop.dbt("run")  # an empty topic is an empty table
    check(shop, topic)
    for number in range(4):
        topic.send(number, order(number), number % 2)
    topic.send(1, order(1, "paid"), 1)
    shop.dbt("run")
    check(shop, topic)
    heads = [shop.log("by_key")[0].snapshot_id, shop.catalog.load_table(shop.schema, "appended")]

    shop.dbt("run")  # nothing is new: nothing is written, and no job runs
    assert shop.script.jobs == 0
    assert [shop.log("by_key")[0].snapshot_id, shop.catalog.load_table(shop.schema, "appended")] == heads

    # A deleted key, a transaction that was aborted, one that is open, and a new partition.
    assert not any(one["lag_s"] for one in Terminal(shop).json("lag"))
    topic.send(0, None, 0)
    for late in Terminal(shop).json("lag", "--max", "1h"):
        (unread,) = late["upstreams"]
        assert (unread["upstream"], unread["messages"]) == ("shop.orders", 1)
        assert 0 < late["lag_s"] == unread["lag_s"] < 600
    with topic.transaction() as aborted:
        topic.send(7, order(7, "aborted"), 0, aborted, is_seen=False)
        aborted.abort_transaction()
    topic.send(8, order(8), 0)
    topic.add_partition()
    topic.send(9, order(9), 2)
    with topic.transaction() as producer:
        begun = topic.send(5, order(5, "committed"), 1, producer, is_seen=False)
        after = topic.send(6, order(6), 1, is_seen=False)
        shop.dbt("run")
        check(shop, topic)
        producer.commit_transaction()
    topic.messages += [begun, after]

    # What reads without a commit consumes nothing.
    shop.dbt("compile")
    shop.dbt("run", "--empty")
    shop.dbt("show", "--inline", "select * from {{ incremental_pull(source('shop', 'orders')) }}")
    shop.dbt("run")
    check(shop, topic)
    (first,) = shop.sql("SELECT * FROM {s}.appended WHERE _source_partition = 1 AND _source_offset = 0")
    assert tuple(first[:2]) == ("1", "new")
    assert [(one["key"], bytes(one["value"])) for one in first[2]] == [("from", b"test")]
    assert first[3].year >= 2026
    assert shop.sql("SELECT action FROM {s}.appended WHERE status IS NULL")[0][0] == "D"
    text = json.loads(shop.log("by_key")[0].summary["arctic.consumed"])
    assert list(text) == ["kafka.shop.orders"]
    assert text["kafka.shop.orders"][1] == "offsets:6,6,1"

    shop.dbt("source", "freshness")
    assert shop.script.ran == []
    (source,) = json.loads((shop.folder / "target" / "sources.json").read_text())["results"]
    assert source["status"] == "pass"

    # A run that ends at any of its statements consumes nothing, or everything.
    for at in range(0, 12, 3):
        topic.send(at, order(at, f"round {at}"), at % 2)
        shop.end({"by_key": (at, at % 2 == 0), "appended": (at, at % 2 == 1)})
        shop.try_dbt("run")
        shop.end({})
    shop.dbt("run")
    check(shop, topic)

    # A rollback rewinds the offsets; a full refresh begins at what the topic retains.
    state = shop.catalog.load_table(shop.schema, "appended")
    assert state is not None
    earlier = state.history()[2].snapshot_id
    shop.sql(f"CALL lake.system.rollback_to_snapshot('{shop.schema}.appended', {earlier})")
    assert len(shop.sql("SELECT 1 FROM {s}.appended")) < len(topic.messages)
    shop.dbt("run")
    check(shop, topic)
    topic.delete_before(0, 3)
    shop.dbt("run", "--full-refresh")
    check(shop, topic)

    told = "".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in [*(shop.folder / "target").rglob("*"), *(shop.folder / "logs").rglob("*")]
        if path.is_file() and path.suffix != ".msgpack"
    )
    assert PASSWORD not in told
    assert PASSWORD not in str(shop.state("by_key", "change")) + str(shop.state("by_key", "base"))


def test_what_a_topic_has_lost_is_an_error_or_a_warning(shop: Shop, running: Broker) -> None:
    topic = running.topic()
    settings = {"topic": topic.name, "key": "order_id"}
    declare(shop, running.servers, orders=settings)
    shop.model("by_key", BY_KEY)
    shop.model("appended", APPENDED)
    for number in range(4):
        topic.send(number, order(number), number % 2)
    shop.dbt("run")
    for number in range(4, 8):
        topic.send(number, order(number), number % 2)
    read = [(message.partition, message.offset) for message in topic.messages if message.offset < 2]
    topic.delete_before(0, 3)
    for said in shop.refusals("run").values():
        assert "AR-403" in said
        assert "partition 0: offsets 2 to 2" in said
        assert "on_data_loss: skip" in said
        assert "--full-refresh" in said
    assert len(shop.sql("SELECT 1 FROM {s}.appended")) == 4
    declare(shop, running.servers, orders={**settings, "on_data_loss": "skip"})
    shop.dbt("run", "--select", "appended")
    declare(shop, running.servers, orders=settings)
    shop.dbt("run", "--select", "appended")
    rows = [tuple(row) for row in shop.sql("SELECT _source_partition, _source_offset FROM {s}.appended")]
    assert sorted(rows) == sorted({*read, *((m.partition, m.offset) for m in topic.messages)})

    # A message that does not fit is named.
    shop.dbt("run", "--full-refresh")
    for value, partition in (('{"order_id": 1, "amount": "x|y"}', 1), ("[1]", 0), ("", 0), ('{"a', 0)):
        bad = topic.send(1, value, partition, is_seen=False)
        for said in shop.refusals("run").values():
            assert "AR-311" in said
            assert f"partition {partition}, offset {bad.offset}" in said
        topic.delete_before(partition, bad.offset + 1)
        declare(shop, running.servers, orders={**settings, "on_data_loss": "skip"})
        shop.dbt("run")
        declare(shop, running.servers, orders=settings)

    # Deleted and created again, with more messages than before.
    name, partitions = topic.name, topic.partitions
    topic.delete()
    topic = Topic(topic.servers, topic.admin, topic.producer, topic.opened, partitions, name).create()
    for number in range(40):
        topic.send(number, order(number), number % 2)
    for said in shop.refusals("run").values():
        assert "AR-403" in said
        assert "its id has changed" in said
    shop.dbt("run", "--full-refresh")
    check(shop, topic)

    # The topic as another source: not read again without a word.
    declare(shop, running.servers, renamed=settings)
    shop.model("appended", APPENDED.replace("'orders'", "'renamed'"))
    shop.model("by_key", "select * from {{ source('shop', 'renamed') }}")
    said = shop.refusals("run")
    assert "as the source shop.orders, and not as shop.renamed" in said["appended"]
    assert "is a Kafka topic, not a table" in said["by_key"]


FORMATS = """{{ config(materialized='incremental', incremental_strategy='append') }}
select *, cast(_source_key as string) as raw_key from {{ incremental_pull(source('shop', 'NAME')) }}"""


def test_each_format_and_a_clone(shop: Shop, running: Broker) -> None:
    texts, by_json, keyed = running.topic(1), running.topic(1), running.topic(1)
    declare(
        shop,
        running.servers,
        lines={
            "topic": texts.name,
            "format": "text",
            "columns": {"id": "int", "line": "string"},
            "key": "id",
        },
        raw={"topic": texts.name, "format": "binary", "columns": {}},
        by_json={
            "topic": by_json.name,
            "columns": {"a": "int", "b": "date", "n": "array<struct<x:double>>", "odd `name": "string"},
            "key": ["a", "b"],
            "key_format": "json",
            "options": {"dateFormat": "dd.MM.yyyy"},
        },
        orders={"topic": keyed.name, "key": "order_id"},
    )
    profile = yaml.safe_load((shop.folder / "profiles.yml").read_text(encoding="utf-8"))
    outputs = profile["shop"]["outputs"]
    outputs["ci"] = {**outputs["dev"], "schema": f"{shop.schema}_ci"}
    shop.file("profiles.yml", yaml.safe_dump(profile))
    for name in ("lines", "raw", "by_json"):
        shop.model(name, FORMATS.replace("NAME", name))
    shop.model("by_key", BY_KEY)
    texts.send(1, "a | b; 'c' \\ \u00e9")
    texts.send(2, None)
    by_json.send('{"a": 1, "b": "31.12.2026"}', {"n": [{"x": 1.5}], "odd `name": "x", "a": 9})
    by_json.send('{"a": 2, "b": null}', None)
    keyed.send(1, order(1))
    keyed.send(2, order(2))
    shop.dbt("run")
    found = shop.rows("lines", "id, line, _action, raw_key")
    assert found == [(1, "a | b; 'c' \\ \u00e9", "U", "1"), (2, None, "D", "2")]
    (value,) = shop.sql("SELECT value FROM {s}.raw WHERE _source_offset = 0")[0]
    assert bytes(value).decode() == texts.messages[0].value
    text = "to_json(struct(a, b, n, `odd ``name`)), _action"
    assert shop.rows("by_json", text) == [
        ('{"a":1,"b":"2026-12-31","n":[{"x":1.5}],"odd `name":"x"}', "U"),
        ('{"a":2}', "D"),
    ]

    # A clone reads on from where its original is, and takes nothing from it.
    state = shop.folder / "state"
    state.mkdir()
    shutil.copy(shop.folder / "target" / "manifest.json", state)
    shop.dbt("clone", "--state", str(state), "--target", "ci")
    keyed.delete_before(0, 1)
    keyed.messages.insert(0, Message("1", json.dumps(order(1)), 0, 0))
    keyed.send(2, order(2, "paid"))
    shop.dbt("run", "--select", "by_key", "--target", "ci")
    shop.dbt("run", "--select", "by_key")
    for schema in (shop.schema, f"{shop.schema}_ci"):
        columns = "order_id, status, _source_partition, _source_offset"
        found = shop.sql(f"SELECT {columns} FROM lake.{schema}.by_key")
        assert sorted(map(tuple, found)) == merged(keyed)

    # Keys and texts that do not fit are named, and rows that fit are not written without them.
    by_json.send("7", {"n": []}, is_seen=False)
    texts.send("x", "fits", is_seen=False)
    said = shop.refusals("run", "--select", "lines", "by_json")
    assert "the key of a message" in said["by_json"]
    assert "partition 0, offset 2: 7" in said["by_json"]
    assert "partition 0, offset 2: x" in said["lines"]
    assert "id int" in said["lines"]
    running.producer.send(texts.name, key=b"3", value=b"\xff\xfe", partition=0).get(10)
    texts.delete_before(0, 3)
    lines = {"topic": texts.name, "format": "text", "columns": {"line": "string"}, "on_data_loss": "skip"}
    declare(shop, running.servers, lines=lines)
    for name in ("raw", "by_json", "by_key"):
        (shop.folder / "models" / f"{name}.sql").unlink()
    said = shop.refusals("run", "--full-refresh")
    assert "the value of a message" in said["lines"]
    assert "offset 3" in said["lines"]


def test_what_ingest_init_writes_loads_the_topics(shop: Shop, running: Broker) -> None:
    prefix = f"t{uuid.uuid4().hex[:8]}"

    def topic(name: str) -> Topic:
        return replace(running.topic(), name=f"{prefix}.{name}", messages=[]).create()

    orders, visits = topic("orders"), topic("visits")
    for number in range(6):
        orders.send(number % 4, {"order_id": number % 4, "status": f"s{number}"}, partition=number % 2)
        visits.send(None, {"page": f"p{number}", "customer_id": number % 2})
    orders.send(3, None, partition=1)
    log_in(shop)
    folders = ["--project-dir", str(shop.folder), "--profiles-dir", str(shop.folder)]
    words = ["ingest", "init", "shop", "--kafka", running.with_login, "--topic", f"{prefix}.*", *folders]
    refused = CliRunner().invoke(main, [*words, "--topic", f"{prefix}.order"])
    assert f"no topic matches {prefix}.order" in refused.output
    written = CliRunner().invoke(main, words)
    assert written.exit_code == 0, written.output
    assert "rows are only appended" in written.output
    shop.dbt("build")
    newest = {m.key: m for m in orders.messages}
    assert sorted(map(tuple, shop.rows("orders", "order_id, status"))) == sorted(
        (int(key or 0), json.loads(m.value)["status"]) for key, m in newest.items() if m.value is not None
    )
    found = shop.sql("SELECT page, customer_id FROM {s}.visits")
    assert sorted(map(tuple, found)) == sorted(
        (json.loads(m.value or "")["page"], json.loads(m.value or "")["customer_id"]) for m in visits.messages
    )
