"""SQL of the messages of a topic that do not fit their source, as rows of the rejected table. Pure.

A rejected message is stored as it was received, with its key and its headers. So a replay reads it as it
would be read from the topic.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.sources.bad_rows import NO_FIELD, reasons
from dbt_arctic.sources.kafka_settings import KafkaSource
from dbt_arctic.sources.kafka_sql import is_bad, missing, parsed, rows_of
from dbt_arctic.sources.key_and_value import (
    Part,
    columns_of,
    does_not_fit,
    format_of,
    from_json,
    malformed,
    not_text,
    parts,
    readable,
)
from dbt_arctic.store.rejected_table import COLUMNS, RejectedVersion

_MESSAGE = "CAST(struct(`key`, `value`, `headers`, `partition`) AS " + COLUMNS["message"] + ")"
_NO_KEY = "CAST(NULL AS STRING) AS `key`"


def count_bad(source: KafkaSource, relation: str) -> str:
    """SQL of the partitions with messages that do not fit, and their number.

    :param relation: SQL of a relation with the columns of Spark's reader of Kafka.
    """
    return (
        f"SELECT {_location(source)}, count(*)\nFROM (\n{parsed(source, relation)}\n)\n"
        f"WHERE {is_bad(source)}\nGROUP BY `partition`"
    )


def rejected_messages(source: KafkaSource, relation: str, at: str = "current_timestamp()") -> str:
    """SQL of the messages that do not fit, as rows of the rejected table.

    With the policy ``drop``, one row for each partition and error, without the messages.

    :param at: SQL of the time at which a message was rejected; without effect on the policy ``drop``.
    """
    bad = f"FROM (\n{parsed(source, relation)}\n)\nWHERE {is_bad(source)}"
    named, error = f"{literal(source.name)} AS `source`", f"{error_text(source)} AS `error`"
    if source.on_bad_row == "drop":
        return (
            f"SELECT {named}, `location`, max(`modified`) AS `modified`, CAST(NULL AS BIGINT) AS `position`, "
            "`error`, CAST(NULL AS STRING) AS `raw`, count(*) AS `row_count`, "
            f"current_timestamp() AS `rejected_at`, CAST(NULL AS {COLUMNS['message']}) AS `message`, "
            f"{_NO_KEY}\n"
            f"FROM (\nSELECT {_location(source)} AS `location`, `timestamp` AS `modified`, {error}\n"
            f"{bad}\n)\n"
            "GROUP BY `location`, `error`"
        )
    return (
        f"SELECT {named}, {_location(source)} AS `location`, `timestamp` AS `modified`, "
        f"`offset` AS `position`, {error}, {_raw(source)} AS `raw`, CAST(1 AS BIGINT) AS `row_count`, "
        f"{at} AS `rejected_at`, {_MESSAGE} AS `message`, {_NO_KEY}\n{bad}"
    )


def stored_messages(source: KafkaSource, version: RejectedVersion) -> str:
    """SQL of a relation of the rejected messages of a source, with the columns of Spark's reader of Kafka."""
    return (
        "(\nSELECT `message`.`key`, `message`.`value`, `message`.`headers`, `message`.`partition`, "
        "`position` AS `offset`, `modified` AS `timestamp`, `rejected_at`\n"
        f"FROM {version.rows}\nWHERE {_is_mine(source)}\n)"
    )


def count_fitting(source: KafkaSource, version: RejectedVersion) -> str:
    """SQL of the number of rejected messages that fit now."""
    return (
        f"SELECT count(*)\nFROM (\n{parsed(source, stored_messages(source, version))}\n)\n"
        f"WHERE NOT ({is_bad(source)})"
    )


def fitting_rows(source: KafkaSource, version: RejectedVersion) -> str:
    """SQL of the rejected messages that fit now, with the columns of a pull."""
    return rows_of(source, stored_messages(source, version))


def kept_rows(source: KafkaSource, version: RejectedVersion) -> str:
    """SQL of the rejected rows that stay after a replay, those of other sources included."""
    others = quote_all(COLUMNS)
    again = rejected_messages(source, stored_messages(source, version), "`rejected_at`")
    return f"SELECT {others}\nFROM {version.rows}\nWHERE NOT ({_is_mine(source)})\nUNION ALL\n{again}"


def error_text(source: KafkaSource) -> str:
    """SQL of what is wrong with a row of ``kafka_sql.parsed`` that does not fit."""
    found = [
        f"CASE WHEN {quote(part)} IS NOT NULL AND ({malformed(source, part)}) "
        f"THEN {_reason(source, part)} END"
        for part in parts(source)
    ]
    absent = [
        f"WHEN {is_missing} THEN {literal(f'the required column {name} is missing or NULL')}"
        for name, is_missing in missing(source).items()
    ]
    several = f"concat_ws('; ', {', '.join(found)})" if found else "''"
    return f"coalesce(nullif({several}, ''), CASE {' '.join(absent)} END)" if absent else several


def _reason(source: KafkaSource, part: Part) -> str:
    """SQL of what is wrong with a part that is malformed."""
    columns = columns_of(source, part)
    no_text = f"the {part} is not UTF-8"
    if format_of(source, part) != "json":
        ((name, kind),) = columns.items()
        wrong = literal(f"the value of {name} is not a {kind}")
        return f"CASE WHEN {not_text(part)} THEN {literal(no_text)} ELSE {wrong} END"

    def fails(types: Mapping[str, str]) -> str:
        return does_not_fit(from_json(source, part, types), part)

    listed = reasons(columns, fails, f"the {part} is not a valid JSON object", NO_FIELD)
    return f"CASE WHEN {not_text(part)} THEN {literal(no_text)} ELSE {listed} END"


def _location(source: KafkaSource) -> str:
    """SQL of the partition of a message, as Kafka's own tools write it."""
    return f"concat({literal(source.topic + '-')}, `partition`)"


def _raw(source: KafkaSource) -> str:
    """SQL of the text of a message, or of its bytes in hexadecimal digits."""
    return readable("value") if source.format in ("json", "text") else "hex(`value`)"


def _is_mine(source: KafkaSource) -> str:
    return f"`source` = {literal(source.name)} AND `message` IS NOT NULL"


__all__ = [
    "count_bad",
    "count_fitting",
    "error_text",
    "fitting_rows",
    "kept_rows",
    "rejected_messages",
    "stored_messages",
]
