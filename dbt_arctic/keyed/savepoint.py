"""Savepoints as names and SQL text: a tag of one name on base and change, which expiry leaves alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name, quote

_PREFIX = "savepoint_"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")
RESERVED = frozenset({"current", "now"})
"""Words that stand for a version themselves."""


def tag_of(savepoint: str) -> str:
    """:raises ConfigError: the name could be taken for a version, or needs quoting in a shell."""
    if not _NAME.fullmatch(savepoint) or savepoint.lower() in RESERVED:
        raise ConfigError(
            f"{savepoint!r} cannot be the name of a savepoint",
            why="it is a letter, then letters, digits, _ and -, so that it is never taken for a version",
            fix="choose another name, for instance before-migration",
        )
    return _PREFIX + savepoint


def savepoints(tags: Mapping[str, int]) -> dict[str, int]:
    """Of a table's tags those that are savepoints, by their name."""
    return {tag.removeprefix(_PREFIX): snapshot for tag, snapshot in tags.items() if tag.startswith(_PREFIX)}


def create_tag(table: Name, savepoint: str, snapshot_id: int) -> str:
    return f"ALTER TABLE {table.sql} CREATE TAG {quote(tag_of(savepoint))} AS OF VERSION {snapshot_id}"


def drop_tag(table: Name, savepoint: str) -> str:
    return f"ALTER TABLE {table.sql} DROP TAG IF EXISTS {quote(tag_of(savepoint))}"
