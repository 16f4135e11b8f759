"""The keys that a reader asks for, as a table with the key columns and their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from numbers import Integral, Real
from typing import Any, NamedTuple

import pyarrow

from dbt_arctic.errors import ConfigError, NullKey
from dbt_arctic.keyed.exact_text import why_inexact
from dbt_arctic.keyed.table import KeyedTable
from dbt_arctic.maintenance.key_values import parse_key, wrong_key

_WHERE = "keys"


def wanted_keys(keys: Any, key: Sequence[str], types: pyarrow.Schema, table: str) -> pyarrow.Table:
    """Convert the keys that were given. A conversion that would change a value is an error.

    :param keys: values of the key column; for a key of several columns tuples in its order; dictionaries; or
        a DataFrame or Arrow table with the key columns.
    :param types: the types of the key columns of the table, and others.
    :param table: the name of the table, for errors.
    :raises ConfigError: a column is missing, or a value does not have the type of the key.
    :raises NullKey: a value is NULL.
    """
    given = _columns(keys, key, table)
    columns = {name: _converted(given[name], types.field(name).type, name, table) for name in key}
    return pyarrow.table(columns)


class KeyTexts(NamedTuple):
    """One key as a user types it: ``column=value`` for each column, or one JSON object."""

    texts: Sequence[str]


def typed_key(key: KeyTexts, table: KeyedTable, types: pyarrow.Schema) -> pyarrow.Table:
    """Convert a key that was typed. A time without a zone is in UTC.

    :param types: as for ``wanted_keys``.
    :raises ConfigError: a column is missing, or a text is not a value of its type.
    """
    columns = {}
    for name, text in parse_key(table, key.texts).items():
        why = why_inexact(text, table.types[name])
        try:
            columns[name] = _from_text(text, types.field(name).type)
        except (pyarrow.ArrowInvalid, ValueError) as error:
            why = why or str(error)
        if why:
            what = f"{text!r} is not a value of {name}, which is {table.types[name]}"
            raise wrong_key(table, f"{what}: {why}")
    return pyarrow.table(columns)


def _from_text(text: str, type_: pyarrow.DataType) -> pyarrow.Array:
    if pyarrow.types.is_large_binary(type_):
        return pyarrow.array([bytes.fromhex(text)], type_)
    values = pyarrow.array([text])
    if pyarrow.types.is_timestamp(type_) and type_.tz is not None:
        at = datetime.fromisoformat(text)
        return pyarrow.array([at.replace(tzinfo=at.tzinfo or timezone.utc)], type_)
    return values.cast(type_)


def _columns(keys: Any, key: Sequence[str], table: str) -> Mapping[str, Any]:
    if hasattr(keys, "__arrow_c_stream__"):
        rows = pyarrow.table(keys)
        named = {name.lower(): rows.column(name).combine_chunks() for name in rows.column_names}
        return _of_key(named, key, table)
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        keys = [keys]
    listed = list(keys)
    if listed and all(isinstance(one, Mapping) for one in listed):
        folded = [{str(name).lower(): value for name, value in one.items()} for one in listed]
        return _of_key({name: [one.get(name) for one in folded] for name in folded[0]}, key, table)
    rows = [one if isinstance(one, tuple | list) else (one,) for one in listed]
    wrong = next((one for one in rows if len(one) != len(key)), None)
    if wrong is not None:
        raise ConfigError(
            f"{wrong!r} is not a key of {table}",
            where=_WHERE,
            why=f"its key has the columns {', '.join(key)}",
            fix="write each key as a tuple of these values, in this order",
        )
    return {name: [row[place] for row in rows] for place, name in enumerate(key)}


def _of_key(named: Mapping[str, Any], key: Sequence[str], table: str) -> Mapping[str, Any]:
    missing = next((name for name in key if name.lower() not in named), None)
    if missing is not None:
        raise ConfigError(
            f"the keys lack the column {missing}",
            where=_WHERE,
            why=f"the key of {table} has the columns {', '.join(key)}",
            fix="add the column",
        )
    return {name: named[name.lower()] for name in key}


def _converted(values: Any, type_: pyarrow.DataType, name: str, table: str) -> pyarrow.Array:
    try:
        if isinstance(values, pyarrow.Array):
            if _is_text(values.type) != _is_text(type_):
                raise pyarrow.ArrowInvalid(f"its type is {values.type}")
            found = values.cast(type_)
        else:
            # Arrow would cut off the digits.
            if not pyarrow.types.is_floating(type_) and any(map(_is_float, values)):
                raise pyarrow.ArrowInvalid("it is a floating-point number")
            found = pyarrow.array(values, type_)
    except (
        pyarrow.ArrowInvalid,
        pyarrow.ArrowTypeError,
        pyarrow.ArrowNotImplementedError,
        OverflowError,
    ) as error:
        raise ConfigError(
            f"a value of {name} is not of the type of the key",
            where=_WHERE,
            why=f"{table} has {name} of the type {type_}: {error}",
            fix=f"give values that are exactly of the type {type_}",
        ) from error
    if found.null_count:
        raise NullKey(
            f"a value of {name} is NULL",
            where=_WHERE,
            why=f"{name} is a part of the key of {table}, which is never NULL",
            fix="leave out keys with NULL",
        )
    return found


def _is_float(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, Integral)


def _is_text(type_: pyarrow.DataType) -> bool:
    return bool(pyarrow.types.is_string(type_) or pyarrow.types.is_large_string(type_))
