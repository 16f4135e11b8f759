"""Parses the key of one row: ``column=value`` pairs, or a JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dbt_arctic.data_type import kind_of
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.erasure import KeyText, any_of, check_literals
from dbt_arctic.keyed.exact_text import why_inexact
from dbt_arctic.keyed.table import KeyedTable

_EXAMPLES = {
    "date": "2026-01-31",
    "timestamp": "2026-01-31 12:00:00Z",
    "timestamp_ntz": "2026-01-31 12:00:00",
    "boolean": "true",
    "binary": "0AFF (hexadecimal digits)",
    "string": "text",
}


class ColumnValue(NamedTuple):
    """A value of a key column as a user has written it."""

    column: str
    text: str


def parse_key(table: KeyedTable, texts: Sequence[str]) -> dict[str, str]:
    """The values of a key as strings, by the name of their column, in the order of the key.

    :raises ConfigError: a column is missing, is not part of the key or is given twice, or a value cannot be
        part of a key.
    """
    pairs = _from_json(table, texts[0]) if len(texts) == 1 and _is_json(texts[0]) else _pairs(table, texts)
    names = {column.lower(): column for column in table.key}
    found: dict[str, str] = {}
    for column, text in pairs:
        name = names.get(column.lower())
        if name is None:
            raise wrong_key(table, f"{column} is not part of the key of {table.name}")
        if name in found:
            raise wrong_key(table, f"{name} is given twice")
        found[name] = text
    missing = [column for column in table.key if column not in found]
    if missing:
        raise wrong_key(table, f"the key of {table.name} also contains {', '.join(missing)}")
    return {column: found[column] for column in table.key}


def check_key(
    query: Callable[[str], list[tuple[Any, ...]]], generations: Sequence[KeyedTable], key: Mapping[str, str]
) -> list[KeyedTable]:
    """Check that the values have the types of the key, in one statement without a job.

    :param generations: the current generation of the table, and earlier ones with the same key columns.
    :returns: the generations in which a row can have this key.
    :raises ConfigError: a value does not have the type of its column.
    """
    texts = [KeyText(column, one.types[column], text) for one in generations for column, text in key.items()]
    (row,) = query(check_literals(texts))
    reasons = [why_inexact(text.text, text.type) for text in texts]
    are_values = [bool(is_value) and not why for is_value, why in zip(row, reasons, strict=True)]
    for text, why, is_value in list(zip(texts, reasons, are_values, strict=True))[: len(key)]:
        if not is_value:
            what = f"{text.text!r} is not a value of {text.column}, which is {text.type}"
            raise wrong_key(generations[0], f"{what}: {why}" if why else what)
    size = len(key)
    return [one for at, one in enumerate(generations) if all(are_values[at * size : (at + 1) * size])]


def condition_of(table: KeyedTable, key: Mapping[str, str]) -> str:
    """SQL condition that a row has this key."""
    return any_of(table.key, table.types, [[key[column] for column in table.key]])


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def _pairs(table: KeyedTable, texts: Sequence[str]) -> list[ColumnValue]:
    found = []
    for text in texts:
        column, equals, value = text.partition("=")
        if not equals:
            raise wrong_key(table, f"{text!r} is neither column=value nor a JSON object")
        found.append(ColumnValue(column.strip(), value))
    return found


def _from_json(table: KeyedTable, text: str) -> list[ColumnValue]:
    try:
        # Numbers keep their digits.
        pairs = json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=list)
    except ValueError as error:
        raise wrong_key(table, f"the key is not a JSON object: {error}") from error
    found = []
    for column, value in pairs:
        if value is None:
            raise wrong_key(table, f"{column} is null, but no row of {table.name} has NULL in its key")
        if not isinstance(value, str | bool):
            raise wrong_key(table, f"the value of {column} is neither a string nor a number nor a boolean")
        found.append(ColumnValue(column, str(value).lower() if isinstance(value, bool) else value))
    return found


def wrong_key(table: KeyedTable, what: str) -> ConfigError:
    """The error for values that are no key of a table."""
    examples = {column: _example(table.types[column]) for column in table.key}
    written = " ".join(f"'{column}={value}'" for column, value in examples.items())
    as_json = json.dumps({column: value.partition(" (")[0] for column, value in examples.items()})
    return ConfigError(
        what,
        where=table.name.dotted,
        why="the key is " + ", ".join(f"{column} ({table.types[column]})" for column in table.key),
        fix=f"write each value in the form that Spark casts from a string, for example {written}; "
        f"or as JSON: '{as_json}'",
    )


def _example(type_: str) -> str:
    kind = kind_of(type_)
    return "1.5" if kind in ("decimal", "float", "double") else _EXAMPLES.get(kind, "42")
