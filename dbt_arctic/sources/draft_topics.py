"""Drafts sources for topics from a sample of their messages: format, columns and key. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dbt_arctic.brokers.api import Message
from dbt_arctic.data_type import kind_of
from dbt_arctic.sources import change_settings
from dbt_arctic.sources.change_settings import ChangeFormat
from dbt_arctic.sources.infer_tables import is_key_of, table_name
from dbt_arctic.sources.infer_types import columns_of_json
from dbt_arctic.sources.kafka_settings import ADDED, MALFORMED, Format, KeyFormat

_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium."
_NAMED_TYPES: Mapping[str, str] = {
    **{f"{prefix}Date": "date" for prefix in (_CONNECT, f"{_DEBEZIUM}time.")},
    **{
        f"{_DEBEZIUM}time.{name}": "timestamp_ntz"
        for name in ("Timestamp", "MicroTimestamp", "NanoTimestamp")
    },
    f"{_CONNECT}Timestamp": "timestamp_ntz",
    f"{_DEBEZIUM}time.ZonedTimestamp": "timestamp",
    **{f"{_DEBEZIUM}time.{name}": "string" for name in ("Time", "MicroTime", "NanoTime", "ZonedTime")},
    f"{_CONNECT}Time": "string",
    f"{_DEBEZIUM}data.VariableScaleDecimal": "decimal(38,18)",
}
"""Spark types by the name of a type in Debezium's schemas."""
_PLAIN_TYPES: Mapping[str, str] = {
    **{"boolean": "boolean", "int8": "int", "int16": "int", "int32": "int", "int64": "bigint"},
    **{"float": "float", "float32": "float", "double": "double", "float64": "double"},
    **{"string": "string", "bytes": "binary"},
}
_DIGITS = 38
_OPERATIONS = frozenset("crudtm")


@dataclass(frozen=True)
class TopicDraft:
    """A topic, as its newest messages suggest it.

    :param name: of the source's table and of the model.
    :param format: ``None`` if no message was found.
    :param columns: Spark types by name.
    :param key: the columns that identify a row; empty if the messages are events without a key.
    :param key_in_message: whether these columns are read from the message's key.
    :param messages: how many messages were looked at.
    :param problem: why no source can be written; empty if one can.
    :param is_avro: whether the messages have the ids of schemas in a registry.
    :param units: of the columns that are numbers in a message and timestamps in the table.
    """

    name: str
    topic: str
    format: Format | Literal["avro"] | None
    columns: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    key_in_message: bool = False
    key_format: KeyFormat | Literal["avro"] = "text"
    messages: int = 0
    problem: str = ""
    is_avro: bool = False
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_change_events(self) -> bool:
        """Whether the messages say how rows of a database's table have changed."""
        return self.format == "debezium"


def draft_topic(topic: str, messages: Sequence[Message]) -> TopicDraft:
    """What the messages of a topic suggest for its source and model.

    :param messages: those of a partition in their order.
    """
    name = table_name(topic.rpartition(".")[2]) or table_name(topic)
    values = [one.value for one in messages if one.value is not None]
    if not values:
        problem = "none of its newest messages has a value"
        return TopicDraft(name, topic, None, messages=len(messages), problem=problem)
    objects = [_object(value) for value in values]
    if all(one is not None for one in objects):
        rows = [one for one in objects if one is not None]
        changes = _change_format(rows)
        if changes == "debezium":
            return _draft_debezium(name, topic, rows, messages)
        if changes is not None:
            problem = f"it has change events of {changes.capitalize()}, which do not describe all types"
            return TopicDraft(name, topic, changes, messages=len(messages), problem=problem)
        return _draft_json(name, topic, rows, messages)
    texts = [_text(value) for value in values]
    if any(text is None for text in texts):
        return TopicDraft(name, topic, "binary", {"value": "binary"}, messages=len(messages))
    return TopicDraft(name, topic, "text", {"value": "string"}, messages=len(messages))


def _draft_json(
    name: str, topic: str, rows: Sequence[Mapping[str, Any]], messages: Sequence[Message]
) -> TopicDraft:
    columns = columns_of_json(rows)
    if taken := next((one for one in columns if one.lower() in (*ADDED, MALFORMED)), None):
        problem = f"its messages have a field {taken}, and each row of a source gets a column of that name"
        return TopicDraft(name, topic, "json", columns, messages=len(messages), problem=problem)
    key, form = _key(name, columns, messages)
    types = columns | (key or {})
    return TopicDraft(
        name, topic, "json", types, tuple(key or ()), key is not None, form, messages=len(messages)
    )


