"""Savepoints: their names and SQL.

A savepoint is a tag of the same name on base and change table, which prevents expiry. Commits before a tag do
expire, and one of them may record the consumed upstream versions. In that case a property of the change table
records them, by the id of the tag's snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dbt_arctic.errors import ConfigError
from dbt_arctic.keyed.names import Name, literal, quote
from dbt_arctic.keyed.version import Consumed, decode_consumed, encode_consumed

_PREFIX = "savepoint_"
_CONSUMED_AT = "arctic.consumed-at."
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")
RESERVED = frozenset({"current", "now"})
"""Reserved words that refer to a version."""


def tag_of(savepoint: str) -> str:
    """The Iceberg tag that stores a savepoint.

    :raises ConfigError: the name could be taken for a version, or needs quoting in a shell.
    """
    if not _NAME.fullmatch(savepoint) or savepoint.lower() in RESERVED:
        raise ConfigError(
            f"{savepoint!r} is not a valid name for a savepoint",
            why="a name is a letter, then letters, digits, _ and -, so that it differs from a version",
            fix="choose another name, for instance before-migration",
        )
    return _PREFIX + savepoint


def savepoints(tags: Mapping[str, int]) -> dict[str, int]:
    """The savepoints among the tags of a table, by name."""
    return {tag.removeprefix(_PREFIX): snapshot for tag, snapshot in tags.items() if tag.startswith(_PREFIX)}


def create_tag(table: Name, savepoint: str, snapshot_id: int) -> str:
    """The statement that creates the tag of a savepoint."""
    return f"ALTER TABLE {table.sql} CREATE TAG {quote(tag_of(savepoint))} AS OF VERSION {snapshot_id}"


def drop_tag(table: Name, savepoint: str) -> str:
    """The statement that drops the tag of a savepoint."""
    return f"ALTER TABLE {table.sql} DROP TAG IF EXISTS {quote(tag_of(savepoint))}"


def consumed_at(properties: Mapping[str, str], snapshot_id: int) -> dict[str, Consumed]:
    """The upstream versions of the rows of a savepoint, if a property of the change table records them."""
    text = properties.get(f"{_CONSUMED_AT}{snapshot_id}", "")
    return decode_consumed(text) if text else {}


def note_consumed(change: Name, snapshot_id: int, consumed: Mapping[str, Consumed]) -> str:
    """The statement that records consumed versions for a snapshot."""
    name, value = literal(f"{_CONSUMED_AT}{snapshot_id}"), literal(encode_consumed(consumed))
    return f"ALTER TABLE {change.sql} SET TBLPROPERTIES ({name} = {value})"


def forget_consumed(change: Name, snapshot_id: int) -> str:
    """The statement that removes the record of ``note_consumed``."""
    name = literal(f"{_CONSUMED_AT}{snapshot_id}")
    return f"ALTER TABLE {change.sql} UNSET TBLPROPERTIES IF EXISTS ({name})"
