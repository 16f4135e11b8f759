"""SQL of the rows of a topic: from the messages that Spark reads to the declared columns. Pure.

A message that does not fit the columns fails the statement, with its partition and offset.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from dbt_arctic.engine.api import SourceRead
from dbt_arctic.keyed.checks import raising
from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.sources.change_sql import Delivery
from dbt_arctic.sources.kafka_offsets import Range
from dbt_arctic.sources.kafka_settings import MALFORMED, OF_CHANGES, KafkaSource

_FROM_MESSAGE: Mapping[str, str] = {
    "_source_key": "`key`",
    "_source_headers": "`headers`",
    "_source_timestamp": "`timestamp`",
    "_source_partition": "`partition`",
    "_source_offset": "`offset`",
    "_action": "IF(`value` IS NULL, 'D', 'U')",
}
_VALUE, _KEY = "_source_value", "_source_key_parsed"
_SHOWN = 200


def read_request(source: KafkaSource, ranges: Sequence[Range]) -> SourceRead:
    """How Spark reads exactly these offsets, and no others."""
    client = {f"kafka.{name}": value for name, value in source.client.items()}
    planned = {
        "kafka.bootstrap.servers": source.servers,
        "kafka.isolation.level": source.isolation,
        "assign": json.dumps({source.topic: [one.partition for one in ranges]}),
        "startingOffsets": json.dumps({source.topic: {str(one.partition): one.start for one in ranges}}),
        "endingOffsets": json.dumps({source.topic: {str(one.partition): one.end for one in ranges}}),
        # An offset that is deleted before it is read is an error.
        "failOnDataLoss": "true",
        "includeHeaders": str(source.changes is None).lower(),
    }
    return SourceRead("kafka", {**source.reader, **client, **planned})


def delivery_of(source: KafkaSource) -> Delivery:
    """The messages of a topic of change events."""
    text = "CAST(`value` AS STRING)"
    # What is no text is no JSON either.
    readable = f"IF(is_valid_utf8({text}), {text}, concat('not UTF-8: ', make_valid_utf8({text})))"
    return Delivery(
        source.name,
        f"CASE WHEN `value` IS NOT NULL THEN {readable} END",
        "lpad(CAST(`offset` AS STRING), 20, '0')",
        f"concat({literal(source.topic)}, ' partition ', `partition`, ', offset ', `offset`)",
        {name: _FROM_MESSAGE[name] for name in OF_CHANGES},
    )


def rows_of(source: KafkaSource, view: str) -> str:
    """SQL of a pull: the declared columns, those of the message, and ``_action``.

    :param view: with the columns of Spark's reader of Kafka.
    """
    key = {name: source.columns[name] for name in source.key}
    parsed = ["*"]
    if source.format == "json" and source.value_columns:
        parsed.append(f"{_from_json(source, 'value', source.value_columns)} AS {quote(_VALUE)}")
    if key and source.key_format == "json":
        parsed.append(f"{_from_json(source, 'key', key)} AS {quote(_KEY)}")
    checked = ["*"]
    if source.format == "json" and source.value_columns:
        checked.append(f"{_checked_json(source, 'value', _VALUE)} AS `_value`")
    elif source.value_columns:
        checked.append(f"{_whole(source)} AS `_value`")
    if key:
        checked.append(f"{_checked_key(source, key)} AS `_key`")
    selected = []
    for name in source.columns:
        if name in source.key:
            taken = f"`_key`.{quote(name)}" if source.key_format == "json" else "`_key`"
        else:
            taken = f"`_value`.{quote(name)}" if source.format == "json" else "`_value`"
        selected.append(f"{taken} AS {quote(name)}")
    selected += [f"{sql} AS {quote(name)}" for name, sql in _FROM_MESSAGE.items()]
    listed = ",\n  ".join(selected)
    return (
        f"SELECT\n  {listed}\nFROM (\nSELECT {', '.join(checked)}\nFROM (\nSELECT {', '.join(parsed)}\n"
        f"FROM {quote(view)}\n)\n)"
    )


def _from_json(source: KafkaSource, part: str, columns: Mapping[str, str]) -> str:
    """The columns of a part of the message as a struct, and its text if it does not fit them."""
    fields = ", ".join(f"{quote(name)} {kind}" for name, kind in {**columns, MALFORMED: "string"}.items())
    # In Spark's strict mode, the error would not say which message it is about.
    options = {**source.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
    pairs = ", ".join(f"{literal(name)}, {literal(value)}" for name, value in options.items())
    return f"from_json(CAST({quote(part)} AS STRING), {literal(fields)}, map({pairs}))"


def _checked_json(source: KafkaSource, part: str, parsed: str) -> str:
    named = quote(parsed)
    malformed = f"{named} IS NULL OR {named}.{quote(MALFORMED)} IS NOT NULL OR {_not_text(part)}"
    return _checked(source, part, malformed, named)


def _whole(source: KafkaSource) -> str:
    if source.format == "binary":
        return "`value`"
    return _checked(source, "value", _not_text("value"), "CAST(`value` AS STRING)")


def _checked_key(source: KafkaSource, columns: Mapping[str, str]) -> str:
    if source.key_format == "json":
        return _checked_json(source, "key", _KEY)
    ((_, kind),) = columns.items()
    if kind.lower() == "binary":
        return "`key`"
    value = f"TRY_CAST(CAST(`key` AS STRING) AS {kind})"
    return _checked(source, "key", f"{value} IS NULL OR {_not_text('key')}", value)


def _not_text(part: str) -> str:
    return f"NOT is_valid_utf8(CAST({quote(part)} AS STRING))"


def _checked(source: KafkaSource, part: str, malformed: str, value: str) -> str:
    """SQL of a value, or an error if the part of the message that it comes from is malformed."""
    at = "' partition ', `partition`, ', offset ', `offset`"
    # A vertical bar separates the parts of the error.
    text = f"replace(left(make_valid_utf8(CAST({quote(part)} AS STRING)), {_SHOWN}), '|', '/')"
    columns = source.value_columns if part == "value" else {name: source.columns[name] for name in source.key}
    wanted = ", ".join(f"{name} {kind}" for name, kind in columns.items()).replace("|", "/")
    error = raising(
        "AR-311",
        f"the {part} of a message of the topic {source.topic} does not fit the columns of the source "
        f"{source.name}:".replace("|", "/"),
        f"{at}, ': ', {text}",
        source.name,
        f"it is read as {source.key_format if part == 'key' else source.format} with the columns {wanted}",
        "correct the columns or the format in the source's meta.arctic; nothing was written",
    )
    return f"CASE WHEN {quote(part)} IS NULL THEN NULL WHEN {malformed} THEN {error} ELSE {value} END"


__all__ = ["delivery_of", "read_request", "rows_of"]
