"""SQL of the key and the value of a message: parsed into columns, and whether they fit them. Pure.

The relation that this SQL is for has the columns of Spark's reader of Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.sources.kafka_settings import MALFORMED, KafkaSource

Part = Literal["value", "key"]

_PARSED: Mapping[Part, str] = {"value": "_source_value", "key": "_source_key_parsed"}


def columns_of(source: KafkaSource, part: Part) -> dict[str, str]:
    """The declared columns that are in a part of the message: types by name."""
    if part == "value":
        return source.value_columns
    return {name: source.columns[name] for name in source.key}


def format_of(source: KafkaSource, part: Part) -> str:
    """The format of a part of the message."""
    return source.format if part == "value" else source.key_format


def parts(source: KafkaSource) -> tuple[Part, ...]:
    """The parts of the message that have declared columns."""
    both: tuple[Part, ...] = ("value", "key")
    return tuple(part for part in both if columns_of(source, part))


def parsed_parts(source: KafkaSource) -> dict[str, str]:
    """Columns to add to the relation, with their SQL: the parts that are objects, as structs."""
    return {
        _PARSED[part]: from_json(source, part, columns_of(source, part))
        for part in parts(source)
        if format_of(source, part) == "json"
    }


def from_json(source: KafkaSource, part: Part, columns: Mapping[str, str]) -> str:
    """The columns of a part of the message as a struct, and its text if it does not fit them."""
    fields = ", ".join(f"{quote(name)} {kind}" for name, kind in {**columns, MALFORMED: "string"}.items())
    # In Spark's strict mode, the error would not say which message it is about.
    options = {**source.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
    pairs = ", ".join(f"{literal(name)}, {literal(value)}" for name, value in options.items())
    return f"from_json(CAST({quote(part)} AS STRING), {literal(fields)}, map({pairs}))"


def content(source: KafkaSource, part: Part) -> str:
    """A part of the message that fits: a struct of its columns, or the value of its only column."""
    form = format_of(source, part)
    if form == "json":
        return quote(_PARSED[part])
    if form == "binary":
        return quote(part)
    (kind,) = columns_of(source, part).values()
    text = f"CAST({quote(part)} AS STRING)"
    return quote(part) if kind.lower() == "binary" else _typed(text, kind) if part == "key" else text


def value_in(source: KafkaSource, part: Part, name: str, taken: str) -> str:
    """The value of a column of a part of the message.

    :param taken: SQL of the ``content`` of the part.
    """
    return f"{taken}.{quote(name)}" if format_of(source, part) == "json" else taken


def malformed(source: KafkaSource, part: Part) -> str:
    """SQL condition: the part does not fit its columns. Not NULL if the part is not NULL.

    :returns: ``false`` if each part fits.
    """
    form = format_of(source, part)
    if form == "json":
        return does_not_fit(quote(_PARSED[part]), part)
    taken = content(source, part)
    if taken == quote(part):
        return "false"
    return f"{taken} IS NULL OR {not_text(part)}" if part == "key" else not_text(part)


def does_not_fit(parsed: str, part: Part) -> str:
    """SQL condition: the part is not an object of the columns that ``from_json`` has parsed."""
    return f"{parsed} IS NULL OR {parsed}.{quote(MALFORMED)} IS NOT NULL OR {not_text(part)}"


def not_text(part: Part) -> str:
    """SQL condition: the part is not valid UTF-8."""
    return f"NOT is_valid_utf8(CAST({quote(part)} AS STRING))"


def readable(part: Part) -> str:
    """SQL of the text of a part, also if it is not valid."""
    return f"make_valid_utf8(CAST({quote(part)} AS STRING))"


def _typed(text: str, kind: str) -> str:
    return f"TRY_CAST({text} AS {kind})"


__all__ = [
    "Part",
    "columns_of",
    "content",
    "does_not_fit",
    "format_of",
    "from_json",
    "malformed",
    "not_text",
    "parsed_parts",
    "parts",
    "readable",
    "value_in",
]
