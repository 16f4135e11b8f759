"""The keys and values that a reader asks for, as Arrow with the types of the columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timezone
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute

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
        try:
            columns[name] = typed_value(text, table.types[name], types.field(name).type)
        except ValueError as error:
            what = f"{text!r} is not a value of {name}, which is {table.types[name]}"
            raise wrong_key(table, f"{what}: {error}") from error
    return pyarrow.table(columns)


def typed_value(text: str, spark_type: str, type_: pyarrow.DataType) -> pyarrow.Array:
    """One value that was typed. A time without a zone is in UTC.

    :raises ValueError: with the reason why it is not a value of the type.
    """
    if why := why_inexact(text, spark_type):
        raise ValueError(why)
    try:
        return _from_text(text, type_)
    except pyarrow.ArrowNotImplementedError as error:
        raise ValueError(str(error)) from error


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
        rows = _as_table(keys, key)
        names = [name.lower() for name in rows.column_names]
        named = dict(zip(names, map(_as_one, rows.columns), strict=True))
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


def _as_table(keys: Any, key: Sequence[str]) -> pyarrow.Table:
    try:
        return pyarrow.table(keys)
    except pyarrow.ArrowInvalid:  # one column, as a Series
        return pyarrow.table([pyarrow.chunked_array(keys)], [key[0]])


def _as_one(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return (
        pyarrow.concat_arrays(column.unify_dictionaries().chunks)
        if column.num_chunks
        else pyarrow.array([], column.type)
    )


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


def wanted_values(values: Any, name: str, type_: pyarrow.DataType, table: str) -> pyarrow.Array:
    """Convert the values of a column that were given. A conversion that would change one is an error.

    :param values: one value, or several; ``None`` is NULL.
    :param name: of the column.
    :raises ConfigError: a value does not have the type of the column.
    """
    if isinstance(values, pyarrow.ChunkedArray):
        values = _as_one(values)
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        values = [values]
    given = values if isinstance(values, pyarrow.Array) else list(values)
    return _exactly(given, type_, name, table, "where")


def _converted(values: Any, type_: pyarrow.DataType, name: str, table: str) -> pyarrow.Array:
    found = _exactly(values, type_, name, table, _WHERE)
    if found.null_count:
        raise NullKey(
            f"a value of {name} is NULL",
            where=_WHERE,
            why=f"{name} is a part of the key of {table}, which is never NULL",
            fix="leave out keys with NULL",
        )
    return found


def _exactly(values: Any, type_: pyarrow.DataType, name: str, table: str, where: str) -> pyarrow.Array:
    try:
        if isinstance(values, pyarrow.Array):
            return _from_arrow(values, type_)
        return _from_python(values, type_)
    except (ValueError, TypeError, ArithmeticError, pyarrow.ArrowNotImplementedError) as error:
        raise ConfigError(
            f"a value of {name} is not of the type of the column",
            where=where,
            why=f"{table} has {name} of the type {type_}: {error}",
            fix=f"give values that are exactly of the type {type_}",
        ) from error


_USUAL = {"integer": int, "text": str, "binary": bytes, "decimal": Decimal, "date": date}
"""The types of Python whose values Arrow converts exactly, or refuses."""


def _from_python(values: Sequence[Any], type_: pyarrow.DataType) -> pyarrow.Array:
    usual = _USUAL.get(_kind(type_))
    for value in values:
        # Arrow would convert these, and lose digits, times or zones.
        if type(value) is not usual and (why := _why_changed(value, type_)) is not None:
            raise ValueError(f"{value!r} {why}")
    # NaN is a value of a floating-point column, and otherwise what pandas has for NULL.
    return pyarrow.array(values, type_, from_pandas=not pyarrow.types.is_floating(type_))


def _why_changed(value: Any, type_: pyarrow.DataType) -> str | None:
    """Why Arrow's conversion would change a value; ``None`` if it would not, or would fail."""
    if value is None or value != value:
        return None
    kind = _kind(type_)
    match value:
        case Integral() if kind in ("date", "local time", "instant"):
            return "is a number"
        case Decimal() if kind == "integer" and value != value.to_integral_value():
            return "is not a whole number"
        case Real() if not isinstance(value, Integral) and kind != "float":
            return "is a floating-point number"
        case str() if kind == "binary":
            return "is text"
        case bytes() if kind == "text":
            return "is binary"
        case datetime() if kind == "date" and (value.tzinfo is not None or value.time() != time()):
            return "has a time"
        case datetime() if kind == "local time" and value.tzinfo is not None:
            return "has a time zone"
        case datetime() if getattr(value, "nanosecond", 0):  # of pandas
            return "has nanoseconds"
    return None


_EXACT = {
    ("integer", "decimal"),
    ("integer", "float"),
    # pandas has floating-point numbers for integers with NULL, and midnight for a date.
    ("float", "integer"),
    ("local time", "date"),
    ("local time", "instant"),
}
"""Conversions to another kind that are exact, or whose values can be compared."""


def _from_arrow(values: pyarrow.Array, type_: pyarrow.DataType) -> pyarrow.Array:
    if pyarrow.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if not len(values) or pyarrow.types.is_null(values.type):
        return pyarrow.nulls(len(values), type_)
    kinds = _kind(values.type), _kind(type_)
    if kinds[0] != kinds[1] and kinds not in _EXACT:
        raise ValueError(f"its type is {values.type}")
    if kinds == ("integer", "decimal"):
        values = values.cast(pyarrow.decimal128(38, 0))  # Arrow compares precisions, and not the values
    found = values.cast(type_)
    if kinds[1] in ("integer", "decimal", "date", "local time", "instant"):
        is_same = pyarrow.compute.equal(found.cast(values.type), values)
        if not pyarrow.compute.all(is_same).as_py():
            raise ValueError(f"its type is {values.type}, and a value would change")
    return found


def _kind(type_: pyarrow.DataType) -> str:
    """The types whose values can be the same."""
    is_ = pyarrow.types
    if is_.is_timestamp(type_):
        return "local time" if type_.tz is None else "instant"
    kinds = {
        "text": (is_.is_string, is_.is_large_string, is_.is_string_view),
        "binary": (is_.is_binary, is_.is_large_binary, is_.is_binary_view, is_.is_fixed_size_binary),
        "integer": (is_.is_integer,),
        "float": (is_.is_floating,),
        "decimal": (is_.is_decimal,),
        "date": (is_.is_date,),
    }
    return next((kind for kind, tests in kinds.items() if any(one(type_) for one in tests)), str(type_))
