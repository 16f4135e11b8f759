"""The idempotency keys of batches that other programs append, as properties of the commits of a table.

A commit records the key of its own batch, so a table has the keys of the batches in its rows: neither those
that a rollback has undone, nor those that a full refresh has replaced. Before commits expire, their keys
are noted at the oldest one that is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from dbt_arctic.keyed.log import SnapshotLike
from dbt_arctic.keyed.names import Name, literal

PROPERTY_KEY = "arctic.append"
"""On a commit: the idempotency key of its batch."""
PROPERTY_KEYS = "arctic.appended"
"""On a commit whose rows are not those of the commits before it: JSON list of the keys in its rows, newest
first."""
_NOTED_AT = "arctic.appended-at."
"""Prefix of a table property: JSON list of the keys up to a snapshot, whose id is the suffix."""
REMEMBERED = 1000
"""The number of keys that are kept of commits that no longer exist."""
LONGEST_KEY = 128
"""The most characters of a key."""


def appended_keys(history: Sequence[SnapshotLike], properties: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of the batches that are in the rows of a snapshot, newest first.

    :param history: the snapshot and its ancestors, newest first.
    :param properties: those of the table.
    """
    found: dict[str, None] = {}
    for snapshot in history:
        if PROPERTY_KEY in snapshot.summary:
            found.setdefault(snapshot.summary[PROPERTY_KEY])
        listed = snapshot.summary.get(PROPERTY_KEYS) or properties.get(_NOTED_AT + str(snapshot.snapshot_id))
        if listed:
            found.update(dict.fromkeys(json.loads(listed)))
            break
    return tuple(found)


def carried_keys(keys: Sequence[str]) -> dict[str, str]:
    """The property of a commit whose rows contain batches of other commits.

    It is also written if there are none, because the commits before it may have some.
    """
    return {PROPERTY_KEYS: _encoded(keys)}


def keys_to_note(
    histories: Iterable[Sequence[SnapshotLike]], properties: Mapping[str, str]
) -> dict[str, str]:
    """The table properties to set before ancestors of some snapshots expire.

    What they say of a snapshot is always true, so they can be set at any time.

    :param histories: each begins with a snapshot that is kept and whose ancestors expire.
    """
    found = {}
    for history in histories:
        keys = appended_keys(history, properties) if history else ()
        name = _NOTED_AT + str(history[0].snapshot_id) if history else ""
        if keys and not history[0].summary.get(PROPERTY_KEYS) and properties.get(name) != _encoded(keys):
            found[name] = _encoded(keys)
    return found


def outdated_notes(properties: Mapping[str, str], snapshots: Iterable[int]) -> list[str]:
    """The table properties on snapshots that no longer exist."""
    there = {_NOTED_AT + str(snapshot) for snapshot in snapshots}
    return [name for name in properties if name.startswith(_NOTED_AT) and name not in there]


def note_keys(table: Name, notes: Mapping[str, str]) -> str:
    """The statement that sets properties from ``keys_to_note``."""
    listed = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in sorted(notes.items()))
    return f"ALTER TABLE {table.sql} SET TBLPROPERTIES ({listed})"


def forget_keys(table: Name, names: Sequence[str]) -> str:
    """The statement that removes properties from ``outdated_notes``."""
    listed = ", ".join(map(literal, names))
    return f"ALTER TABLE {table.sql} UNSET TBLPROPERTIES IF EXISTS ({listed})"


def _encoded(keys: Sequence[str]) -> str:
    return json.dumps(list(keys[:REMEMBERED]), ensure_ascii=False, separators=(",", ":"))
