"""The setting ``indexes`` of a keyed model: the columns that have a secondary index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.layout import is_bucketable, require_columns
from dbt_arctic.refresh.config import match_columns
from dbt_arctic.refresh.listed_columns import listed_columns

_SETTING = "indexes"


def parse_indexes(model: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns that the config names, as it spells them.

    :raises ConfigError: it is neither a column nor a list of different columns.
    """
    return listed_columns(model, _SETTING, config.get(_SETTING))


def check_indexes(
    model: str, columns: Sequence[str], types: Mapping[str, str], key: Sequence[str]
) -> tuple[str, ...]:
    """The columns in the spelling of the table.

    :param types: the types of the columns of the table.
    :param key: its key.
    :raises ConfigError: a column does not exist, cannot have an index, or needs none.
    """
    found = match_columns(columns, list(types))
    require_columns(model, _SETTING, found, types)
    for column in found:
        if [column.lower()] == [one.lower() for one in key]:
            raise ConfigError(
                f"{_SETTING} contains {column}, which is the key",
                where=model,
                why="rows are found by their key without an index",
                fix="remove it",
            )
        if not is_bucketable(types[column]):
            raise ConfigError(
                f"{_SETTING} contains {column}, which is {types[column]}",
                where=model,
                why="an index needs a column of integers, decimals, dates, timestamps, strings or binaries",
                fix="remove it, or cast the column in the model",
            )
    return found


__all__ = ["check_indexes", "parse_indexes"]
