"""SQL of a pull of change events: from messages to rows of the table, with ``_action``. Pure.

A message that is no change event, a value that does not fit its column, or an event without an order fails
the statement.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.data_type import has_kind, kind_of
from dbt_arctic.keyed.checks import raise_error_sql
from dbt_arctic.keyed.names import literal, quote, quote_all
from dbt_arctic.sources.change_messages import TEXT, computed, messages
from dbt_arctic.sources.change_settings import SEQUENCE, UNAVAILABLE, ChangeEvents
from dbt_arctic.sources.change_types import EncodedValue, SchemaInMessage, decoded

_SHOWN = 200
_VALUES, _ACTION = "`_arctic_row`.vals", "`_arctic_row`.action"
_NEW_KEY = "`_arctic_row`.is_new_key"
_NOT_SENT = "_arctic_not_sent"
_WRONG = "_arctic_wrong"
_MOVED = "{} was not sent with a new key, and rows of the new key do not have it"
_NO_SHAPES = (
    "0101000020E6100000000000FC83D797C1000000FC83D797C1",
    "0101000020E61000000C21E7FDFF7F66401842CEFBFF7F5640",
)
"""The points that stand for a geometry and for a geography that was not sent."""
_VALUE, _TEXT = "{} (value)", "{} (text)"
"""Columns with the values in the message, as variants and as strings."""


@dataclass(frozen=True)
class Delivery:
    """The messages that a kind of source has, and what it says about them.

    :param name: ``<source>.<table>``.
    :param text: SQL of the text of a message.
    :param order: SQL of the order of delivery, as text, or of a number.
    :param at: SQL of where a message is, for errors.
    :param columns: SQL by name of what the source adds to each row.
    """

    name: str
    text: str
    order: str
    at: str
    columns: Mapping[str, str]


def rows_of_events(events: ChangeEvents, delivery: Delivery, view: str, truncated_at: str = "") -> str:
    """SQL of the rows that have changed, as upserts and deletes.

    Columns: those of the table; what the kind of source adds; ``ChangeEvents.added``. A repeated event gives
    one row.

    :param view: over the messages.
    :param truncated_at: the place of the last truncation of the table; rows of older events are left out.
    """
    read = f"(\nSELECT *, {delivery.text} AS {quote(TEXT)}\nFROM {quote(view)}\n)"
    parsed = messages(events, read, delivery.order)
    changes = (
        f"SELECT *, {_sequence(events, delivery)} AS {quote(SEQUENCE)}\nFROM (\n"
        f"SELECT *, explode({_actions(events)}) AS `_row`\nFROM (\n{parsed}\n)\n"
        f"WHERE {_is_change(events, delivery)}\n)"
    )
    if truncated_at:
        changes = f"SELECT *\nFROM (\n{changes}\n)\nWHERE {quote(SEQUENCE)} > {literal(truncated_at)}"
    selected = {
        "_arctic_row": "`_row`",
        "_arctic_fields": "`_fields`",
        "_arctic_at": delivery.at,
        **delivery.columns,
        SEQUENCE: quote(SEQUENCE),
        "_source_operation": "`_operation`",
        "_source_changed_at": "`_at`",
    }
    listed = ",\n  ".join(f"{sql} AS {quote(name)}" for name, sql in selected.items())
    encoded = [
        (made, sql)
        for name in events.columns
        for made, sql in (
            (_VALUE.format(name), _read(events, name)),
            (_TEXT.format(name), f"TRY_CAST({_VALUES}[{literal(name)}] AS STRING)"),
        )
    ]
    selected_rows = f"(\nSELECT\n  {listed}\nFROM (\n{changes}\n)\n)"
    not_sent = [(_NOT_SENT, _not_sent(events))]
    if events.format == "capture":  # the message names what was not sent
        sent = computed([*encoded, *not_sent], selected_rows)
    else:
        sent = computed(not_sent, f"(\n{computed(encoded, selected_rows)}\n)")
    decoded_columns = [(name, _value(events, name, kind)) for name, kind in events.columns.items()]
    rows = _fitting(events, delivery, computed(decoded_columns, f"(\n{sent}\n)"))
    made = {UNAVAILABLE: quote(_NOT_SENT), "_action": _ACTION}
    added = ", ".join(f"{made.get(name, quote(name))} AS {quote(name)}" for name in events.added)
    listed = f"{quote_all((*events.columns, *delivery.columns))}, {added}"
    if events.format == "capture":  # each change is captured once
        return f"SELECT {listed}\nFROM (\n{rows}\n)"
    # Two rows of one key and place are the same event. The model's key has the same columns, so its rows are
    # shuffled once.
    before = (
        f"lag(concat({quote(SEQUENCE)}, {_ACTION})) OVER (PARTITION BY {quote_all(events.key)} "
        f"ORDER BY {quote(SEQUENCE)}, {_ACTION})"
    )
    return (
        f"SELECT {listed}\nFROM (\n"
        f"SELECT *, {before} AS `_arctic_before`\nFROM (\n{rows}\n)\n)\n"
        f"WHERE NOT (`_arctic_before` <=> concat({quote(SEQUENCE)}, {_ACTION}))"
    )


def summary_of(events: ChangeEvents, delivery: Delivery, view: str) -> str:
    """SQL of what the messages are, by kind.

    Columns: ``_kind``, their number, the number of tables, one of the tables, and the last place of this
    kind.
    """
    read = f"(\nSELECT *, {delivery.text} AS {quote(TEXT)}\nFROM {quote(view)}\n)"
    parsed = messages(events, read, delivery.order)
    kind = f"IF({_is_other_table(events)}, 'event of another table', `_kind`)"
    return (
        "SELECT `_kind`, count(*), count(DISTINCT `_table`), min(`_table`), max(`_table`), max(`_place`), "
        "count_if(`_place` IS NULL)\n"
        f"FROM (\nSELECT {kind} AS `_kind`, `_table`, `_place`\nFROM (\n{parsed}\n)\n)\nGROUP BY `_kind`"
    )


def _is_other_table(events: ChangeEvents) -> str:
    if not events.table:
        return "false"
    database, _, table = events.table.rpartition(".")
    if not database:
        return f"coalesce(`_table` <> '' AND substring_index(`_table`, '.', -1) <> {literal(table)}, false)"
    # A message about the whole database is about the table as well.
    own = ", ".join(map(literal, ("", database, events.table)))
    return f"coalesce(`_table` NOT IN ({own}), false)"


def _is_change(events: ChangeEvents, delivery: Delivery) -> str:
    unknown = _raising(
        delivery,
        "a message is not an event of the format " + events.format,
        f"left(coalesce({quote(TEXT)}, 'NULL'), {_SHOWN})",
        "a message that dbt-arctic cannot read would be lost",
        "correct the format in the source's meta.arctic; or, if the tool changes its messages (Debezium's "
        "ExtractNewRecordState does), turn this off",
    )
    return (
        f"CASE WHEN {_is_other_table(events)} THEN false WHEN `_kind` = 'change' THEN true "
        f"WHEN `_kind` IS NOT NULL THEN false ELSE {unknown} END"
    )


def _actions(events: ChangeEvents) -> str:
    """SQL of the upserts and deletes of an event. An update that changes the key deletes the old one."""
    changed = " OR ".join(
        f"(map_contains_key(c.before, {literal(name)}) AND NOT "
        f"({_of_key(events, name, 'c.before')} <=> {_of_key(events, name, 'c.after')}))"
        for name in events.key
    )
    delete = "named_struct('action', 'D', 'vals', c.before, 'ordinal', p, 'is_new_key', false)"
    upsert = "named_struct('action', 'U', 'vals', c.after, 'ordinal', p, 'is_new_key', "
    return (
        f"flatten(transform(`_changes`, (c, p) -> CASE WHEN `_operation` = 'delete' THEN array({delete}) "
        f"WHEN c.before IS NOT NULL AND ({changed}) THEN array({delete}, {upsert}true)) "
        f"ELSE array({upsert}`_operation` = 'insert')) END))"
    )


def _of_key(events: ChangeEvents, name: str, values: str) -> str:
    """SQL of a value of the key that differs if the key does."""
    value, kind = f"{values}[{literal(name)}]", events.columns.get(name, "string")
    if events.format == "capture" and kind_of(kind) == "decimal":  # 1.0 and 1.00 are one key
        return decoded(kind, EncodedValue(value, value), events, name)
    return f"TRY_CAST({value} AS STRING)"


def _sequence(events: ChangeEvents, delivery: Delivery) -> str:
    if events.format == "maxwell":
        fix = "let Maxwell write it (output_binlog_position=true, output_xoffset=true)"
    elif events.format == "canal":
        fix = "let Canal write the time of the statement (es)"
    else:
        fix = "read PostgreSQL, MySQL or MariaDB"
    missing = _raising(
        delivery,
        "an event has no position that orders it",
        f"left({quote(TEXT)}, {_SHOWN})",
        f"with order: {events.order}, a late event must lose against a newer one",
        f"{fix}; or, if the events of a key are in order in a Kafka topic, set order: delivery in the "
        "source's meta.arctic",
    )
    return (
        f"CASE WHEN `_place` IS NULL THEN {missing} "
        f"ELSE concat(`_place`, '.', lpad(CAST(`_row`.ordinal AS STRING), 6, '0')) END"
    )


def _read(events: ChangeEvents, name: str) -> str:
    """SQL of a value in the message; of a capture, whose values are texts, true if it has a value or NULL."""
    if events.format == "capture":
        return f"nullif(map_contains_key({_VALUES}, {literal(name)}), false)"
    return f"{_VALUES}[{literal(name)}]"


def _value(events: ChangeEvents, name: str, kind: str) -> str:
    """SQL of a column. A delete has only the key."""
    value, text = quote(_VALUE.format(name)), quote(_TEXT.format(name))
    encoded = EncodedValue(value, text)
    if events.format == "capture":
        # The session that reads the log has the zone UTC.
        own = f"regexp_replace({text}, '[+]00( BC)?$', '$1')" if name in events.in_utc else text
        encoded = EncodedValue(f"try_parse_json({text})", own)
    if events.format == "debezium":
        field = f"`_arctic_fields`[{literal(name)}]"
        field = f"{field}.items" if kind_of(kind) == "array" else field
        scale = f"TRY_CAST({field}.parameters['scale'] AS INT)"
        schema = SchemaInMessage("`_arctic_fields` IS NOT NULL", f"{field}.name", scale)
        encoded = EncodedValue(value, text, schema)
    made = decoded("float" if name in events.single else kind, encoded, events, name)
    if name in events.single:
        made = f"CAST({made} AS DOUBLE)"
    if name in events.key:
        return f"CASE WHEN {text} IS NOT NULL THEN {made} END"
    sent = f"{_ACTION} = 'U' AND {text} IS NOT NULL"
    if events.has_unsent:
        sent += f" AND NOT coalesce(array_contains({quote(_NOT_SENT)}, {literal(name)}), false)"
    return f"CASE WHEN {sent} THEN {made} END"


def _fitting(events: ChangeEvents, delivery: Delivery, rows: str) -> str:
    """SQL of the rows; an error for one that lacks a column, or has a value that does not fit its column.

    What is wrong is a column, so that it is written only once: Spark takes long to analyse it.
    """
    found = ",\n    ".join(_wrong(events, name, kind) for name, kind in events.columns.items())
    fixes = ["correct the source's columns"]
    if events.format == "capture":
        fixes = ["load the table again with --full-refresh; or " + fixes[0]]
        fixes.append("a value that the type lacks, such as the time infinity, can be read as text: string")
    if events.format == "debezium":
        fixes.append(
            "in messages without a schema, a decimal needs decimal_handling and a timestamp_ntz needs units"
        )
    if events.has_unsent:
        fixes.append(
            "a value that was not sent (TOAST) keeps the stored one with unavailable: keep, unless the key "
            "has changed; after ALTER TABLE .. REPLICA IDENTITY FULL, it is sent"
        )
    # Of a capture, the database knows the types.
    is_declared = events.format != "capture"
    if is_declared and any(has_kind(one, "timestamp", "timestamp_ntz") for one in events.columns.values()):
        fixes.append("a value without a time zone is a timestamp_ntz, one with a time zone is a timestamp")
    fixes.append("a column that is newer than the event belongs in optional: [..], and is NULL then")
    wrong = _raising(
        delivery,
        "an event does not fit the columns",
        quote(_WRONG),
        "a value is never stored as another one",
        "; ".join(fixes),
        at="`_arctic_at`",
    )
    checked = f"SELECT *, concat_ws('; ',\n    {found}) AS {quote(_WRONG)}\nFROM (\n{rows}\n)"
    return f"SELECT *\nFROM (\n{checked}\n)\nWHERE CASE WHEN {quote(_WRONG)} = '' THEN true ELSE {wrong} END"


def _wrong(events: ChangeEvents, name: str, kind: str) -> str:
    """SQL of what is wrong with a column of a row; NULL if it fits."""
    value, text = quote(_VALUE.format(name)), quote(_TEXT.format(name))
    branches = [] if name in events.key else [f"WHEN {_ACTION} = 'D' THEN NULL"]
    unfit = f"concat({literal(f'{name} is not a {kind}: ')}, left({text}, {_SHOWN}))"
    if events.has_unsent and name not in events.key:
        not_sent = f"array_contains({quote(_NOT_SENT)}, {literal(name)})"
        if events.unavailable == "keep":
            # An insert lacks no value. Debezium writes a change of the key as a delete and an insert.
            branches.append(f"WHEN {not_sent} AND {_NEW_KEY} THEN {literal(_MOVED.format(name))}")
        kept = "NULL" if events.unavailable == "keep" else literal(f"{name} was not sent")
        branches.append(f"WHEN {not_sent} THEN {kept}")
    if name not in events.optional:
        missing = literal(f"{name} is missing")
        branches.append(f"WHEN {value} IS NULL THEN {missing}")
    is_null = f"{text} IS NULL" if events.format == "capture" else f"coalesce(is_variant_null({value}), true)"
    branches.append(f"WHEN {quote(name)} IS NULL AND NOT {is_null} THEN {unfit}")
    return f"CASE {' '.join(branches)} END"


def _unavailable_forms(text: str) -> list[str]:
    """What stands for a value that was not sent.

    The forms are those of Debezium's connector for PostgreSQL: of a string, of bytes, and of arrays of
    strings, bytes, numbers, UUIDs and decimals, a map, and shapes of PostGIS.
    """
    raw = text.encode()
    coded = base64.b64encode(raw).decode()
    made_uuid = str(uuid.UUID(bytes=hashlib.md5(raw, usedforsecurity=False).digest(), version=3))
    digits = [base64.b64encode(bytes([byte])).decode() for byte in raw]
    scaled = [{"scale": 0, "value": byte} for byte in digits]
    shapes = [{"srid": 4326, "wkb": base64.b64encode(bytes.fromhex(one)).decode()} for one in _NO_SHAPES]
    nested = ([text], [coded], list(raw), [made_uuid], {text: text}, digits, scaled, *shapes)
    return [text, coded, *(json.dumps(one, separators=(",", ":")) for one in nested)]


def _not_sent(events: ChangeEvents) -> str:
    """SQL of the names of the columns whose values were not sent; NULL if there are none."""
    if events.format == "capture":
        own = f"array({', '.join(map(literal, events.columns))})"
        return (
            f"CASE WHEN {_ACTION} = 'U' THEN nullif(array_intersect(`_arctic_fields`, {own}), "
            "CAST(array() AS ARRAY<STRING>)) END"
        )
    forms = ", ".join(map(literal, _unavailable_forms(events.unavailable_value)))
    names = ", ".join(
        f"IF({quote(_TEXT.format(name))} IN ({forms}), {literal(name)}, NULL)"
        for name in events.columns
        if name not in events.key
    )
    if not events.has_unsent or not names:
        return "CAST(NULL AS ARRAY<STRING>)"
    return (
        f"CASE WHEN {_ACTION} = 'U' THEN nullif(array_compact(array({names})), "
        "CAST(array() AS ARRAY<STRING>)) END"
    )


def _raising(delivery: Delivery, what: str, value: str, why: str, fix: str, at: str = "") -> str:
    # A vertical bar separates the parts of the error.
    shown = f"replace(concat({at or delivery.at}, ': ', coalesce({value}, 'NULL')), '|', '/')"
    clean = [
        part.replace("|", "/") for part in (f"{what} of the source {delivery.name},", delivery.name, why)
    ]
    return raise_error_sql("AR-311", f"{clean[0]} ", shown, clean[1], clean[2], f"{fix}. Nothing was written")


__all__ = ["Delivery", "rows_of_events", "summary_of"]
