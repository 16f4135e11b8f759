"""Reads and checks the settings of a source of change events: rows of a database's table, as they changed."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from dbt_arctic.data_type import Array, UnreadableType, decimal_digits, has_kind, parse_type, type_text
from dbt_arctic.errors import ConfigError
from dbt_arctic.sources.common_settings import columns_of, one_of, texts
from dbt_arctic.sources.source_planner import DELETES

ChangeFormat = Literal["debezium", "maxwell", "canal"]
EventFormat = Literal[ChangeFormat, "capture"]
"""``capture`` is the form of a capture table."""
Order = Literal["position", "time", "delivery"]
Unavailable = Literal["fail", "keep"]
Decimals = Literal["precise", "string", "double"]
Binary = Literal["base64", "hex", "latin1"]
Unit = Literal["millis", "micros", "nanos"]

CHANGE_FORMATS: tuple[str, ...] = get_args(ChangeFormat)
CHANGE_SETTINGS = ("key", "table", "order", "optional")
"""Settings of each format."""
DEBEZIUM_SETTINGS = ("unavailable", "unavailable_value", "decimal_handling", "binary_handling", "units")
"""Settings of Debezium's format alone."""

_SHARED = ("maxwell", "canal")
"""Formats whose tools write the events of all tables to one topic by default."""

SEQUENCE, UNAVAILABLE = "_source_sequence", "_unavailable"
ADDED: Mapping[str, str] = {
    SEQUENCE: "STRING",
    "_source_operation": "STRING",
    "_source_changed_at": "TIMESTAMP",
    UNAVAILABLE: "ARRAY<STRING>",
    "_action": "STRING",
}
"""What each row of change events has in addition to the columns of the table, and the types.

``UNAVAILABLE`` is a column of sources with ``unavailable: keep`` only.
"""
_WHY_UNAVAILABLE = (
    "its source has unavailable: keep; the column names the values that an event does not have, which would "
    "be stored as NULL"
)

_ORDERS: Mapping[str, tuple[Order, ...]] = {
    "debezium": ("position", "delivery"),
    "maxwell": ("position", "delivery"),
    # Canal's messages have no position in the binlog.
    "canal": ("time", "delivery"),
}
_PLACEHOLDER = "__debezium_unavailable_value"
_SIMPLE = ("string", "binary", "boolean", "date", "timestamp", "timestamp_ntz", "float", "double")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_ALIASES = {
    **{"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float"},
    **{"decimal": "decimal(10,0)", "numeric": "decimal(10,0)", "dec": "decimal(10,0)"},
    "timestamp_ltz": "timestamp",
}


class EarlierColumns(NamedTuple):
    """Columns as captured changes name them from before the table's columns changed.

    :param shape: of these changes.
    :param names: what a column is called now, by its name in these changes.
    """

    shape: str
    names: Mapping[str, str]


@dataclass(frozen=True)
class ChangeEvents:
    """How the messages of a source say what has changed in a table.

    :param columns: Spark types by column name, as ``column_type`` writes them.
    :param key: the columns of the table's primary key.
    :param table: the only table whose events are read, ``database.table`` or ``table``; empty for all.
    :param order: what orders the changes of a key: the position in the database's log, the time at which the
        statement began, or the order in which the messages were delivered.
    :param optional: columns that events may lack, because they are newer than the events. They are NULL then.
    :param unavailable: what to do about a value that the database did not send because it is unchanged.
    :param unavailable_value: stands for such a value in the messages.
    :param decimals: how messages without a schema encode decimals; ``None`` if it is not known.
    :param units: the unit of numbers that are timestamps, by column, in messages without a schema.
    :param sends_all: whether each message has all values.
    :param in_utc: columns with points in time that are read as text, in UTC and without a zone.
    :param single: columns of numbers with single precision that are read as DOUBLE. Their text has the digits
        of single precision.
    :param earlier: how changes from before the table's columns changed are read; ``None`` if all have the
        columns of now.
    """

    format: EventFormat
    columns: Mapping[str, str]
    key: tuple[str, ...]
    table: str = ""
    order: Order = "position"
    optional: tuple[str, ...] = ()
    unavailable: Unavailable = "fail"
    unavailable_value: str = _PLACEHOLDER
    decimals: Decimals | None = None
    binary: Binary = "base64"
    units: Mapping[str, Unit] = field(default_factory=dict)
    sends_all: bool = False
    in_utc: tuple[str, ...] = ()
    single: tuple[str, ...] = ()
    earlier: EarlierColumns | None = None

    @property
    def has_unsent(self) -> bool:
        """Whether events may have ``unavailable_value`` in place of a value that did not change."""
        return self.format in ("debezium", "capture") and not self.sends_all

    @property
    def added(self) -> dict[str, str]:
        """The columns that each row has in addition to those of the table, and their types."""
        return {
            name: kind for name, kind in ADDED.items() if name != UNAVAILABLE or self.unavailable == "keep"
        }


def must_select(events: ChangeEvents | None) -> dict[str, str]:
    """The columns that a keyed model must return, because it would store wrong values without them."""
    if events is None:
        return {}
    kept = {UNAVAILABLE: _WHY_UNAVAILABLE} if events.unavailable == "keep" else {}
    return {**DELETES, **kept}


def known_settings(form: Any) -> tuple[str, ...]:
    """The settings that a format of change events has in addition to those of the kind of source."""
    return (*CHANGE_SETTINGS, *(DEBEZIUM_SETTINGS if form == "debezium" else ()))


