"""How long the refreshes of an automatic model took, told by its own commits, and what that says of the next.

A commit says when its refresh began and how it went; when the commit was made, it knows itself. So nothing
else is kept, and a clone or another machine has the same history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from dbt_arctic.keyed.log import SnapshotLike
from dbt_arctic.planner.reasons import Reason

PROPERTY_REFRESH = "arctic.refresh"
"""On a refresh's commit, JSON: ``strategy``; ``began``, in milliseconds; ``changed``, rows of upstreams that
had changed, -1 where nobody knew."""

Strategy = Literal["incremental", "full"]

_WORTH_S = 5.0
"""What takes less is refreshed as planned: there is not much to gain, and more noise than difference."""
_SLOWER = 1.3
_RECENT = 5
"""Refreshes of each strategy that are looked at."""


class Timed(SnapshotLike, Protocol):
    @property
    def timestamp_ms(self) -> int: ...


@dataclass(frozen=True)
class Took:
    """One refresh. ``changed``: rows of upstreams that had changed, -1 where nobody knew."""

    strategy: Strategy
    seconds: float
    changed: int = -1


def note(strategy: Strategy, began_ms: int, changed: int = -1) -> dict[str, str]:
    """What a refresh's commit says of it."""
    return {PROPERTY_REFRESH: json.dumps({"strategy": strategy, "began": began_ms, "changed": changed})}


def timings(history: Iterable[Timed]) -> list[Took]:
    """What a history tells, newest first.

    :param history: of the change table, newest first.
    """
    found = []
    for commit in history:
        told = commit.summary.get(PROPERTY_REFRESH)
        if told is not None:
            said = json.loads(told)
            seconds = max(0, commit.timestamp_ms - int(said["began"])) / 1000
            found.append(Took(said["strategy"], seconds, int(said["changed"])))
    return found


def is_slower(took: Iterable[Took], changed: int) -> Reason | None:
    """Why the next refresh had better be a full one, going by earlier ones; ``None`` where nothing says so.

    The cost of an incremental refresh is taken to grow with the rows that have changed, and never to be
    less than that of the smaller ones before. Of each strategy the best of the last few counts: one that was
    slow because the machine was busy decides nothing.

    :param changed: rows of upstreams that have changed since, -1 where nobody knows.
    """
    listed = list(took)
    full = min((one.seconds for one in _recent(listed, "full")), default=0.0)
    expected = [_scaled(one, changed) for one in _recent(listed, "incremental")]
    if full < _WORTH_S or not expected or min(expected) <= _SLOWER * full:
        return None
    return Reason(
        "slower",
        f"earlier incremental refreshes took {min(expected):.0f} s or more for as many changed rows, "
        f"a full one {full:.0f} s",
    )


def _recent(took: list[Took], strategy: Strategy) -> list[Took]:
    return [one for one in took if one.strategy == strategy][:_RECENT]


def _scaled(one: Took, changed: int) -> float:
    """What a refresh like that one would take for so many rows."""
    if one.changed <= 0 or changed < 0:
        return one.seconds
    return one.seconds * max(1.0, changed / one.changed)
