"""Columns of a table of a database in Spark: exact, or an error for a value that does not fit. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from dbt_arctic.data_type import Array, decimal_digits, parse_type, type_text
from dbt_arctic.databases.api import Column, Family, SelectedColumn, Table
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.checks import raise_error_sql
from dbt_arctic.keyed.names import literal
from dbt_arctic.sources.database_settings import ADDED, DatabaseSource

_INTEGERS: Mapping[str, int] = {"INT": 10, "BIGINT": 19}
"""The digits that the values of a type may have."""
_SYNONYMS = {"INTEGER": "INT", "LONG": "BIGINT", "REAL": "FLOAT"}
_DATE = r"^[0-9]{4,6}-[0-9]{2}-[0-9]{2}"
_TIME = _DATE + r" [0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?"
_ZONE = r"[+-][0-9]{2}(:[0-9]{2}){0,2}"
_DATE_LENGTH = 12
"""Of a date whose year has six digits."""
_DIGITS_OF_MONEY = "numeric(19,2)"
_SHOWN = 200
_ITEM = "item"
NATIVE: tuple[Family, ...] = ("boolean", "integer", "float", "binary")
"""The families whose values the JDBC reader does not return as text, unless they are read as text."""


class ReadColumn(NamedTuple):
    """A column as it is read, and as a pull returns it.

    :param type: of Spark.
    """

    selected: SelectedColumn
    type: str

    @property
    def column(self) -> Column:
        """The column of the database."""
        return self.selected.column


class Conversion(NamedTuple):
    """How a value is converted.

    :param value: SQL of the value. For one that does not fit, it is any value, and no error.
    :param bad: SQL condition on a value that is not NULL: it does not fit. Never NULL, and empty if each
        value fits.
    """

    value: str
    bad: str = ""


def read_columns(source: DatabaseSource, table: Table, where: str) -> list[ReadColumn]:
    """The columns of a source, in the order of the table.

    :raises ConfigError: a declared column does not exist, a type has no equivalent in Spark, or a declared
        type cannot hold the values.
    """
    declared: dict[str, str] = {}
    for name, kind in source.columns.items():
        column = table.column(name)
        if column is None:
            raise ConfigError(
                f"the table {source.table} has no column {name}",
                where=where,
                why=f"it is one of the columns of the source {source.name}",
                fix=f"remove it, or use one of {', '.join(one.name for one in table.columns)}",
            )
        declared[column.name] = kind
    named = [column for name in declared if (column := table.column(name)) is not None]
    chosen = named or list(table.columns)
    for column in chosen:
        if column.name.lower() in ADDED:
            raise ConfigError(
                f"the table {source.table} has a column {column.name}",
                where=where,
                why="each row of the source gets a column of that name",
                fix="list the other columns in columns of the source's meta.arctic",
            )
    same = {column.name.lower(): column.name for column in chosen}
    for column in chosen:
        if same[column.name.lower()] != column.name:
            raise ConfigError(
                f"the table {source.table} has the columns {column.name} and {same[column.name.lower()]}",
                where=where,
                why="Spark does not distinguish names by case",
                fix="list the columns to read in columns of the source's meta.arctic",
            )
    return [_chosen(source, column, declared.get(column.name, ""), where) for column in chosen]


def value_of(source: DatabaseSource, column: ReadColumn, read: str) -> str:
    """SQL of a value, or of an error for one that does not fit its type.

    :param read: SQL of what the JDBC reader returns.
    """
    canonical = _of_canonical_text(column, read)
    if canonical is not None:
        return f"coalesce({canonical}, CASE WHEN {read} IS NOT NULL THEN {_error(source, column, read)} END)"
    element = _element_of(column)
    if element is None:
        return _or_error(source, column, read, converted(column, read))
    # The error has the element, and not the whole array.
    value = _or_error(source, element, _ITEM, _of_text(element.column.family, element.type, _ITEM))
    items = Conversion(f"transform({_items(read)}, {_ITEM} -> {value})", _no_items(read))
    return _or_error(source, column, read, items)


def converted(column: ReadColumn, read: str) -> Conversion:
    """SQL of a value, without errors.

    :param read: SQL of what the JDBC reader returns.
    """
    family, kind = column.column.family, column.type
    if column.selected.as_text and kind == "STRING":
        return Conversion(read)
    if family == "integer" and kind == "BOOLEAN":
        return Conversion(f"{read} = 1", f"{read} NOT IN (0, 1)")
    if family in NATIVE:
        return Conversion(f"CAST({read} AS {kind})")
    canonical = _of_canonical_text(column, read)
    if canonical is not None:
        return Conversion(canonical, f"{canonical} IS NULL")
    element = _element_of(column)
    if element is None:
        return _of_text(family, kind, read)
    item = _of_text(element.column.family, element.type, _ITEM)
    bad = _no_items(read)
    if item.bad:
        bad += f" OR exists({_items(read)}, {_ITEM} -> {_ITEM} IS NOT NULL AND ({item.bad}))"
    return Conversion(f"transform({_items(read)}, {_ITEM} -> {item.value})", bad)


def _of_canonical_text(column: ReadColumn, text: str) -> str | None:
    """SQL of a value whose text the database writes in one form, so that a cast says whether it fits.

    NULL if it does not; ``None`` if the text could have another form or more digits than the type.
    """
    family, kind = column.column.family, column.type
    number = decimal_digits(kind)
    if number is not None and family == "decimal":
        scale = _scale(column.column.type)
        return None if scale is None or scale > number.scale else f"try_cast({text} AS {kind})"
    if family == "date" and kind == "DATE":
        return f"IF(length({text}) <= {_DATE_LENGTH}, try_cast({text} AS DATE), NULL)"
    if family == "timestamp" and kind == "TIMESTAMP_NTZ":
        return f"try_cast({text} AS TIMESTAMP_NTZ)"
    if family == "timestamptz" and kind == "TIMESTAMP":
        return f"try_cast(concat({text}, 'Z') AS TIMESTAMP)"
    return None


def _scale(kind: str) -> int | None:
    """The most digits after the point in a type of a database; ``None`` if it does not say.

    >>> _scale("numeric(12,2)"), _scale("decimal(5) unsigned"), _scale("money"), _scale("numeric")
    (2, 0, 2, None)
    """
    digits = decimal_digits(_DIGITS_OF_MONEY if kind == "money" else kind.removesuffix(" unsigned"))
    return None if digits is None else digits.scale


def _of_text(family: Family, kind: str, text: str) -> Conversion:
    """SQL of a value that was read as text."""
    number = decimal_digits(kind)
    if kind == "STRING":
        return Conversion(text)
    value = f"try_cast({text} AS {kind})"
    bad = f"{value} IS NULL"
    if number is not None:
        digits = f"rtrim('0', regexp_extract({text}, '[.]([0-9]*)$', 1))"
        bad += f" OR length({digits}) > {number.scale}"
    elif kind in _INTEGERS:
        bad = f"NOT {text} RLIKE '^-?[0-9]+$' OR {bad}"
    elif family == "date":
        bad = f"NOT {text} RLIKE {literal(_DATE + '$')} OR {bad}"
    elif family == "timestamp":
        bad = f"NOT {text} RLIKE {literal(_TIME + '$')} OR {bad}"
    elif family == "timestamptz":
        # Without a zone, the time is in UTC. Elements of an array have the zone of the session.
        zoned = f"IF({text} RLIKE {literal(_TIME + '$')}, concat({text}, 'Z'), {text})"
        value = f"try_cast({zoned} AS TIMESTAMP)"
        bad = f"NOT {text} RLIKE {literal(f'{_TIME}({_ZONE})?$')} OR {value} IS NULL"
    return Conversion(value, bad)


def _element_of(column: ReadColumn) -> ReadColumn | None:
    """The elements of a column of arrays, as if they were a column; ``None`` for any other column."""
    if column.column.family != "array" or column.selected.as_text:
        return None
    array = parse_type(column.type.lower())
    assert isinstance(array, Array)
    kind = type_text(array.element).upper()
    return ReadColumn(SelectedColumn(column.column._replace(family=_element_family(kind))), kind)


def _items(text: str) -> str:
    return f"from_json({text}, 'ARRAY<STRING>')"


def _no_items(text: str) -> str:
    """SQL condition: a text is no array of values. Arrays of arrays have the same type in the database."""
    return f"{_items(text)} IS NULL OR startswith({text}, '[[')"


def _element_family(kind: str) -> Family:
    if kind in _INTEGERS:
        return "integer"
    found: dict[str, Family] = {
        "BOOLEAN": "boolean",
        "FLOAT": "float",
        "DOUBLE": "float",
        "DATE": "date",
        "TIMESTAMP_NTZ": "timestamp",
        "TIMESTAMP": "timestamptz",
        "STRING": "text",
    }
    return found.get(kind, "decimal")


def _error(source: DatabaseSource, column: ReadColumn, read: str) -> str:
    """SQL that fails with a value that does not fit its type."""
    name, table = column.column.name.replace("|", "/"), source.table.replace("|", "/")
    return raise_error_sql(
        "AR-311",
        f"a value of the column {name} of the table {table} cannot be read as {column.type}: ",
        # A vertical bar separates the parts of the error.
        f"replace(left(CAST({read} AS STRING), {_SHOWN}), '|', '/')",
        source.name,
        f"its type in the database is {column.column.type.replace('|', '/')}",
        f"correct the value, or read it as text: columns: {{{name}: string}} in the source's meta.arctic; "
        "nothing was written",
    )


def _or_error(source: DatabaseSource, column: ReadColumn, read: str, made: Conversion) -> str:
    """SQL of a value, or of an error if it does not fit."""
    if not made.bad:
        return made.value
    error = _error(source, column, read)
    return f"CASE WHEN {read} IS NULL THEN NULL WHEN {made.bad} THEN {error} ELSE {made.value} END"


def _chosen(source: DatabaseSource, column: Column, declared: str, where: str) -> ReadColumn:
    wanted = re.sub(r"\s+", "", declared).upper()
    wanted = _SYNONYMS.get(wanted, wanted)
    if column.family == "unreadable":
        raise ConfigError(
            f"the column {column.name} of the table {source.table} cannot be read",
            where=where,
            why=f"Spark has no type for {column.type}",
            fix="list the other columns in columns of the source's meta.arctic",
        )
    if not wanted or wanted == column.spark_type:
        return ReadColumn(SelectedColumn(column), column.spark_type)
    if wanted == "STRING" and column.family != "binary":
        return ReadColumn(SelectedColumn(column, as_text=True), "STRING")
    if _holds(column, wanted):
        return ReadColumn(SelectedColumn(column), wanted)
    raise ConfigError(
        f"the column {column.name} of the source {source.name} cannot be read as {declared}",
        where=where,
        why=f"its type in the database is {column.type}, and not all of its values would stay the same",
        fix=f"declare it as {column.spark_type.lower()} or string, and cast it in the model",
    )


def _holds(column: Column, wanted: str) -> bool:
    """Whether a type can hold the values of a column. Decimals are checked value by value."""
    number = decimal_digits(wanted)
    if number is not None and not 0 <= number.scale <= number.precision <= 38:
        return False
    if column.family == "integer":
        digits = _INTEGERS[column.spark_type]
        if number is not None:
            return number.whole >= digits
        return (wanted == "BOOLEAN" and column.holds_flags) or _INTEGERS.get(wanted, 0) >= digits
    if column.family == "decimal":
        return number is not None or wanted in _INTEGERS
    return column.spark_type == "FLOAT" and wanted == "DOUBLE"


def typed(columns: list[ReadColumn]) -> dict[str, str]:
    """The columns of a pull: Spark types by name."""
    return {**{one.column.name: one.type for one in columns}, **ADDED}


__all__ = ["NATIVE", "Conversion", "ReadColumn", "converted", "read_columns", "typed", "value_of"]
