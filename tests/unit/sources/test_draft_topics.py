"""What ``ingest init`` writes for topics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dbt_arctic.brokers.api import Message
from dbt_arctic.sources.draft_topics import TopicDraft, draft_topic
from dbt_arctic.sources.kafka_settings import parse_kafka
from dbt_arctic.sources.topic_scaffold import topic_model_sql, topic_properties
from tests.spark.keyed.test_change_events import REAL

FIXTURES = Path(__file__).parents[2] / "spark" / "keyed"


def message(value: Any, key: Any = None) -> Message:
    def encoded(one: Any) -> bytes | None:
        return one if one is None or isinstance(one, bytes) else json.dumps(one).encode()

    return Message(encoded(key), encoded(value))


ORDERS = [
    message({"order_id": 1, "status": "new", "amount": 1.5}, b"1"),
    message({"order_id": 2, "status": "paid", "at": "2026-01-01T10:00:00Z"}, b"2"),
    message(None, b"1"),
]


def test_a_topic_of_json_has_the_columns_of_its_messages_and_a_key() -> None:
    draft = draft_topic("shop.orders", ORDERS)
    assert draft == TopicDraft(
        "orders",
        "shop.orders",
        "json",
        {"order_id": "bigint", "status": "string", "amount": "double", "at": "timestamp"},
        ("order_id",),
        True,
        "text",
        3,
    )


@pytest.mark.parametrize(
    ("messages", "key", "form"),
    [
        ([message({"customer_id": 7, "page": "a"}, b"7")], (), "text"),  # not the key of clicks
        ([message({"click_id": 7}, b"8")], (), "text"),
        ([message({"click_id": 7}, b"7"), message({"click_id": 8})], (), "text"),
        ([message({"click_id": "x"}, b"x")], ("click_id",), "text"),
        ([message({"a": 1, "b": "x", "c": 2}, {"a": 1, "b": "x"})], ("a", "b"), "json"),
        ([message({"c": 2}, {"a": 1})], (), "text"),
        ([message({"c": 2}, {"a": 1}), message(None, {"a": 2})], ("a",), "json"),
    ],
)
def test_the_key_of_a_topic(messages: list[Message], key: tuple[str, ...], form: str) -> None:
    draft = draft_topic("clicks", messages)
    assert (draft.key, draft.key_format, draft.key_in_message) == (key, form, bool(key))
    assert set(key) <= set(draft.columns)


@pytest.mark.parametrize(
    ("values", "form"),
    [
        ([b"line 1", "Zo\u00eb".encode()], "text"),
        ([b"[1]", b'{"a": 1}'], "text"),
        ([b"ok", b"\xff\x00"], "binary"),
        ([None, None], None),
        ([], None),
    ],
)
def test_other_messages_are_text_or_binary(values: list[bytes | None], form: str | None) -> None:
    draft = draft_topic("log", [Message(None, value) for value in values])
    assert draft.format == form
    assert bool(draft.problem) == (form is None)


def debezium(name: str) -> list[Message]:
    lines = (FIXTURES / name).read_text(encoding="utf-8").splitlines()
    key = {"payload": {"region": "a", "id": 1}}
    return [message(json.loads(line), key) for line in lines]


def test_messages_that_debezium_has_written_with_schemas_give_all_columns() -> None:
    draft = draft_topic("shop.public.orders", debezium("debezium_postgres_with_schemas.jsonl"))
    assert (draft.format, draft.key, draft.problem) == ("debezium", ("region", "id"), "")
    # The database does not say how many digits a number without a scale has.
    assert dict(draft.columns) == REAL | {"free": "decimal(38,18)"}
    settings, model = declared(draft)
    assert settings.changes is not None
    assert (dict(settings.changes.columns), settings.changes.key) == (dict(draft.columns), draft.key)
    assert "unique_key=['region', 'id'], sequence_by='_source_sequence'" in model
    assert "_action" in model


def test_change_events_that_do_not_describe_types_are_not_written() -> None:
    plain = draft_topic("orders", debezium("debezium_postgres.jsonl"))
    assert (plain.format, plain.problem != "") == ("debezium", True)
    shared = {"database": "shop", "table": "orders", "type": "insert"}
    maxwell = draft_topic("m", [message({**shared, "ts": 1, "xid": 1, "commit": True, "data": {"id": 1}})])
    assert (maxwell.format, maxwell.problem != "") == ("maxwell", True)
    canal = draft_topic("c", [message({**shared, "ts": 1, "isDdl": False, "data": [{"id": "1"}]})])
    assert (canal.format, canal.problem != "") == ("canal", True)
    assert draft_topic("a", [message({"op": "c", "amount": 2})]).format == "json"


def test_a_field_that_a_source_adds_itself_is_a_problem() -> None:
    assert "_action" in draft_topic("a", [message({"_Action": 1})]).problem.lower()


def declared(draft: TopicDraft) -> Any:
    written = yaml.safe_load(yaml.safe_dump(topic_properties("shop", "host:1", [draft], "")))
    [source] = written["sources"]
    [table] = source["tables"]
    settings = {**source["config"]["meta"]["arctic"], **table["config"]["meta"]["arctic"]}
    return parse_kafka(f"shop.{table['name']}", settings, {}, {}), topic_model_sql("shop", draft)


@pytest.mark.parametrize(
    "draft",
    [
        draft_topic("shop.orders", ORDERS),
        draft_topic("a", [message({"a": 1, "b": "x"}, {"a": 1, "b": "x"})]),
        draft_topic("a.log", [Message(None, b"x")]),
        draft_topic("raw", [Message(None, b"\xff")]),
    ],
)
def test_the_declared_source_is_one_that_can_be_read(draft: TopicDraft) -> None:
    settings, model = declared(draft)
    assert (settings.topic, settings.format) == (draft.topic, draft.format)
    assert dict(settings.columns) == dict(draft.columns)
    assert (settings.key, settings.key_format) == (draft.key, draft.key_format)
    assert ("unique_key" in model) == ("_action" in model) == bool(draft.key)
    assert f"source('shop', '{draft.name}')" in model
