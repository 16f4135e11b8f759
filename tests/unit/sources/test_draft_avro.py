"""What ``ingest init`` writes for topics in Avro."""

from __future__ import annotations

import json
from typing import Any

from dbt_arctic.brokers.api import Message
from dbt_arctic.sources.avro_sql import AvroSchema, parse_schema
from dbt_arctic.sources.draft_avro import draft_avro
from dbt_arctic.sources.draft_topics import TopicDraft
from dbt_arctic.sources.kafka_settings import parse_kafka
from dbt_arctic.sources.topic_scaffold import topic_model_sql, topic_properties

URL = "http://127.0.0.1:8081"
KEY = {"type": "record", "name": "Key", "fields": [{"name": "order_id", "type": "long"}]}


def field(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": kind}


def connect(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "connect.version": 1, "connect.name": name}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
FIELDS = [
    field("status", ["null", "string"]),
    field("amount", ["null", DECIMAL]),
    field("at", {"type": "long", "logicalType": "timestamp-millis"}),
    field("local", {"type": "long", "logicalType": "local-timestamp-micros"}),
    field("day", {"type": "int", "logicalType": "date"}),
    field("mood", {"type": "enum", "name": "Mood", "symbols": ["OK"]}),
    field("other", "Mood"),
    field("tags", {"type": "array", "items": ["null", "int"]}),
    field("by", {"type": "map", "values": {"type": "record", "name": "By", "fields": [field("n", "float")]}}),
    field("any", ["string", "long"]),
]
TYPES = {
    **{"status": "string", "amount": "decimal(12,2)", "at": "timestamp", "local": "timestamp_ntz"},
    **{"day": "date", "mood": "string", "other": "string", "tags": "array<int>"},
    **{"by": "map<string, struct<`n`: float>>", "any": "string"},
}


def drafted(schemas: dict[int, Any], *messages: tuple[int | None, int | None]) -> TopicDraft | None:
    """A draft of messages with ids of schemas for their keys and values."""

    def part(number: int | None) -> bytes | None:
        return None if number is None else b"\0" + number.to_bytes(4, "big") + b"x"

    def schema(number: int) -> AvroSchema | None:
        return parse_schema(json.dumps(schemas[number]), "s", "t") if number in schemas else None

    return draft_avro("shop.orders", [Message(part(key), part(value)) for key, value in messages], schema)


def settings_of(draft: TopicDraft) -> dict[str, Any]:
    made = topic_properties("shop", "h:1", [draft], "", URL)
    (table,) = made["sources"][0]["tables"]
    found: dict[str, Any] = {"from": "kafka", "servers": "h:1", **table["config"]["meta"]["arctic"]}
    return found


def test_a_topic_has_the_columns_of_its_newest_schema_and_those_of_its_key() -> None:
    old = {"type": "record", "name": "Order", "fields": FIELDS[:1]}
    new = {"type": "record", "name": "Order", "fields": FIELDS}
    draft = drafted({1: KEY, 2: old, 3: new}, (1, 2), (1, 3), (1, 9), (1, None))
    assert draft is not None
    assert draft.columns == {**TYPES, "order_id": "bigint"}
    settings = settings_of(draft)
    assert settings["key_format"] == settings["format"] == "avro"
    source = parse_kafka("shop.orders", settings, {}, {})
    assert source.avro is not None
    assert source.key == ("order_id",)
    assert "unique_key='order_id'" in topic_model_sql("shop", draft)

    without = drafted({3: new}, (None, 3))
    assert without is not None
    assert (without.key, without.key_in_message) == ((), False)


def test_change_events_have_the_columns_of_the_row_and_the_units_of_its_times() -> None:
    row = {
        **{"type": "record", "name": "Value", "namespace": "shop.public.orders"},
        "fields": [
            field("order_id", "long"),
            field("at", ["null", connect("long", "io.debezium.time.MicroTimestamp")]),
            field("at3", connect("long", "io.debezium.time.Timestamp")),
            field("zoned", ["null", connect("string", "io.debezium.time.ZonedTimestamp")]),
            field("day", connect("int", "io.debezium.time.Date")),
            field("tod", connect("long", "io.debezium.time.MicroTime")),
            field("amount", ["null", DECIMAL]),
        ],
    }
    source = {"type": "record", "name": "Source", "fields": []}
    envelope = [field("before", ["null", row]), field("after", ["null", "shop.public.orders.Value"])]
    envelope += [field("source", source), field("op", "string")]
    draft = drafted({1: KEY, 2: {"type": "record", "name": "Envelope", "fields": envelope}}, (1, 2))
    assert draft is not None
    assert draft.columns == {
        **{"order_id": "bigint", "at": "timestamp_ntz", "at3": "timestamp_ntz", "zoned": "timestamp"},
        **{"day": "date", "tod": "bigint", "amount": "decimal(12,2)"},
    }
    settings = settings_of(draft)
    assert settings["units"] == {"at": "micros", "at3": "millis"}
    made = parse_kafka("shop.orders", settings, {}, {})
    assert made.changes is not None
    assert (made.changes.key, made.avro is not None) == (("order_id",), True)


def test_other_messages_are_not_avro() -> None:
    assert draft_avro("t", [Message(None, b'{"a": 1}')], lambda number: None) is None
    assert drafted({}, (None, 5)) is None, "the registry has no such schema"
    plain = drafted({5: "string"}, (None, 5))
    assert plain is not None
    assert "without fields" in plain.problem
