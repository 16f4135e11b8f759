"""Decides which schema differences between a query and a table are applied, by ``on_schema_change``.

Columns and nested fields follow one rule. How a table is altered is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.errors import SchemaChanged
from dbt_arctic.keyed.schema_difference import FieldChange, Kind, SchemaDifference

_MADE: Mapping[str, tuple[Kind, ...]] = {
    "ignore": ("typed",),
    "fail": (),
    "append_new_columns": ("typed", "added"),
    "sync_all_columns": ("typed", "added", "widened", "removed"),
}


def changes_to_make(
    model: str, on_schema_change: str, difference: SchemaDifference
) -> tuple[FieldChange, ...]:
    """The part of a difference that is applied to the table. The rest remains.

    A field that held only NULL and has no type yet gets its type, unless every difference is refused.

    :raises SchemaChanged: with ``sync_all_columns``, a type change that Iceberg does not support in place.
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
    """Refuse any difference of columns with ``on_schema_change: fail``.

    :raises SchemaChanged: the setting is ``fail`` and there is a difference.
    """
    if difference:
        raise SchemaChanged(
            "the model's columns differ from the table's",
            where=model,
            why=difference.describe(),
            fix="set on_schema_change to 'append_new_columns' or 'sync_all_columns', or rebuild: "
            f"dbt run --full-refresh --select {model}",
        )
