"""A column as dbt handles it; the type is Spark's own text and is never rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from dbt.adapters.base.column import Column

from dbt_arctic.keyed import table as keyed
from dbt_arctic.keyed.assignment import mismatches, stored_value
from dbt_arctic.keyed.names import quote
from dbt_arctic.refresh.batch import not_storable
from dbt_arctic.refresh.evolve import compare_columns, stored_type


@dataclass
class ArcticColumn(Column):
    """Name and Spark type of a column."""

    TYPE_LABELS: ClassVar[dict[str, str]] = {
        "TEXT": "string",
        "STRING": "string",
        "INTEGER": "int",
        "FLOAT": "float",
        "BIGINT": "bigint",
        "NUMERIC": "decimal(28,6)",
        "TIMESTAMP": "timestamp",
        "BOOLEAN": "boolean",
    }

    @property
    def quoted(self) -> str:
        return quote(self.column)

    @property
    def data_type(self) -> str:
        return self.dtype

    def is_string(self) -> bool:
        return self._family() in ("string", "varchar", "char")

    def is_integer(self) -> bool:
        return self._family() in ("tinyint", "smallint", "int", "integer", "bigint")

    def is_numeric(self) -> bool:
        return self._family() in ("decimal", "numeric")

    def is_float(self) -> bool:
        return self._family() in ("float", "double")

    def string_size(self) -> int:
        return 256

    def can_expand_to(self, other_column: Column) -> bool:
        """Strings have no size in Iceberg, so none ever has to grow."""
        return False

    @classmethod
    def string_type(cls, size: int) -> str:
        return "string"

    @classmethod
    def numeric_type(cls, dtype: str, precision: Any, scale: Any) -> str:
        return "decimal" if precision is None or scale is None else f"decimal({precision},{scale})"

    def _family(self) -> str:
        return self.dtype.lower().split("(")[0].strip()


def stored_values(
    model: str, produced: Sequence[ArcticColumn], stored: Sequence[ArcticColumn], *, fill: bool
) -> dict[str, str]:
    """SQL of each column that both a query and a table have, as the table stores it, by name in lower case.

    :param fill: whether a field inside a struct that the query lacks becomes NULL.
    :raises SchemaChanged: the table would store another value than the query has.
    """
    types = {column.name.lower(): column for column in stored}
    both = [(column, types[column.name.lower()]) for column in produced if column.name.lower() in types]
    found = [
        mismatch
        for column, there in both
        for mismatch in mismatches(there.name, column.dtype, there.dtype, fill=fill)
    ]
    if found:
        raise not_storable(model, found)
    return {
        there.name.lower(): stored_value(column.quoted, column.dtype, there.dtype) for column, there in both
    }


def columns_to_type(produced: Sequence[ArcticColumn], stored: Sequence[ArcticColumn]) -> list[keyed.Column]:
    """The table's columns without a type (every value so far was NULL) that the query has one for."""
    types = {column.name.lower(): stored_type(column.dtype) for column in produced}
    return [
        keyed.Column(column.name, types[column.name.lower()])
        for column in stored
        if column.dtype == "void" and types.get(column.name.lower(), "void") != "void"
    ]


def schema_changes(source: Sequence[ArcticColumn], target: Sequence[ArcticColumn]) -> dict[str, Any]:
    """How a query's columns differ from a table's, under the names that dbt's macros know.

    As Iceberg stores them: a ``smallint`` is an ``int`` there, an ``int`` fits into a ``bigint``, a NULL
    without a type into any column, and the case of a name means nothing.
    """
    types = {column.name.lower(): column.dtype for column in target}
    produced = [
        keyed.Column(column.name, types.get(column.name.lower(), column.dtype))
        if column.dtype == "void"
        else keyed.Column(column.name, column.dtype)
        for column in source
    ]
    found = compare_columns(tuple(keyed.Column(one.name, one.dtype) for one in target), tuple(produced))
    changed = [*found.widened, *(column for column, _ in found.incompatible)]
    return {
        "schema_changed": bool(found.added or found.removed or changed),
        "source_not_in_target": [ArcticColumn(column.name, column.type) for column in found.added],
        "target_not_in_source": [column for column in target if column.name in found.removed],
        "source_columns": list(source),
        "target_columns": list(target),
        "new_target_types": [{"column_name": column.name, "new_type": column.type} for column in changed],
    }
