"""The setting ``indexes`` of a keyed model: the columns that have a secondary index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.layout import is_bucketable, require_columns
from dbt_arctic.refresh.config import match_columns

_SETTING = "indexes"


def parse_indexes(model: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns that the config names, as it spells them.

    :raises ConfigError: it is not a list of different columns.
    """
    value = config.get(_SETTING)
    found = [value] if isinstance(value, str) else list(value or [])
    wrong = next((one for one in found if not isinstance(one, str) or not one.strip()), None)
    if wrong is not None:
        raise ConfigError(
            f"{_SETTING} contains {wrong!r}",
            where=model,
            why="an index has one column and no other settings",
            fix="name the columns: indexes=['customer_id']",
        )
    if len({one.lower() for one in found}) != len(found):
        raise ConfigError(f"{_SETTING} contains a column twice", where=model, fix="name each column once")
    return tuple(found)


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
