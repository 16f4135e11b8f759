"""How long refreshes of an automatic model took, as its commits record it, and what that means for the next.

A commit says when its refresh began and how it went; when the commit was made, it knows itself. So nothing
else is kept, and a clone or another machine has the same history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, Protocol

from dbt_arctic.keyed.log import SnapshotLike
from dbt_arctic.planner.reasons import Reason

PROPERTY_REFRESH = "arctic.refresh"
"""On a refresh's commit, JSON: ``strategy``; ``began``, in milliseconds; ``changed``, rows of upstreams that
had changed, -1 where nobody knew; ``reason``, the code of a full one that was no build, or why groups were
asked for what is kept of them."""

Strategy = Literal["incremental", "full"]

_UNKNOWN = -1
"""What the property has for a number that nobody knew."""

_WORTH_S = 5.0
"""What takes less is refreshed as planned: there is not much to gain, and more noise than difference."""
_SLOWER = 1.3
_ALIKE = 2
"""Times as many changed rows, for which what a refresh took still tells."""
_LITTLE = 0.1
"""Of what full refreshes took: what a try may lose."""
_RECENT = 5
"""Refreshes of each strategy that are looked at."""

_LATE = ("guard", "many-keys", "extreme", "failed")
"""Codes of full refreshes that began as incremental ones, and may do so again for the same cause."""
_OTHERWISE = ("", "changed-sql", "first-plan", "without-state")
"""Codes of those that began something new: a build has none."""
_TRIES = 16
"""Of so many refreshes at least one tries to be incremental, or to go on from stored sums."""

ASKED = "extreme"
"""Of an incremental refresh: a group had lost its MIN or MAX value and had to be recomputed."""
ASKED_AT_ONCE = "extreme-before"
"""Of an incremental refresh: this was expected, so the group was recomputed at once."""
_SUFFICED = 4
"""Refreshes in a row for which stored extremes have sufficed: the next one takes that for granted."""


class Timed(SnapshotLike, Protocol):
    @property
    def timestamp_ms(self) -> int: ...


@dataclass(frozen=True)
class Took:
    """One refresh.

    :param changed: rows of upstreams that had changed; ``None`` where nobody knew.
    :param reason: the code of a full one, or one of ``ASKED``; empty where none was noted.
    """

    strategy: Strategy
    seconds: float
    changed: int | None = None
    reason: str = ""


def note(strategy: Strategy, began_ms: int, changed: int | None = None, reason: str = "") -> dict[str, str]:
    """What a refresh's commit says of it."""
    said = {"strategy": strategy, "began": began_ms, "changed": _UNKNOWN if changed is None else changed}
    return {PROPERTY_REFRESH: json.dumps({**said, "reason": reason} if reason else said)}


def timings(history: Iterable[Timed]) -> list[Took]:
    """The timings in a history, newest first.

    :param history: of the change table, newest first.
    """
    found = []
    for commit in history:
        told = commit.summary.get(PROPERTY_REFRESH)
        if told is not None:
            said = json.loads(told)
            seconds = max(0, commit.timestamp_ms - int(said["began"])) / 1000
            # A commit of an older version has no reason.
            changed = None if said["changed"] == _UNKNOWN else int(said["changed"])
            found.append(Took(said["strategy"], seconds, changed, said.get("reason", "")))
    return found


