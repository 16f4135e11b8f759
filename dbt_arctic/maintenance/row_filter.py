"""The rows that a reader asks for by the values of columns, which need not be the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow

from dbt_arctic.errors import ConfigError, only_by_spark
from dbt_arctic.keyed.merge_rows import with_keys
from dbt_arctic.maintenance.lookup_keys import typed_value, wanted_values


class ValueText(NamedTuple):
    """A value of a column as a user types it."""

    column: str
    text: str


@dataclass(frozen=True)
class RowFilter:
    """Rows in which each of these columns has one of its values.

    :param values: by column. NULL is a value.
    """

    values: Mapping[str, pyarrow.Array]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are compared."""
        return tuple(self.values)

    @property
    def without_null(self) -> dict[str, pyarrow.Array]:
        """The columns that NULL does not match, by whose values files can be left out."""
        return {column: values for column, values in self.values.items() if not values.null_count}

    def of(self, rows: pyarrow.Table) -> pyarrow.Table:
        """The rows that match. A column that they lack is NULL."""
        for column, values in self.values.items():
            if column in rows.column_names:
                rows = with_keys(rows, pyarrow.table({column: values}))
            elif not values.null_count:
                rows = rows.slice(0, 0)
        return rows


def row_filter(
    where: Mapping[str, Any], types: pyarrow.Schema, there: Sequence[str], table: str
) -> RowFilter:
    """Convert the values that were given.

    :param where: a value or several for each column.
    :param types: the types of the columns in the files, which may have more of them.
    :param there: the columns of the table.
    :param table: its name, for errors.
    :raises ConfigError: a column does not exist, or a value does not have its type.
    """
    found: dict[str, pyarrow.Array] = {}
    for name, values in where.items():
        (column,) = chosen_columns([name], there, table)
        if column in found:
            raise ConfigError(f"{column} is given twice", where="where", fix="give all of its values at once")
        found[column] = wanted_values(values, column, _type_of(column, types, table), table)
    return RowFilter(found)


def typed_filter(
    texts: Sequence[ValueText], types: pyarrow.Schema, spark_types: Mapping[str, str], table: str
) -> RowFilter:
    """Convert values that were typed. Several values of one column are alternatives.

    :param spark_types: the columns of the table with their Spark types.
    :raises ConfigError: as for ``row_filter``.
    """
    found: dict[str, list[Any]] = {}
    for name, text in texts:
        (column,) = chosen_columns([name], list(spark_types), table)
        try:
            value = typed_value(text, spark_types[column], _type_of(column, types, table))
        except ValueError as error:
            raise ConfigError(
                f"{text!r} is not a value of {column}, which is {spark_types[column]}",
                where=table,
                why=str(error),
                fix="write it in the form that Spark casts from a string",
            ) from error
        found.setdefault(column, []).append(value)
    return RowFilter({column: pyarrow.concat_arrays(values) for column, values in found.items()})


def chosen_columns(columns: Sequence[str] | None, there: Sequence[str], table: str) -> list[str]:
    """Columns with the spelling of the table; ``None`` for all of them.

    :param there: the columns of the table.
    :raises ConfigError: it does not have one.
    """
    if columns is None:
        return list(there)
    if isinstance(columns, str):
        columns = [columns]
    exact = {column.lower(): column for column in there}
    unknown = [column for column in columns if column.lower() not in exact]
    if unknown:
        raise ConfigError(
            f"{table} has no column {unknown[0]}",
            where=table,
            why=f"its columns are {', '.join(there)}",
            fix="correct the name",
        )
    return list(dict.fromkeys(exact[column.lower()] for column in columns))


def _type_of(column: str, types: pyarrow.Schema, table: str) -> pyarrow.DataType:
    place = types.get_field_index(column)
    type_ = pyarrow.null() if place < 0 else types.field(place).type
    if pyarrow.types.is_nested(type_):
        raise only_by_spark(table, f"{column}, which its rows are compared by, has fields or elements")
    return type_


__all__ = ["RowFilter", "ValueText", "chosen_columns", "row_filter", "typed_filter"]
