"""A column in dbt; the type is Spark's own text and is never rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dbt.adapters.base.column import Column

from dbt_arctic.adapter.type_names import translated
from dbt_arctic.data_type import without_parameters
from dbt_arctic.keyed import table
from dbt_arctic.keyed.assignment import stored_value
from dbt_arctic.keyed.names import quote
from dbt_arctic.keyed.narrowing import TypeChange, exact_cast
from dbt_arctic.keyed.schema_difference import compare_columns, stored_type


@dataclass
class ArcticColumn(Column):
    """Name and Spark type of a column."""

    TYPE_LABELS: ClassVar[dict[str, str]] = {
        "TEXT": "string",
        "STRING": "string",
        "VARCHAR": "string",
        "INTEGER": "int",
        "FLOAT": "float",
        "BIGINT": "bigint",
        "NUMERIC": "decimal(28,6)",
        "TIMESTAMP": "timestamp",
        "BOOLEAN": "boolean",
    }

    @classmethod
    def translate_type(cls, dtype: str) -> str:
        """Translate the names of types to Spark's, at every depth."""
        return translated(dtype, cls.TYPE_LABELS)

    @property
    def quoted(self) -> str:
        """The quoted name."""
        return quote(self.column)

    @property
    def data_type(self) -> str:
        """The Spark type."""
        return self.dtype

    def is_string(self) -> bool:
        """Whether the type is a string type."""
        return self._family() in ("string", "varchar", "char")

    def is_integer(self) -> bool:
        """Whether the type is an integer type."""
        return self._family() in ("tinyint", "smallint", "int", "integer", "bigint")

    def is_numeric(self) -> bool:
        """Whether the type is a decimal type."""
        return self._family() in ("decimal", "numeric")

    def is_float(self) -> bool:
        """Whether the type is a floating-point type."""
        return self._family() in ("float", "double")

    def string_size(self) -> int:
        """The size of a string, which dbt requires."""
        return 256

    def can_expand_to(self, other_column: Column) -> bool:
        """Always false: strings have no size in Iceberg, so none has to be expanded."""
        return False

    @classmethod
    def string_type(cls, size: int) -> str:
        """The type of a string."""
        return "string"

    @classmethod
    def numeric_type(cls, dtype: str, precision: Any, scale: Any) -> str:
        """The type of a decimal."""
        return "decimal" if precision is None or scale is None else f"decimal({precision},{scale})"

    def _family(self) -> str:
        return without_parameters(self.dtype)


def stored_values(produced: Sequence[ArcticColumn], stored: Sequence[table.Column]) -> dict[str, str]:
    """SQL of each column that both a query and a table have, as the table stores it, by lower-case name.

    The types may differ where Spark's store assignment converts the values.
    """
    types = {column.name.lower(): column.type for column in stored}
    return {
        name: stored_value(column.quoted, column.dtype, types[name])
        for column in produced
        if (name := column.name.lower()) in types
    }


def values_of_stored_types(
    model: str, produced: Sequence[ArcticColumn], stored: Sequence[table.Column]
) -> dict[str, str]:
    """Like ``stored_values``, with the types of the table.

    A row of the query is then compared and united with stored rows as itself. Spark would convert a stored
    string to the type of the query: ``'007'`` and ``7`` would be equal.
    """
    types = {column.name.lower(): column.type for column in stored}
    given = {column.name.lower(): column.dtype for column in produced}
    return {
        name: value
        if stored_type(given[name]) == types[name]
        else exact_cast(value, TypeChange(given[name], types[name]), column=name, where=model)
        for name, value in stored_values(produced, stored).items()
    }


def as_columns(columns: Sequence[ArcticColumn]) -> tuple[table.Column, ...]:
    """Convert to columns of keyed tables."""
    return tuple(table.Column(column.name, column.dtype) for column in columns)


def schema_changes(source: Sequence[ArcticColumn], target: Sequence[ArcticColumn]) -> dict[str, Any]:
    """The differences between the columns of a query and a table, under the names that dbt's macros use.

    Types are compared as Iceberg stores them: a ``smallint`` is an ``int``, an ``int`` fits into a
    ``bigint``, an untyped NULL fits into any column, and names are case-insensitive. A nested field that was
    added or removed counts as a type change.
    """
    found = compare_columns(as_columns(target), as_columns(source))
    added = [change for change in found.added if not change.is_nested]
    removed = {change.label for change in found.removed if not change.is_nested}
    changed = [*found.widened, *found.incompatible, *found.typed]
    nested = [change for change in (*found.added, *found.removed) if change.is_nested]
    return {
        "schema_changed": bool(found),
        "source_not_in_target": [ArcticColumn(change.label, change.new) for change in added],
        "target_not_in_source": [column for column in target if column.name in removed],
        "source_columns": list(source),
        "target_columns": list(target),
        "new_target_types": [
            {"column_name": change.label, "new_type": change.new or "gone"} for change in (*changed, *nested)
        ],
    }
