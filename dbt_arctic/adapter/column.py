"""A column as dbt handles it; the type is Spark's own text and is never rewritten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dbt.adapters.base.column import Column

from dbt_arctic.keyed.names import quote


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