def found_late(took: Sequence[Took], changed: int | None, *, guarded: bool) -> Reason | None:
    """Why a refresh that is planned as an incremental one had better be a full one at once.

    The last ones began so and ended as full ones, which takes up to twice as long. Once may be chance; each
    further time doubles after how many full refreshes the next tries again.

    :param took: earlier refreshes, newest first.
    :param changed: rows of upstreams that have changed since; ``None`` where nobody knows.
    :param guarded: whether the plan compares something as a whole.
    """
    late: list[Took] = []
    at_once: list[Took] = []
    for one in took:
        if one.strategy != "full" or one.reason in _OTHERWISE:
            break
        if one.reason in _LATE:
            late.append(one)
        elif one.reason == "found-late" and not late:
            at_once.append(one)
    if not late or not _may_be_late_again(late[0], changed, guarded):
        return None
    if min(one.seconds for one in [*at_once, *late][:_RECENT]) < _WORTH_S:
        return None
    if len(at_once) >= min(2 ** (len(late) - 1), _TRIES) - 1:
        return None
    return Reason(
        "found-late",
        f"the last {len(late)} incremental refreshes found out when they had begun that they had to be full "
        f"ones ({late[0].reason})",
        "see what the code in brackets asks for; then, to try again at once: dbt run --full-refresh",
    )


def looks_first(took: Sequence[Took]) -> bool:
    """Whether it is looked first which groups have lost an extreme. That costs little, and to find out while
    the others are written a whole statement: nothing but refreshes in which no group has speak against it.

    :param took: earlier refreshes, newest first.
    """
    last = [one for one in took if one.strategy == "incremental"][:_SUFFICED]
    return len(last) < _SUFFICED or any(one.reason in (ASKED, ASKED_AT_ONCE) for one in last)


def computes_at_once(took: Sequence[Took]) -> bool:
    """Whether groups are computed anew at once, though their extremes are kept: that these suffice was
    tried, and some group had lost its own. Each further time doubles when it is tried again.

    :param took: earlier refreshes, newest first.
    """
    late = at_once = 0
    for one in took:
        if one.strategy != "incremental" or one.reason not in (ASKED, ASKED_AT_ONCE):
            break
        if one.reason == ASKED:
            late += 1
        elif not late:
            at_once += 1
    return at_once < min(1 << late, _TRIES) - 1


def _may_be_late_again(last: Took, changed: int | None, guarded: bool) -> bool:
    """Whether what was found then can be found now."""
    if last.reason == "guard":
        return guarded
    if last.reason == "many-keys":
        return changed is None or last.changed is None or changed >= last.changed
    return True


def slower(took: Sequence[Took], changed: int | None) -> Reason | None:
    """Why the next refresh had better be a full one: an incremental one has become slower.

    What one cost that had at least half as many changed rows is taken to grow with them. One that had fewer
    tells no more than what it takes at least: most of its time may be the same for any number of rows. So
    many more rows than ever are tried, which can be wrong once; not to try could never be put right. Of each
    strategy the best of the last few counts: one that was slow because the machine was busy decides nothing.
    It may have been the only one, or the table has grown since: so an incremental refresh is tried again
    where what it may lose is little beside what the full ones have taken since.

    :param took: earlier refreshes, newest first.
    :param changed: rows of upstreams that have changed since; ``None`` where nobody knows.
    """
    # Before a late one there was an attempt, which took its time, too.
    in_full = [one for one in took if one.strategy == "full" and one.reason not in _LATE]
    in_full = in_full or [one for one in took if one.strategy == "full"]
    incremental = [one for one in took if one.strategy == "incremental"]
    alike = [
        one
        for one in incremental
        if one.changed is None or changed is None or changed <= _ALIKE * one.changed
    ]
    full = min((one.seconds for one in in_full[:_RECENT]), default=0.0)
    expected = min(
        [_scaled(one, changed) for one in alike[:_RECENT]]
        or [one.seconds for one in incremental[:_RECENT]]
        or [0.0]
    )
    if full < _WORTH_S or expected <= _SLOWER * full:
        return None
    since = len(list(takewhile(lambda one: one.reason == "slower", took)))
    if expected - full <= since * full * _LITTLE:
        return None
    return Reason(
        "slower",
        f"earlier incremental refreshes took {expected:.0f} s or more for as many changed rows, "
        f"a full one {full:.0f} s",
    )


def _scaled(one: Took, changed: int | None) -> float:
    """What a refresh like that one would take for so many rows."""
    if not one.changed or changed is None:
        return one.seconds
    return one.seconds * max(1.0, changed / one.changed)
