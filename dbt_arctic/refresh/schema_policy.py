"""Decides which schema differences between a query and a table are applied, by ``on_schema_change``.

Columns and nested fields follow one rule. How a table is altered is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from dbt_arctic.errors import ConfigError, SchemaChanged
from dbt_arctic.keyed.schema_difference import FieldChange, Kind, SchemaDifference, compare_columns
from dbt_arctic.keyed.table import Column

FULL_REFRESH = "full_refresh"
"""The value of ``on_schema_change`` with which a table is rebuilt when the columns of its model change."""

OnSchemaChange = Literal["ignore", "fail", "append_new_columns", "sync_all_columns", "full_refresh"]

_MADE: Mapping[str, tuple[Kind, ...]] = {
    "ignore": ("typed",),
    "fail": (),
    "append_new_columns": ("typed", "added"),
    "sync_all_columns": ("typed", "added", "widened", "removed"),
    "full_refresh": ("typed",),
}


def parse_on_schema_change(model: str, config: Mapping[str, Any]) -> OnSchemaChange:
    """Read ``on_schema_change`` of a keyed or plain model.

    :raises ConfigError: it has none of the possible values.
    """
    value: OnSchemaChange = config.get("on_schema_change") or "ignore"
    if value not in get_args(OnSchemaChange):
        raise ConfigError(
            f"on_schema_change is {value!r}",
            where=model,
            fix=f"use one of: {', '.join(get_args(OnSchemaChange))}",
        )
    return value


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


def needs_rebuild(table: Sequence[Column], produced: Sequence[Column]) -> SchemaDifference:
    """The differences for which ``on_schema_change: full_refresh`` rebuilds a table; false if there are none.

    A field that held only NULL and has no type yet gets its type in place.
    """
    difference = compare_columns(table, produced)
    return SchemaDifference(tuple(one for one in difference.changes if one.kind != "typed"))


def check_full_refresh(model: str, config: Mapping[str, Any], strategy: str, language: str = "sql") -> None:
    """Check that a model with ``on_schema_change: full_refresh`` can be rebuilt by a run.

    :raises ConfigError: its ``full_refresh`` is false, a run computes some of its batches only, or its
        columns are not known before it has run.
    """
    if config.get("on_schema_change") != FULL_REFRESH:
        return
    if config.get("full_refresh") is False:
        raise ConfigError(
            "on_schema_change is 'full_refresh', and full_refresh is false",
            where=model,
            why="one setting rebuilds the table, the other one forbids it",
            fix="remove full_refresh, or set on_schema_change to 'append_new_columns'",
        )
    if strategy == "microbatch":
        raise ConfigError(
            "on_schema_change is 'full_refresh' with the strategy 'microbatch'",
            where=model,
            why="a run computes some batches, and a rebuild needs all of them",
            fix="set on_schema_change to 'append_new_columns', and rebuild when it is needed: "
            f"dbt run --full-refresh --select {model}",
        )
    if language != "sql":
        raise ConfigError(
            f"on_schema_change is 'full_refresh' in a model in {language.capitalize()}",
            where=model,
            why="its columns are known only after it has run, and by then it has computed only the changes, "
            "not all rows",
            fix="set on_schema_change to 'append_new_columns', and rebuild when it is needed: "
            f"dbt run --full-refresh --select {model}",
        )


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
