"""SQL that decodes messages in Avro to JSON, so that they are read like messages in JSON. Pure.

A schema registry's clients write a byte 0, the id of the schema in four bytes, and the value. Each message is
decoded with the schema that it was written with. What cannot be decoded becomes text that is no JSON, so it
is a message that does not fit, with what is wrong in it.

The JSON has the digits of decimals, timestamps with microseconds and a time zone, bytes in base64 as Spark
reads them, and NULL for fields that are null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import literal, quote
from dbt_arctic.sources.change_messages import computed

_DECODED = "_arctic_decoded"
"""A field that a decoded record has. The record of bytes that cannot be decoded lacks it."""
_WRITTEN = (
    "map('ignoreNullFields', 'false', 'timeZone', 'UTC', "
    "'timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS')"
)
_SHOWN = 100


@dataclass(frozen=True)
class AvroSchema:
    """The schema of messages.

    :param text: as JSON.
    """

    text: str

    @property
    def parsed(self) -> Any:
        """The schema as it was parsed."""
        return json.loads(self.text)

    @property
    def is_record(self) -> bool:
        """Whether the messages have fields."""
        return isinstance(self.parsed, dict) and self.parsed.get("type") == "record"


def parse_schema(text: str, what: str, where: str) -> AvroSchema:
    """Read a schema.

    :param what: whose schema it is, for errors.
    :raises ConfigError: it is no JSON, or no schema of Avro.
    """
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise ConfigError(
            f"{what} is not an Avro schema",
            where=where,
            why=str(error),
            fix="write the schema as JSON (.avsc)",
        ) from error
    if not isinstance(parsed, str | dict | list):
        raise ConfigError(
            f"{what} is not an Avro schema", where=where, fix="write the schema as JSON (.avsc)"
        )
    return AvroSchema(json.dumps(parsed))


def schema_id(part: str) -> str:
    """SQL of the id of the schema with which a part of a message was written; NULL if it has none."""
    column = quote(part)
    return (
        f"IF(length({column}) >= 5 AND hex(substring({column}, 1, 1)) = '00', "
        f"CAST(conv(hex(substring({column}, 2, 4)), 16, 10) AS BIGINT), NULL)"
    )


def ids_statement(view: str, parts: tuple[str, ...]) -> str:
    """SQL of the ids of the schemas of some messages, one a row."""
    selected = [f"SELECT {schema_id(part)} AS `id`\nFROM {quote(view)}" for part in parts]
    return "SELECT DISTINCT `id`\nFROM (\n" + "\nUNION ALL\n".join(selected) + "\n)\nWHERE `id` IS NOT NULL"


def decode_statement(
    name: str, view: str, decoded: Mapping[str, str], schemas: Mapping[int, AvroSchema] | AvroSchema
) -> str:
    """SQL that makes a view of messages whose parts are JSON.

    :param name: of the view to create.
    :param view: of the messages.
    :param decoded: the parts to decode (``value``, ``key``), each with the name of the field of a part that
        is one value and no record.
    :param schemas: by id; or that of all messages, which have no id.
    """
    relation = quote(view)
    for part, field in decoded.items():
        of_part = {"": schemas} if isinstance(schemas, AvroSchema) else schemas
        columns = [
            (f"_arctic_{part}_{number}", _record(part, number, schema, field))
            for number, schema in of_part.items()
        ]
        texts = [_text(f"_arctic_{part}_{number}", schema, field) for number, schema in of_part.items()]
        text = f"coalesce({', '.join([*texts, _undecodable(part)])})"
        made = f"IF({quote(part)} IS NULL, NULL, CAST({text} AS BINARY))"
        inner = computed(columns, relation) if columns else f"SELECT *\nFROM {relation}"
        kept = ", ".join(quote(column) for column, _ in columns)
        others = f"* EXCEPT ({', '.join(filter(None, [quote(part), kept]))})"
        relation = f"(\nSELECT {others}, {made} AS {quote(part)}\nFROM (\n{inner}\n)\n)"
    return f"CREATE OR REPLACE TEMPORARY VIEW {quote(name)} AS\nSELECT *\nFROM {relation}"


def _record(part: str, number: int | str, schema: AvroSchema, field: str) -> str:
    """SQL of the decoded record of a part that was written with a schema, otherwise NULL."""
    parsed = schema.parsed
    written = schema.text
    if not schema.is_record:  # a record with one field has the same bytes
        parsed = {"type": "record", "name": "arctic_value", "fields": [{"name": field, "type": parsed}]}
        written = json.dumps(parsed)
    marked = [*parsed["fields"], {"name": _DECODED, "type": "boolean", "default": True}]
    options = {"mode": "PERMISSIVE", "avroSchema": json.dumps({**parsed, "fields": marked})}
    listed = ", ".join(f"{literal(name)}, {literal(value)}" for name, value in options.items())
    payload = quote(part) if number == "" else f"substring({quote(part)}, 6)"
    record = f"from_avro({payload}, {literal(written)}, map({listed}))"
    return record if number == "" else f"IF({schema_id(part)} <=> {number}, {record}, NULL)"


def _text(column: str, schema: AvroSchema, field: str) -> str:
    """SQL of the JSON of a decoded record; NULL if it could not be decoded."""
    names = [str(one["name"]) for one in schema.parsed["fields"]] if schema.is_record else [field]
    listed = ", ".join(f"{literal(name)}, {quote(column)}.{quote(name)}" for name in names)
    made = f"to_json(named_struct({listed}), {_WRITTEN})" if names else "'{}'"
    return f"IF({quote(column)}.{quote(_DECODED)}, {made}, NULL)"


def _undecodable(part: str) -> str:
    number = schema_id(part)
    return (
        f"concat('not Avro', coalesce(concat(' of the schema ', {number}), ''), ': ', "
        f"left(hex({quote(part)}), {_SHOWN}))"
    )


__all__ = ["AvroSchema", "decode_statement", "ids_statement", "parse_schema", "schema_id"]
