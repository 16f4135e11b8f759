"""Drafts sources for topics in Avro from the schemas with which their messages were written. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dbt_arctic.brokers.api import Message
from dbt_arctic.sources import change_settings
from dbt_arctic.sources.avro_settings import AVRO
from dbt_arctic.sources.avro_sql import AvroSchema
from dbt_arctic.sources.draft_topics import TopicDraft, spark_type_named
from dbt_arctic.sources.infer_tables import table_name
from dbt_arctic.sources.kafka_settings import ADDED, MALFORMED

_PLAIN: Mapping[str, str] = {
    **{"boolean": "boolean", "int": "int", "long": "bigint", "float": "float", "double": "double"},
    **{"string": "string", "enum": "string", "bytes": "binary", "fixed": "binary"},
}
_LOGICAL: Mapping[str, str] = {
    "date": "date",
    **dict.fromkeys(("timestamp-millis", "timestamp-micros"), "timestamp"),
    **dict.fromkeys(("local-timestamp-millis", "local-timestamp-micros"), "timestamp_ntz"),
}
_UNITS: Mapping[str, str] = {"Timestamp": "millis", "MicroTimestamp": "micros", "NanoTimestamp": "nanos"}
_HEADER = 5


def id_of(part: bytes | None) -> int | None:
    """The id of the schema with which a part of a message was written; ``None`` if it has none.

    >>> id_of(bytes([0, 0, 0, 1, 2, 9])), id_of(b"[0, 1]")
    (258, None)
    """
    if part is None or len(part) < _HEADER or part[0] != 0:
        return None
    return int.from_bytes(part[1:_HEADER], "big")


def draft_avro(
    topic: str, messages: Sequence[Message], schema: Callable[[int], AvroSchema | None]
) -> TopicDraft | None:
    """What the newest schemas of a topic suggest; ``None`` if its messages are not Avro with ids.

    :param messages: those of a partition in their order.
    :param schema: looks up a schema by its id.
    """
    value = _newest([one.value for one in messages], schema)
    if value is None:
        return None
    key = _newest([one.key for one in messages], schema)
    name, count = table_name(topic.rpartition(".")[2]) or table_name(topic), len(messages)
    if not value.is_record:
        return TopicDraft(name, topic, AVRO, messages=count, problem="its messages are values without fields")
    fields = {str(one["name"]): one for one in value.parsed["fields"]}
    named = _named(value.parsed, {})
    keys = {} if key is None or not key.is_record else _types(key.parsed["fields"], {})
    if {"op", "source", "after"} <= fields.keys():
        return _draft_debezium(name, topic, fields, named, tuple(keys), count)
    columns = _types(value.parsed["fields"], named)
    taken = next((one for one in columns if one.lower() in (*ADDED, MALFORMED)), None)
    problem = f"its messages have a field {taken}, and each row gets a column of that name" if taken else ""
    return TopicDraft(
        name,
        topic,
        AVRO,
        {**columns, **keys},
        tuple(keys),
        bool(keys),
        AVRO,
        messages=count,
        problem=problem,
        is_avro=True,
    )


def _draft_debezium(
    name: str,
    topic: str,
    fields: Mapping[str, Any],
    named: Mapping[str, Any],
    key: tuple[str, ...],
    count: int,
) -> TopicDraft:
    row = next((one for one in _branches(fields["after"]["type"], named) if isinstance(one, dict)), {})
    types = _types(row.get("fields", ()), named)
    columns = {one: kind for one, kind in types.items() if one not in change_settings.ADDED}
    if not key or not set(key) <= set(columns):
        problem = "its messages have no key with the columns of the table's primary key"
        return TopicDraft(name, topic, "debezium", columns, messages=count, problem=problem)
    units = {}
    for one in row["fields"]:
        unit = _UNITS.get(_connect_name(one["type"], named).rpartition(".")[2])
        if columns.get(one["name"]) == "timestamp_ntz" and unit is not None:
            units[str(one["name"])] = unit
    return TopicDraft(name, topic, "debezium", columns, key, messages=count, is_avro=True, units=units)


def _newest(parts: Sequence[bytes | None], schema: Callable[[int], AvroSchema | None]) -> AvroSchema | None:
    """The schema with the greatest id that the registry has; ``None`` if a part has no id."""
    ids = [id_of(part) for part in parts if part is not None]
    known = [number for number in ids if number is not None]
    if len(known) < len(ids):
        return None
    return next((found for number in sorted(set(known), reverse=True) if (found := schema(number))), None)


def _types(fields: Sequence[Mapping[str, Any]], named: Mapping[str, Any]) -> dict[str, str]:
    """Spark types by name, of the fields that have one."""
    found = {str(one["name"]): _spark_type(one["type"], named) for one in fields}
    return {name: kind for name, kind in found.items() if kind is not None}


def _spark_type(given: Any, named: Mapping[str, Any]) -> str | None:
    """The Spark type that holds all values of a type; ``None`` if there is none."""
    branches = _branches(given, named)
    if len(branches) != 1:
        return "string"  # the JSON text of a value that may have several types
    kind = branches[0]
    if isinstance(kind, str):
        return _PLAIN.get(kind)
    connect = str(kind.get("connect.name") or "")
    if connect.endswith(".VariableScaleDecimal"):
        return "string"
    # A time of the day is a number here, because messages in Avro do not say its unit.
    if (found := spark_type_named(connect)) and found != "string":
        return found
    logical = kind.get("logicalType")
    if logical == "decimal":
        return f"decimal({kind['precision']},{kind.get('scale', 0)})"
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if kind["type"] == "record":
        parts = [f"`{one['name']}`: {_spark_type(one['type'], named)}" for one in kind["fields"]]
        return None if any(part.endswith(": None") for part in parts) else f"struct<{', '.join(parts)}>"
    if kind["type"] in ("array", "map"):
        element = _spark_type(kind.get("items", kind.get("values")), named)
        opened = "array<" if kind["type"] == "array" else "map<string, "
        return None if element is None else f"{opened}{element}>"
    return _PLAIN.get(kind["type"]) if isinstance(kind["type"], str) else _spark_type(kind["type"], named)


def _connect_name(given: Any, named: Mapping[str, Any]) -> str:
    """The name of a type of Kafka Connect, such as those of Debezium."""
    names = [one.get("connect.name") for one in _branches(given, named) if isinstance(one, dict)]
    return str(next(filter(None, names), ""))


def _branches(given: Any, named: Mapping[str, Any]) -> list[Any]:
    """The types of a union other than null, with the definitions of names."""
    branches = given if isinstance(given, list) else [given]
    found = [named.get(one, one) if isinstance(one, str) else one for one in branches]
    return [one for one in found if one != "null"]


def _named(schema: Any, found: dict[str, Any]) -> dict[str, Any]:
    """The records, enums and fixed types of a schema by name, with and without their namespace."""
    if isinstance(schema, list):
        for one in schema:
            _named(one, found)
    elif isinstance(schema, dict):
        if schema.get("type") in ("record", "enum", "fixed"):
            names = {str(schema["name"]), f"{schema.get('namespace', '')}.{schema['name']}"}
            found |= dict.fromkeys(names, schema)
        for one in schema.get("fields", ()):
            _named(one["type"], found)
        for inner in ("items", "values", "type"):
            _named(schema.get(inner), found)
    return found


__all__ = ["draft_avro", "id_of"]
