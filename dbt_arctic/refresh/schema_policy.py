"""Which of the differences between a query's columns and a table's ``on_schema_change`` makes in the table.

Columns and the fields inside them follow one rule. How a table is altered is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.errors import SchemaChanged
from dbt_arctic.keyed.schema_difference import FieldChange, Kind, SchemaDifference

_MADE: Mapping[str, tuple[Kind, ...]] = {
    "ignore": (),
    "fail": (),
    "append_new_columns": ("added",),
    "sync_all_columns": ("added", "widened", "removed"),
}


def changes_to_make(
    model: str, on_schema_change: str, difference: SchemaDifference
) -> tuple[FieldChange, ...]:
    """What of a difference the table is altered by; what is left of it stays as it is.

    :raises SchemaChanged: with ``sync_all_columns``, a type that Iceberg does not give a column in place.
    """
    if difference.incompatible and on_schema_change == "sync_all_columns":
        raise SchemaChanged(
            "a column changed to a type that Iceberg cannot promote to",
            where=model,
            why=difference.describe(),
            fix=f"cast the column in the model, or rebuild: dbt run --full-refresh --select {model}",
        )
    return difference.of(*_MADE[on_schema_change])


def refuse_difference(model: str, difference: SchemaDifference) -> None:
    """Refuse any difference of columns, as ``on_schema_change: fail`` asks.

    :raises SchemaChanged: with ``fail``, there is any.
    """
    if difference:
        raise SchemaChanged(
            "the model's columns differ from the table's",
            where=model,
            why=difference.describe(),
            fix="set on_schema_change to 'append_new_columns' or 'sync_all_columns', or rebuild: "
            f"dbt run --full-refresh --select {model}",
        )
