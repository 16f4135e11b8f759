"""Versions of tables, and the versions that a model consumed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from dbt_arctic.errors import ConfigError

PROPERTY_CONSUMED = "arctic.consumed"
"""In a snapshot's summary: the version of each upstream that the data was computed from."""

FINGERPRINT = "arctic.plan"
"""Among the consumed versions of a commit: the query whose result its rows are."""

ASKED_AT = "arctic.time"
"""Among the consumed versions of a commit: the time at which the query was evaluated, if the result depends
on it."""

_TOKEN = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True)
class Version:
    """A readable state of a keyed table: a pair of snapshots that belong together.

    The invariant of every such pair: trimmed(change) ⊆ merged(base) ⊆ history(change).
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
    """Whether a text is a version of a keyed table; of a plain one it is a snapshot's number."""
    return _TOKEN.fullmatch(text.strip()) is not None


@dataclass(frozen=True)
class Consumed:
    """One upstream as a model last read it.

    ``table_id`` is the change table's ``arctic.id`` for a keyed upstream and the metadata
    location's folder for a plain Iceberg table; another id means another table of the same name.
    ``version`` is a token for a keyed upstream, a snapshot id for a plain one.
    """

    table_id: str
    version: str


def of_relations(consumed: Mapping[str, Consumed]) -> dict[str, Consumed]:
    """The versions of relations, without what says of which query the rows are the result."""
    return {name: one for name, one in consumed.items() if name not in (FINGERPRINT, ASKED_AT)}


def encode_consumed(consumed: Mapping[str, Consumed]) -> str:
    """The form in which consumed versions are committed: JSON by dotted upstream name."""
    return json.dumps({name: [entry.table_id, entry.version] for name, entry in sorted(consumed.items())})


def decode_consumed(text: str) -> dict[str, Consumed]:
    return {name: Consumed(str(entry[0]), str(entry[1])) for name, entry in json.loads(text).items()}