def _key(
    table: str, columns: Mapping[str, str], messages: Sequence[Message]
) -> tuple[dict[str, str] | None, KeyFormat]:
    """The types by name of the columns in the message's key; ``None`` if it does not identify a row.

    A key that is text is the column with the same values, if its name is that of a key of the table. It only
    distributes the messages over partitions otherwise, as a customer's id does in a topic of clicks.
    """
    keys = [one.key for one in messages]
    if not all(keys):
        return None, "text"
    objects = [_object(key) for key in keys if key is not None]
    if all(objects):
        found = columns_of_json([one for one in objects if one])
        has_deletes = any(one.value is None for one in messages)
        if has_deletes or set(found) <= set(columns):
            return {one: columns.get(one, kind) for one, kind in found.items()}, "json"
        return None, "text"
    texts = [_text(key) for key in keys if key is not None]
    for column in columns:
        same = (
            _shown(row[column]) == text
            if (row := _object(one.value)) and column in row
            else one.value is None
            for one, text in zip(messages, texts, strict=True)
        )
        if is_key_of(column, table) and all(same):
            return {column: columns[column]}, "text"
    return None, "text"


def _shown(value: Any) -> str | None:
    return value if isinstance(value, str) else None if value is None else json.dumps(value)


def _draft_debezium(
    name: str, topic: str, rows: Sequence[Mapping[str, Any]], messages: Sequence[Message]
) -> TopicDraft:
    described = next((types for row in reversed(rows) if (types := _described_columns(row))), None)
    if described is None:
        problem = "it has change events of Debezium without schemas, which do not describe types"
        return TopicDraft(name, topic, "debezium", messages=len(messages), problem=problem)
    columns = {one: kind for one, kind in described.items() if kind and one not in change_settings.ADDED}
    objects = [found for one in messages if one.key and (found := _object(one.key))]
    keys = {tuple(found.get("payload", found)) for found in objects}
    key = keys.pop() if len(keys) == 1 else ()
    if not key or not set(key) <= set(columns):
        problem = "its messages have no key with the columns of the table's primary key"
        return TopicDraft(name, topic, "debezium", columns, messages=len(messages), problem=problem)
    return TopicDraft(name, topic, "debezium", columns, key, messages=len(messages))


def _described_columns(message: Mapping[str, Any]) -> dict[str, str | None] | None:
    """The columns of a Debezium message with a schema; ``None`` for other messages."""
    schema = message.get("schema")
    for part in schema.get("fields", ()) if isinstance(schema, Mapping) else ():
        if part.get("field") == "after" and part.get("type") == "struct":
            return {str(one["field"]): _spark_type(one) for one in part["fields"]}
    return None


def _spark_type(described: Mapping[str, Any]) -> str | None:
    """The Spark type of a field of a Debezium schema; ``None`` if it has none that holds all values.

    >>> _spark_type({"type": "int64", "name": "io.debezium.time.MicroTimestamp"})
    'timestamp_ntz'
    >>> _spark_type({"type": "array", "items": {"type": "int32"}})
    'array<int>'
    """
    kind, named = str(described.get("type")), str(described.get("name") or "")
    if named in _NAMED_TYPES:
        return _NAMED_TYPES[named]
    if named == f"{_CONNECT}Decimal":
        given = described.get("parameters") or {}
        scale, precision = int(given.get("scale", 0)), int(given.get("connect.decimal.precision", _DIGITS))
        return f"decimal({max(precision, scale)},{scale})" if 0 <= scale <= precision <= _DIGITS else None
    if kind == "array":
        element = _spark_type(described.get("items") or {})
        return f"array<{element}>" if element and kind_of(element) != "array" else None
    return _PLAIN_TYPES.get(kind)


def spark_type_named(name: str) -> str | None:
    """The Spark type of a type of Debezium or Kafka Connect with a name; ``None`` for other names."""
    return _NAMED_TYPES.get(name)


def _change_format(rows: Sequence[Mapping[str, Any]]) -> ChangeFormat | None:
    """The tool that wrote the messages; ``None`` for messages that are no change events.

    Debezium's connectors write messages of other kinds as well, such as heartbeats.
    """
    payloads = [row["payload"] if isinstance(row.get("payload"), Mapping) else row for row in rows]
    if any(_is_debezium(row) for row in payloads):
        return "debezium"
    if all({"database", "table", "type", "isDdl"} <= row.keys() for row in rows):
        return "canal"
    if all({"database", "table", "type", "ts", "data"} <= row.keys() for row in rows):
        return "maxwell"
    return None


def _is_debezium(row: Mapping[str, Any]) -> bool:
    return row.get("op") in _OPERATIONS and isinstance(row.get("source"), Mapping)


def _text(value: bytes) -> str | None:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _object(value: bytes | None) -> dict[str, Any] | None:
    """The JSON object that a message has; ``None`` if it is none."""
    try:
        found = json.loads(value) if value is not None else None
    except ValueError:  # also of bytes that are no UTF-8
        return None
    return found if isinstance(found, dict) else None


__all__ = ["TopicDraft", "draft_topic", "spark_type_named"]
