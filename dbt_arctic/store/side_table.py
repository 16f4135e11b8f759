"""Refuses the base or change table of a keyed table where a command takes the name of a whole table."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import PROPERTY_OF, side_root


def refuse_side_table(name: Name, properties: Mapping[str, str]) -> None:
    """Refuse a table that stores a part of the rows of a keyed table.

    :param properties: those of the table.
    :raises ConfigError: it does.
    """
    root = side_root(name.identifier)
    if root is None or not properties.get(PROPERTY_OF, "").endswith(f".{root}"):
        return
    keyed = name.sibling(root)
    raise ConfigError(
        f"{name} is a side table of the keyed table {keyed.identifier}",
        where=name.dotted,
        why="it holds a part of the rows and of the log, and only commands for the keyed table keep both",
        fix=f"use the keyed table: {keyed.schema}.{keyed.identifier}",
    )
