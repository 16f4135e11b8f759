"""Reads a setting of a model that is a column or a list of columns."""

from __future__ import annotations

from typing import Any

from dbt_arctic.errors import ConfigError


def listed_columns(model: str, setting: str, value: Any) -> tuple[str, ...]:
    """The columns, as the config spells them.

    :param value: of the setting.
    :raises ConfigError: it is neither a column nor a list of different columns.
    """
    values = [value] if isinstance(value, str) else list(value or [])
    wrong = [item for item in values if not isinstance(item, str) or not item.strip()]
    if wrong:
        raise ConfigError(
            f"{setting} holds {wrong[0]!r}", where=model, fix="give a column or a list of columns"
        )
    if len({value.lower() for value in values}) != len(values):
        raise ConfigError(f"{setting} contains a column twice", where=model, fix="name each column once")
    return tuple(values)


__all__ = ["listed_columns"]