def parse_changes(
    name: str,
    form: Any,
    settings: Mapping[str, Any],
    columns: Mapping[str, str],
    added: Collection[str],
    where: str,
) -> ChangeEvents:
    """Read the settings of a source of change events.

    :param name: ``<source>.<table>``.
    :param form: the format, one of ``CHANGE_FORMATS``.
    :param columns: types by name from the source's own ``columns``, used if the settings have none.
    :param added: what the kind of source adds to each row.
    :param where: the file that declares the source.
    :raises ConfigError: a setting is missing or wrong, or a type cannot be read.
    """
    taken = {*(one.lower() for one in added), *ADDED}
    declared = columns_of(settings.get("columns") or columns, taken, name, where)
    if not declared:
        raise ConfigError(
            f"the source {name} declares no columns",
            where=where,
            why="the columns say into which types the values of the events are decoded",
            fix="add columns: {name: type} to its meta.arctic, with the columns of the table",
        )
    types = {column: _checked_type(column, kind, name, where) for column, kind in declared.items()}
    key = listed_columns(settings.get("key"), "key", types, name, where)
    if not key:
        raise ConfigError(
            f"the source {name} has no key",
            where=where,
            why="an event changes the row of a key, and a change of the key deletes the row of the old one",
            fix="add key: the columns of the table's primary key",
        )
    optional = listed_columns(settings.get("optional"), "optional", types, name, where)
    table = settings.get("table") or ""
    if not table and form in _SHARED:
        raise ConfigError(
            f"the source {name} has no table",
            where=where,
            why=f"{form} writes the events of many tables together, and those of another table would change "
            "the rows of this one",
            fix="add table: database.table to its meta.arctic",
        )
    return ChangeEvents(
        form,
        types,
        key,
        str(table),
        one_of(_ORDERS[form], "order", settings.get("order", _ORDERS[form][0]), name, where),
        optional,
        one_of(get_args(Unavailable), "unavailable", settings.get("unavailable", "fail"), name, where),
        str(settings.get("unavailable_value") or _PLACEHOLDER),
        None
        if settings.get("decimal_handling") in (None, "")
        else one_of(get_args(Decimals), "decimal_handling", settings["decimal_handling"], name, where),
        one_of(("base64", "hex"), "binary_handling", settings.get("binary_handling", "base64"), name, where)
        if form != "canal"
        else "latin1",
        _units(settings.get("units"), types, name, where),
    )


def column_type(kind: str) -> str:
    """A type as this package writes it; empty if values of change events cannot be read as this type.

    >>> column_type("Decimal(10, 2)"), column_type("array<INTEGER>"), column_type("map<string,int>")
    ('decimal(10,2)', 'array<int>', '')
    """
    plain = re.sub(r"\s+", "", kind.lower())
    plain = _ALIASES.get(plain, plain)
    if plain in _SIMPLE or plain in _INTEGERS:
        return plain
    if digits := decimal_digits(plain):
        return f"decimal({digits.precision},{digits.scale})"
    try:
        type_ = parse_type(plain)
    except UnreadableType:
        return ""
    if not isinstance(type_, Array) or isinstance(type_.element, Array):
        return ""
    item = column_type(type_text(type_.element))
    return f"array<{item}>" if item else ""


def _checked_type(column: str, kind: str, name: str, where: str) -> str:
    if found := column_type(kind):
        return found
    raise ConfigError(
        f"the source {name} has the column {column} with the type {kind}",
        where=where,
        why="values of change events are read as numbers, strings, booleans, dates, timestamps, binary, and "
        "arrays of these",
        fix=f"declare {column}: string, which gives the JSON text of a value, and parse it in the model; "
        "for a time of the day as well",
    )


def listed_columns(
    given: Any, setting: str, types: Mapping[str, str], name: str, where: str
) -> tuple[str, ...]:
    """The columns that a setting names.

    :param types: by name of the source's columns.
    :raises ConfigError: one of them is not a column of the source.
    """
    columns = (given,) if isinstance(given, str) else tuple(map(str, given or ()))
    for column in columns:
        if column not in types:
            raise ConfigError(
                f"{setting} of the source {name} names {column}, which is not one of its columns",
                where=where,
                why=f"its columns are: {', '.join(types)}",
                fix=f"add {column} to the columns, with its type, or correct {setting}",
            )
    return columns


def _units(given: Any, types: Mapping[str, str], name: str, where: str) -> dict[str, Unit]:
    if given is None:
        return {}
    times = [column for column, kind in types.items() if has_kind(kind, "timestamp_ntz")]
    by_column = dict.fromkeys(times, given) if isinstance(given, str) else texts(given, name, "units", where)
    listed_columns(list(by_column), "units", types, name, where)
    return {
        column: one_of(get_args(Unit), f"units for {column}", unit, name, where)
        for column, unit in by_column.items()
    }


__all__ = [
    "ADDED",
    "CHANGE_FORMATS",
    "SEQUENCE",
    "UNAVAILABLE",
    "Binary",
    "ChangeEvents",
    "ChangeFormat",
    "Decimals",
    "EarlierColumns",
    "EventFormat",
    "Order",
    "Unavailable",
    "Unit",
    "column_type",
    "known_settings",
    "listed_columns",
    "must_select",
    "parse_changes",
]
