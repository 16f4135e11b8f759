"""SQL of the rows of a topic: from the messages that Spark reads to the declared columns. Pure.

A message that does not fit the columns fails the statement, with its partition and offset, or is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from dbt_arctic.engine.api import SourceRead
from dbt_arctic.keyed.checks import raise_error_sql
from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.sources.change_messages import computed
from dbt_arctic.sources.change_sql import Delivery
from dbt_arctic.sources.kafka_offsets import Range
from dbt_arctic.sources.kafka_settings import OF_CHANGES, KafkaSource
from dbt_arctic.sources.key_and_value import (
    Part,
    columns_of,
    content,
    format_of,
    malformed,
    parsed_parts,
    parts,
    readable,
    value_in,
)

_FROM_MESSAGE: Mapping[str, str] = {
    "_source_key": "`key`",
    "_source_headers": "`headers`",
    "_source_timestamp": "`timestamp`",
    "_source_partition": "`partition`",
    "_source_offset": "`offset`",
    "_action": "IF(`value` IS NULL, 'D', 'U')",
}
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


def rows_of(source: KafkaSource, relation: str) -> str:
    """SQL of a pull: the declared columns, those of the message, and ``_action``.

    :param relation: SQL of a relation with the columns of Spark's reader of Kafka.
    """
    if source.on_bad_row != "fail" or source.required:
        fits = f"NOT ({is_bad(source)})" if source.on_bad_row != "fail" else _require(source)
        taken = {part: content(source, part) for part in parts(source)}
        return f"SELECT\n  {_selected(source, taken)}\nFROM (\n{parsed(source, relation)}\n)\nWHERE {fits}"
    # Without a filter, Spark parses a message once also if the columns are those of a SELECT.
    added = ", ".join(["*", *(f"{sql} AS {quote(name)}" for name, sql in parsed_parts(source).items())])
    checked = ", ".join(["*", *(f"{_checked(source, part)} AS `_{part}`" for part in parts(source))])
    return (
        f"SELECT\n  {_selected(source, {part: f'`_{part}`' for part in parts(source)})}\n"
        f"FROM (\nSELECT {checked}\nFROM (\nSELECT {added}\nFROM {relation}\n)\n)"
    )


def parsed(source: KafkaSource, relation: str) -> str:
    """SQL of the messages with their parsed parts, each of which is parsed once."""
    added = parsed_parts(source)
    return computed(added.items(), relation) if added else f"SELECT *\nFROM {relation}"


def is_bad(source: KafkaSource) -> str:
    """SQL condition on a row of ``parsed``: it does not fit. Never NULL."""
    found = [f"({quote(part)} IS NOT NULL AND ({malformed(source, part)}))" for part in parts(source)]
    return " OR ".join([*found, *missing(source).values()]) or "false"


def missing(source: KafkaSource) -> dict[str, str]:
    """The required columns, each with the SQL condition that a row of ``parsed`` has no value in it.

    A tombstone has a value in the columns of its key only.
    """
    conditions = {}
    for name in source.required:
        part: Part = "key" if name in source.key else "value"
        is_null = f"{value_in(source, part, name, content(source, part))} IS NULL"
        conditions[name] = f"({is_null})" if part == "key" else f"(`value` IS NOT NULL AND {is_null})"
    return conditions


def _require(source: KafkaSource) -> str:
    """SQL condition for the policy ``fail``: an error for a message that does not fit."""
    branches = [
        f"WHEN {quote(part)} IS NOT NULL AND ({malformed(source, part)}) THEN {_error(source, part)}"
        for part in parts(source)
    ]
    branches += [
        f"WHEN {is_missing} THEN {_missing_error(source, name)}"
        for name, is_missing in missing(source).items()
    ]
    return f"CASE {' '.join(branches)} ELSE true END"


def _selected(source: KafkaSource, taken: Mapping[Part, str]) -> str:
    """The columns of a pull.

    :param taken: SQL of the content of each part of the message.
    """
    selected = []
    for name in source.columns:
        part: Part = "key" if name in source.key else "value"
        selected.append(f"{value_in(source, part, name, taken[part])} AS {quote(name)}")
    selected += [f"{sql} AS {quote(name)}" for name, sql in _FROM_MESSAGE.items()]
    return ",\n  ".join(selected)


def _checked(source: KafkaSource, part: Part) -> str:
    """SQL of the content of a part of the message, or an error if it is malformed."""
    condition, taken = malformed(source, part), content(source, part)
    if condition == "false":
        return taken
    return (
        f"CASE WHEN {quote(part)} IS NULL THEN NULL WHEN {condition} THEN {_error(source, part)} "
        f"ELSE {taken} END"
    )


def _error(source: KafkaSource, part: Part) -> str:
    wanted = ", ".join(f"{name} {kind}" for name, kind in columns_of(source, part).items())
    return _raised(
        source,
        f"the {part} of a message of the topic {source.topic} does not fit the columns of the source "
        f"{source.name}:",
        part,
        f"it is read as {format_of(source, part)} with the columns {wanted}",
    )


def _missing_error(source: KafkaSource, column: str) -> str:
    return _raised(
        source,
        f"a message of the topic {source.topic} has no value in the column {column}, which the source "
        f"{source.name} requires:",
        "key" if column in source.key else "value",
        "the field is missing or null",
    )


def _raised(source: KafkaSource, what: str, part: Part, why: str) -> str:
    # A vertical bar separates the parts of the error.
    shown = f"coalesce(replace(left({readable(part)}, {_SHOWN}), '|', '/'), 'NULL')"
    return raise_error_sql(
        "AR-311",
        what.replace("|", "/"),
        f"' partition ', `partition`, ', offset ', `offset`, ': ', {shown}",
        source.name,
        why.replace("|", "/"),
        "correct the columns or the format in the source's meta.arctic; or take the other messages only, "
        "with on_bad_row: quarantine; nothing was written",
    )


__all__ = ["delivery_of", "is_bad", "missing", "parsed", "read_request", "rows_of"]
