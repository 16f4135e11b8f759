"""How long the refreshes of an automatic model took, told by its own commits, and what that says of the next.

A commit says when its refresh began and how it went; when the commit was made, it knows itself. So nothing
else is kept, and a clone or another machine has the same history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from dbt_arctic.keyed.log import SnapshotLike
from dbt_arctic.planner.reasons import Reason

PROPERTY_REFRESH = "arctic.refresh"
"""On a refresh's commit, JSON: ``strategy``; ``began``, in milliseconds; ``changed``, rows of upstreams that
had changed, -1 where nobody knew; ``reason``, the code of a full one."""

Strategy = Literal["incremental", "full"]

_WORTH_S = 5.0
"""What takes less is refreshed as planned: there is not much to gain, and more noise than difference."""
_SLOWER = 1.3
_RECENT = 5
"""Refreshes of each strategy that are looked at."""

_LATE = ("guard", "many-keys", "extreme", "failed")
"""Codes of full refreshes that began as incremental ones."""
_TRIES = 16
"""Of so many refreshes at least one tries to be incremental."""


class Timed(SnapshotLike, Protocol):
    @property
    def timestamp_ms(self) -> int: ...


@dataclass(frozen=True)
class Took:
    """One refresh.

    :param changed: rows of upstreams that had changed, -1 where nobody knew.
    :param reason: the code of a full one; empty where none was noted.
    """

    strategy: Strategy
    seconds: float
    changed: int = -1
    reason: str = ""


def note(strategy: Strategy, began_ms: int, changed: int = -1, reason: str = "") -> dict[str, str]:
    """What a refresh's commit says of it."""
    said = {"strategy": strategy, "began": began_ms, "changed": changed}
    return {PROPERTY_REFRESH: json.dumps({**said, "reason": reason} if reason else said)}


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
            # A commit of an older version has no reason.
            found.append(Took(said["strategy"], seconds, int(said["changed"]), said.get("reason", "")))
    return found


def better_full(took: Sequence[Took], changed: int) -> Reason | None:
    """Why the next refresh had better be a full one, going by earlier ones; ``None`` where nothing says so.

    :param took: earlier refreshes, newest first.
    :param changed: rows of upstreams that have changed since, -1 where nobody knows.
    """
    return _is_slower(took, changed) or _is_found_late(took)


def _is_found_late(took: Iterable[Took]) -> Reason | None:
    """Whether the last refreshes began as incremental ones and ended as full ones, which takes up to twice as
    long. Each such one doubles after how many full refreshes the next tries again.
    """
    late: list[Took] = []
    since: list[Took] = []
    for one in took:
        if one.strategy == "full" and one.reason in _LATE:
            late.append(one)
        elif one.strategy == "full" and one.reason == "found-late":
            if not late:
                since.append(one)
        else:
            break
    if not late or min(one.seconds for one in (*late, *since)) < _WORTH_S:
        return None
    if len(since) >= min(2 ** len(late), _TRIES) - 1:
        return None
    times = "once" if len(late) == 1 else f"{len(late)} times"
    return Reason(
        "found-late",
        f"an incremental refresh has found out {times} in a row, when it had begun, that it had to be a full "
        f"one ({late[0].reason})",
    )


def _is_slower(took: Iterable[Took], changed: int) -> Reason | None:
    """Whether an incremental refresh has become slower than a full one.

    The cost of an incremental refresh is taken to grow with the rows that have changed, and never to be
    less than that of the smaller ones before. Of each strategy the best of the last few counts: one that was
    slow because the machine was busy decides nothing.
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
