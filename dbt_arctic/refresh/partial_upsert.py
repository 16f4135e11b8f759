"""Determines from dbt's settings which columns an upsert changes in existing rows."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from dbt_arctic.errors import ConfigError, SchemaChanged
from dbt_arctic.keyed.batch import Batch
from dbt_arctic.keyed.table import Column, KeyedTable
from dbt_arctic.refresh.config import KeyedConfig, match_columns


def updated_columns(config: KeyedConfig, table: KeyedTable, batch: Batch) -> tuple[str, ...]:
    """The columns of the table that change: the configured ones, or all but the excluded ones.

    The column of ``sequence_by`` always changes, since it determines how recent a row is.

    :raises ConfigError: a name is not a column, or the model does not produce the column.
    """
    setting = _setting(config)
    require_known_columns(config, table.column_names)
    named = match_columns(getattr(config, setting), table.column_names)
    if setting == "merge_exclude_columns":
        named = tuple(name for name in table.column_names if name not in named)
    always = [*table.key, *([table.sequence_by] if table.sequence_by else [])]
    updated = tuple(name for name in table.column_names if name in {*named, *always})
    _require_produced(config, setting, updated, batch.model_columns)
    return updated


def require_known_columns(config: KeyedConfig, columns: Sequence[str]) -> None:
    """Check the names in ``merge_update_columns`` or ``merge_exclude_columns``.

    :param columns: the columns of the table, or of the model that creates it.
    :raises ConfigError: a name is not a column.
    """
    setting = _setting(config)
    by_lower = {column.lower(): column for column in columns}
    unknown = [name for name in getattr(config, setting) if name.lower() not in by_lower]
    if not unknown:
        return
    similar = difflib.get_close_matches(unknown[0].lower(), by_lower, n=1)
    raise ConfigError(
        f"{setting} contains {unknown[0]}, which is not a column of the table",
        where=config.model,
        why=f"its columns are: {', '.join(columns)}",
        fix=f"did you mean {by_lower[similar[0]]}?" if similar else f"correct {setting}",
    )


def with_kept_columns(
    config: KeyedConfig, table: KeyedTable, produced: tuple[Column, ...]
) -> tuple[Column, ...]:
    """The columns that a model produces, and those of the table that it leaves unchanged.

    :raises SchemaChanged: a column that the model lacks would have to be dropped.
    """
    names = {column.name.lower() for column in produced}
    kept = tuple(column for column in table.columns if column.name.lower() not in names)
    if kept and config.on_schema_change == "sync_all_columns":
        raise SchemaChanged(
            f"the model does not return {', '.join(column.name for column in kept)}",
            where=config.model,
            why="on_schema_change is 'sync_all_columns', which drops a missing column, but "
            "merge_update_columns or merge_exclude_columns allows the model to leave it out",
            fix="set on_schema_change to 'append_new_columns', or select the column",
        )
    return (*produced, *kept)


def _setting(config: KeyedConfig) -> str:
    return "merge_update_columns" if config.merge_update_columns else "merge_exclude_columns"


def _require_produced(
    config: KeyedConfig, setting: str, updated: Sequence[str], produced: Sequence[str]
) -> None:
    names = {name.lower() for name in produced}
    missing = [name for name in updated if name.lower() not in names]
    if missing:
        raise ConfigError(
            f"the model does not return {', '.join(missing)}",
            where=config.model,
            why=f"{setting} lets existing rows change in it; the model's columns are: {', '.join(produced)}",
            fix="select the column, or list only the model's columns in merge_update_columns",
        )
