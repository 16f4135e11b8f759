"""Columns of a table of a database in Spark: exact, or an error for a value that does not fit. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from dbt_arctic.data_type import Array, decimal_digits, parse_type, type_text
from dbt_arctic.databases.api import Column, Family, SelectedColumn, Table
from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.checks import raise_error_sql
from dbt_arctic.keyed.names import literal, quote
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
    """SQL of a value.

    :param read: SQL of what the JDBC reader returns.
    """
    if column.selected.as_text and column.type == "STRING":
        return read
    family, kind = column.column.family, column.type
    if family == "integer" and kind == "BOOLEAN":
        return _checked(source, column, read, f"{read} NOT IN (0, 1)", f"{read} = 1")
    if family in ("boolean", "integer", "float", "binary"):
        return f"CAST({read} AS {kind})"
    value = _of_canonical_text(column.column, kind, read)
    if value is not None:
        return f"coalesce({value}, CASE WHEN {read} IS NOT NULL THEN {_error(source, column, read)} END)"
    return _parsed(source, column, family, kind, read)


def _of_canonical_text(column: Column, kind: str, text: str) -> str | None:
    """SQL of a value whose text the database writes in one form, so that a cast says whether it fits.

    NULL if it does not; ``None`` if the text could have another form or more digits than the type.
    """
    number = decimal_digits(kind)
    if number is not None and column.family == "decimal":
        scale = _scale(column.type)
        return None if scale is None or scale > number.scale else f"try_cast({text} AS {kind})"
    if column.family == "date" and kind == "DATE":
        return f"IF(length({text}) <= {_DATE_LENGTH}, try_cast({text} AS DATE), NULL)"
    if column.family == "timestamp" and kind == "TIMESTAMP_NTZ":
        return f"try_cast({text} AS TIMESTAMP_NTZ)"
    if column.family == "timestamptz" and kind == "TIMESTAMP":
        return f"try_cast(concat({text}, 'Z') AS TIMESTAMP)"
    return None


def _scale(kind: str) -> int | None:
    """The most digits after the point in a type of a database; ``None`` if it does not say.

    >>> _scale("numeric(12,2)"), _scale("decimal(5) unsigned"), _scale("money"), _scale("numeric")
    (2, 0, 2, None)
    """
    digits = decimal_digits(_DIGITS_OF_MONEY if kind == "money" else kind.removesuffix(" unsigned"))
    return None if digits is None else digits.scale


def _parsed(source: DatabaseSource, column: ReadColumn, family: Family, kind: str, text: str) -> str:
    """SQL of a value that was read as text."""
    if family == "array":
        array = parse_type(kind.lower())
        assert isinstance(array, Array)
        element = type_text(array.element).upper()
        items = f"from_json({text}, 'ARRAY<STRING>')"
        inner = column.column._replace(family=_element_family(element), type=column.column.type)
        parsed = _parsed(source, ReadColumn(SelectedColumn(inner), element), inner.family, element, "item")
        # Arrays of arrays have the same type in the database.
        bad = f"{items} IS NULL OR startswith({text}, '[[')"
        return _checked(source, column, text, bad, f"transform({items}, item -> {parsed})")
    number = decimal_digits(kind)
    if number is not None:
        digits = f"rtrim('0', regexp_extract({text}, '[.]([0-9]*)$', 1))"
        bad = f"try_cast({text} AS {kind}) IS NULL OR length({digits}) > {number.scale}"
    elif kind in _INTEGERS:
        bad = f"NOT {text} RLIKE '^-?[0-9]+$' OR try_cast({text} AS {kind}) IS NULL"
    elif family == "date":
        bad = f"NOT {text} RLIKE {literal(_DATE + '$')} OR try_cast({text} AS DATE) IS NULL"
    elif family == "timestamp":
        bad = f"NOT {text} RLIKE {literal(_TIME + '$')} OR try_cast({text} AS TIMESTAMP_NTZ) IS NULL"
    elif family == "timestamptz":
        # Without a zone, the time is in UTC. Elements of an array have the zone of the session.
        zoned = f"IF({text} RLIKE {literal(_TIME + '$')}, concat({text}, 'Z'), {text})"
        bad = f"NOT {text} RLIKE {literal(f'{_TIME}({_ZONE})?$')} OR try_cast({zoned} AS TIMESTAMP) IS NULL"
        return _checked(source, column, text, bad, f"CAST({zoned} AS TIMESTAMP)")
    elif kind == "STRING":
        return text
    else:
        bad = f"try_cast({text} AS {kind}) IS NULL"
    return _checked(source, column, text, bad, f"CAST({text} AS {kind})")


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


def _checked(source: DatabaseSource, column: ReadColumn, read: str, bad: str, value: str) -> str:
    error = _error(source, column, read)
    return f"CASE WHEN {read} IS NULL THEN NULL WHEN {bad} THEN {error} ELSE {value} END"


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


def rows_of(source: DatabaseSource, columns: list[ReadColumn], view: str) -> str:
    """SQL of a pull: the columns of the table, and ``_action``.

    :param view: with the columns of ``RowQuery``.
    """
    listed = ",\n  ".join([*_values(source, columns), "'U' AS `_action`"])
    return f"SELECT\n  {listed}\nFROM {quote(view)}"


def rows_and_deletes(
    source: DatabaseSource,
    columns: list[ReadColumn],
    view: str,
    key: list[ReadColumn],
    stored_key: Mapping[str, str],
    stored: str,
) -> str:
    """SQL of a pull with the keys that are stored, and that the table no longer has, as deletes.

    :param view: with the columns of a ``RowQuery`` with ``all_keys``. It is read once, so that a row is not
        both present and deleted.
    :param stored_key: the stored columns by those of the table.
    :param stored: SQL of the stored rows.
    """
    in_key = {one.column.name for one in key}
    selected = []
    for one in columns:
        name = quote(one.column.name)
        if one.column.name in in_key:
            kept = f"CAST(`stored`.{quote(stored_key[one.column.name])} AS {one.type})"
            selected.append(f"coalesce(`source`.{name}, {kept}) AS {name}")
        else:
            selected.append(f"`source`.{name} AS {name}")
    selected.append("CASE WHEN `source`.`is_new` IS NULL THEN 'D' ELSE 'U' END AS `_action`")
    values = ",\n  ".join([*_values(source, columns), "`is_new`"])
    joined = " AND ".join(
        f"`source`.{quote(one.column.name)} = `stored`.{quote(stored_key[one.column.name])}" for one in key
    )
    listed = ",\n  ".join(selected)
    return (
        f"SELECT\n  {listed}\nFROM (\nSELECT\n  {values}\nFROM {quote(view)}\n) AS `source`\n"
        f"FULL OUTER JOIN (\n{stored}\n) AS `stored` ON {joined}\n"
        "WHERE `source`.`is_new` IS NULL OR `source`.`is_new` = 1"
    )


def _values(source: DatabaseSource, columns: list[ReadColumn]) -> list[str]:
    return [
        f"{value_of(source, one, quote(f'c{at}'))} AS {quote(one.column.name)}"
        for at, one in enumerate(columns)
    ]


__all__ = ["ReadColumn", "read_columns", "rows_and_deletes", "rows_of", "typed", "value_of"]
