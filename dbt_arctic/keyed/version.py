"""Versions of tables, and the versions that a model consumed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.errors import ConfigError

PROPERTY_CONSUMED = "arctic.consumed"
"""In the summary of a snapshot: the version of each upstream from which the data was computed."""

PROPERTY_SOURCE = "arctic.files-of"
"""On a file list, which is a table in the catalog: the source whose files it lists."""

FILE_LIST = "__files"
"""The end of the name of each file list."""

FINGERPRINT = "arctic.plan"
"""Among the consumed versions of a commit: the fingerprint of the query that its rows are the result of."""

EVALUATED_AT = "arctic.time"
"""Among the consumed versions of a commit: the time at which the query was evaluated, if the result depends
on it."""

SETTINGS = "arctic.settings"
"""Among the consumed versions of a commit: the settings of the session that executed the query, as hashes."""

PART = "arctic.part"
"""Among the consumed versions of a commit: its rows were computed from a part of the rows of the upstreams
(``--empty``, ``--sample``), so the table must be rebuilt from all of them."""

TOPIC = "topic:"
"""Begins the ``table_id`` of what was consumed of a topic, which is not a relation of the catalog."""

DATABASE = "database:"
"""Begins the ``table_id`` of what was consumed of a table of another database."""

SLOT = "slot:"
"""Begins the ``table_id`` of what was consumed of the log of another database."""

_NO_SNAPSHOT = "0"
"""The version of a plain table that had no snapshot, as it is committed."""

_TOKEN = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Version:
    """A readable state of a keyed table: a consistent pair of snapshots.

    The invariant of every pair: trimmed(change) ⊆ merged(base) ⊆ history(change).
    """

    generation: int
    change_snapshot: int
    base_snapshot: int

    @property
    def token(self) -> str:
        """The version as text: ``<generation>.<change snapshot>.<base snapshot>``."""
        return f"{self.generation}.{self.change_snapshot}.{self.base_snapshot}"

    @classmethod
    def parse(cls, token: str, where: str = "") -> Version:
        """Parse a token."""
        match = _TOKEN.fullmatch(token.strip())
        if match is None:
            raise ConfigError(
                f"{token!r} is not a version of a keyed table",
                where=where,
                why="a version has the form <generation>.<change snapshot>.<base snapshot>",
                fix="take it from {{ table_version(ref('...')) }}",
            )
        return cls(int(match.group(1)), int(match.group(2)), int(match.group(3)))

    def __str__(self) -> str:
        return self.token


def is_token(text: str) -> bool:
    """Whether a text is a version of a keyed table; that of a plain table is a snapshot id."""
    return _TOKEN.fullmatch(text.strip()) is not None


@dataclass(frozen=True)
class Consumed:
    """The version of one upstream that a model last read.

    ``table_id`` is the change table's ``arctic.id`` for a keyed upstream, and the folder of the metadata for
    a plain Iceberg table. A different id means a different table of the same name. ``version`` is a token for
    a keyed upstream, and a snapshot id for a plain one. For a topic, they are its id after ``TOPIC``, and the
    next offset of each partition. For a table of a database, they are its id after ``DATABASE``, and the
    largest value of its cursor with fingerprints of rows. For the log of a database, they are the id of the
    slot after ``SLOT``, and the position up to which its changes were read.
    """

    table_id: str
    version: str

    @classmethod
    def of_snapshot(cls, table_id: str, snapshot_id: int | None) -> Consumed:
        """A version of a plain table.

        :param snapshot_id: ``None`` if the table has none yet.
        """
        return cls(table_id, _NO_SNAPSHOT if snapshot_id is None else str(snapshot_id))

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot of a plain table; ``None`` if the table had none."""
        return None if self.had_no_snapshot else int(self.version)

    @property
    def had_no_snapshot(self) -> bool:
        """Whether it was a plain table without a snapshot, and so without rows."""
        return self.version == _NO_SNAPSHOT


def of_relations(consumed: Mapping[str, Consumed]) -> dict[str, Consumed]:
    """The versions of relations, without the entries about the query and its run."""
    return {name: one for name, one in without_query(consumed).items() if name != PART}


def without_query(consumed: Mapping[str, Consumed]) -> dict[str, Consumed]:
    """The versions of relations, and the mark of a part, without the entries that identify the query."""
    of_query = (FINGERPRINT, EVALUATED_AT, SETTINGS)
    return {name: one for name, one in consumed.items() if name not in of_query}


def is_outside(consumed: Consumed) -> bool:
    """Whether this was consumed of a topic or a database, which are not in the catalog."""
    return consumed.table_id.startswith((TOPIC, DATABASE, SLOT))


def encode_consumed(consumed: Mapping[str, Consumed]) -> str:
    """The form in which consumed versions are committed: JSON by dotted upstream name."""
    return json.dumps({name: [entry.table_id, entry.version] for name, entry in sorted(consumed.items())})


def decode_consumed(text: str) -> dict[str, Consumed]:
    """Parse the form in which consumed versions are committed."""
    return {name: Consumed(str(entry[0]), str(entry[1])) for name, entry in json.loads(text).items()}
