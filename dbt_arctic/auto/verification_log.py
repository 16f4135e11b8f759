"""The verifications of an automatic model's refreshes, as a property of its change table records them.

A commit cannot record its own verification, which follows it. A property of the table needs no commit of
rows, so readers of the change log do not see it. A new generation has a new table, without records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from dbt_arctic.auto.timings import Timed, timings
from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.names import literal
from dbt_arctic.keyed.table import KeyedTable

PROPERTY_VERIFIED = "arctic.verified"
"""On a change table, JSON: the fields of ``Verified``, newest first."""

_KEPT = 20
"""The number of recorded verifications."""

Result = Literal["equal", "different", "skipped"]


@dataclass(frozen=True)
class Verified:
    """One verification of a refresh.

    :param snapshot: the snapshot of the change table that the refresh committed.
    :param committed_ms: the time of that commit.
    :param keys: the number of recomputed keys.
    :param differ: the number of keys that differ.
    :param why: why it was skipped; empty otherwise. It contains no values of rows.
    """

    snapshot: int
    committed_ms: int
    result: Result
    keys: int = 0
    differ: int = 0
    seconds: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        if self.result == "skipped":
            return f"skipped: {self.why}"
        if self.result == "different":
            return f"{self.differ:,} of {self.keys:,} keys differ"
        return f"{counted(self.keys, 'key')} equal"


def recorded(properties: Mapping[str, str]) -> list[Verified]:
    """The recorded verifications, newest first.

    :param properties: of the change table.
    """
    return [Verified(**entry) for entry in json.loads(properties.get(PROPERTY_VERIFIED, "[]"))]


def record_sql(table: KeyedTable, known: Sequence[Verified], new: Verified) -> str:
    """The statement that records a verification.

    :param known: those that are recorded, newest first.
    """
    entries = [asdict(one) for one in (new, *known)][:_KEPT]
    value = literal(json.dumps(entries, separators=(",", ":")))
    return f"ALTER TABLE {table.change.sql} SET TBLPROPERTIES ({literal(PROPERTY_VERIFIED)} = {value})"


def unrepaired(properties: Mapping[str, str], history: Iterable[Timed]) -> Verified | None:
    """The newest verification that found a difference, unless a full refresh has followed.

    A full refresh compares all stored rows with the whole query.

    :param history: the commits of the change table.
    """
    found = next((one for one in recorded(properties) if one.result == "different"), None)
    if found is None:
        return None
    later = (commit for commit in history if commit.timestamp_ms > found.committed_ms)
    return None if any(one.strategy == "full" for one in timings(later)) else found


__all__ = ["PROPERTY_VERIFIED", "Result", "Verified", "record_sql", "recorded", "unrepaired"]
