"""The durations of an automatic model's refreshes, as its commits record them, and what follows for the next.

A commit records when its refresh began and of which kind it was. Its own timestamp says when it ended.
Nothing else is stored, so a clone or another machine has the same history.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, Protocol

from dbt_arctic.human_readable import counted
from dbt_arctic.keyed.log import SnapshotLike
from dbt_arctic.planner.reasons import Reason

PROPERTY_REFRESH = "arctic.refresh"
"""Property of a refresh's commit, JSON: ``strategy``; ``began``, in milliseconds; ``changed``, the number of
changed rows of upstreams, -1 if unknown; ``reason``, the code of a full refresh that was no build, or why
extremes were recomputed."""

Strategy = Literal["incremental", "full"]

_UNKNOWN = -1
"""An unknown number in the property, whose form older versions of dbt-arctic read; ``None`` elsewhere."""

_MIN_SECONDS = 5.0
"""A full refresh that takes as long is compared by a factor, a faster one by seconds."""
_SLOWER = 1.3
_MAX_EXTRA = 2.0
"""The seconds that an incremental refresh may take longer than a full one of less than ``_MIN_SECONDS``."""
_SHORTEST = 1.0
"""The seconds that a refresh of no rows at all would count for."""
_COMPARABLE = 2
"""The factor of changed rows up to which an earlier duration is still comparable."""
_MAX_LOSS = 0.1
"""The share of the time of full refreshes that an attempt may lose."""
_RECENT = 5
"""The number of refreshes of each strategy that are considered."""

_LATE_REASONS = ("guard", "many-keys", "extreme", "failed")
"""Codes of full refreshes that began as incremental ones, and may do so again for the same cause."""
_NEW_START = ("", "changed-sql", "differed", "first-plan", "without-state")
"""Codes of full refreshes that began something new. A build has none."""
_MAX_INTERVAL = 16
"""At least one of this many refreshes tries to be incremental, or to continue from stored sums."""

RECOMPUTED = "extreme"
"""Of an incremental refresh: a group had lost its MIN or MAX value and had to be recomputed."""
RECOMPUTED_AT_ONCE = "extreme-before"
"""Of an incremental refresh: this was expected, so the group was recomputed at once."""
_MIN_SUFFICIENT = 4
"""After this many refreshes in a row for which stored extremes sufficed, the next one assumes that they do.
"""


class Timed(SnapshotLike, Protocol):
    """A commit with its timestamp."""

    @property
    def timestamp_ms(self) -> int:
        """The commit time in milliseconds since the epoch."""


@dataclass(frozen=True)
class RefreshTiming:
    """One refresh.

    :param changed: the number of changed rows of upstreams; ``None`` if unknown.
    :param reason: the code of a full refresh, or one of ``RECOMPUTED``; empty if none was recorded.
    """

    strategy: Strategy
    seconds: float
    changed: int | None = None
    reason: str = ""


def note(strategy: Strategy, began_ms: int, changed: int | None = None, reason: str = "") -> dict[str, str]:
    """The property of a refresh's commit."""
    recorded = {"strategy": strategy, "began": began_ms, "changed": _UNKNOWN if changed is None else changed}
    return {PROPERTY_REFRESH: json.dumps({**recorded, "reason": reason} if reason else recorded)}


def timings(history: Iterable[Timed]) -> list[RefreshTiming]:
    """The timings in a history, newest first.

    :param history: of the change table, newest first.
    """
    found = []
    for commit in history:
        text = commit.summary.get(PROPERTY_REFRESH)
        if text is not None:
            recorded = json.loads(text)
            seconds = max(0, commit.timestamp_ms - int(recorded["began"])) / 1000
            # A commit of an older version has no reason.
            changed = None if recorded["changed"] == _UNKNOWN else int(recorded["changed"])
            found.append(RefreshTiming(recorded["strategy"], seconds, changed, recorded.get("reason", "")))
    return found


def late_full_refresh(
    earlier: Sequence[RefreshTiming], changed: int | None, *, guarded: bool
) -> Reason | None:
    """The reason if a refresh that is planned as incremental should be full from the start.

    The last refreshes began as incremental ones and ended as full ones, which takes up to twice as long. One
    of them may be chance. Each further one doubles the number of full refreshes before the next attempt.

    :param earlier: earlier refreshes, newest first.
    :param changed: the number of rows of upstreams that changed since; ``None`` if unknown.
    :param guarded: whether the plan has guards.
    """
    late: list[RefreshTiming] = []
    at_once: list[RefreshTiming] = []
    for one in earlier:
        if one.strategy != "full" or one.reason in _NEW_START:
            break
        if one.reason in _LATE_REASONS:
            late.append(one)
        elif one.reason == "found-late" and not late:
            at_once.append(one)
    if not late or not _may_be_late_again(late[0], changed, guarded):
        return None
    if min(one.seconds for one in [*at_once, *late][:_RECENT]) < _MIN_SECONDS:
        return None
    if len(at_once) >= min(2 ** (len(late) - 1), _MAX_INTERVAL) - 1:
        return None
    return Reason(
        "found-late",
        f"the last {counted(len(late), 'incremental refresh')} became full ones after they had started "
        f"({late[0].reason})",
        "fix what the code in brackets requires; then, to try again immediately: dbt run --full-refresh",
    )


def full_is_fast(earlier: Sequence[RefreshTiming]) -> bool:
    """Whether one of the last full refreshes took little time, or none is known.

    :param earlier: earlier refreshes, newest first.
    """
    in_full = [one.seconds for one in earlier if one.strategy == "full"][:_RECENT]
    return min(in_full, default=0.0) < _MIN_SECONDS


def finds_lost_extremes_first(earlier: Sequence[RefreshTiming]) -> bool:
    """Whether a refresh first finds the groups that lost a MIN or MAX, before it writes the others.

    This costs little, and finding them during the write costs a whole statement. So it is only skipped after
    several refreshes in which no group lost one.

    :param earlier: earlier refreshes, newest first.
    """
    last = [one for one in earlier if one.strategy == "incremental"][:_MIN_SUFFICIENT]
    return len(last) < _MIN_SUFFICIENT or any(one.reason in (RECOMPUTED, RECOMPUTED_AT_ONCE) for one in last)


def computes_at_once(earlier: Sequence[RefreshTiming]) -> bool:
    """Whether groups are recomputed from the start although their extremes are stored.

    Earlier refreshes tried the stored extremes, and some group had lost its own. Each further such refresh
    doubles the time until the next attempt.

    :param earlier: earlier refreshes, newest first.
    """
    late = at_once = 0
    for one in earlier:
        if one.strategy != "incremental" or one.reason not in (RECOMPUTED, RECOMPUTED_AT_ONCE):
            break
        if one.reason == RECOMPUTED:
            late += 1
        elif not late:
            at_once += 1
    return at_once < min(1 << late, _MAX_INTERVAL) - 1


def _may_be_late_again(last: RefreshTiming, changed: int | None, guarded: bool) -> bool:
    """Whether the cause of the last late refresh may occur again."""
    if last.reason == "guard":
        return guarded
    if last.reason == "many-keys":
        return changed is None or last.changed is None or changed >= last.changed
    return True


def slower(earlier: Sequence[RefreshTiming], changed: int | None) -> Reason | None:
    """The reason if the next refresh should be full, because incremental ones have become slower.

    The duration of an incremental refresh with at least half as many changed rows is scaled by the number of
    rows. One with fewer rows is only a lower bound, as most of its time may be constant. So a larger number
    of rows than ever is tried once: the attempt may be slow, but without it, the choice could never be
    corrected. For each strategy, the best of the last few durations counts, so that one slow refresh on a
    busy machine decides nothing. A full refresh of less than five seconds is compared by seconds, because its
    time varies by more than a factor. An incremental refresh is tried again when its possible loss is small
    compared to the time of the full ones since: the slow one may have been the only one, or the table may
    have grown.

    :param earlier: earlier refreshes, newest first.
    :param changed: the number of rows of upstreams that changed since; ``None`` if unknown.
    """
    full = fastest_full(earlier)
    incremental = [one for one in earlier if one.strategy == "incremental"]
    comparable = [
        one
        for one in incremental
        if one.changed is None or changed is None or changed <= _COMPARABLE * one.changed
    ]
    if full is None or not incremental:
        return None
    known = [_scaled(one, changed) for one in comparable[:_RECENT]] or [
        one.seconds for one in incremental[:_RECENT]
    ]
    expected = min(known)
    if not _is_too_slow(earlier, expected, full):
        return None
    return Reason(
        "slower",
        f"earlier incremental refreshes took {expected:.0f} s or more for as many changed rows, "
        f"a full one {full:.0f} s",
    )


def expected_slower(earlier: Sequence[RefreshTiming], least: float, reading: float) -> Reason | None:
    """The reason if the first incremental refresh is expected to be slower than a full one.

    As soon as one has been tried, the durations of incremental refreshes decide. A wrong estimate would
    otherwise never be corrected, so one is tried after some full refreshes, as it is by ``slower``.

    :param earlier: earlier refreshes, newest first.
    :param least: the seconds that an incremental refresh takes at least.
    :param reading: the seconds that a full refresh of the present rows takes; the table may have grown since
        the earlier ones.
    """
    known = fastest_full(earlier)
    if known is None or any(one.strategy == "incremental" for one in earlier):
        return None
    full = max(known, reading)
    if not _is_too_slow(earlier, least, full):
        return None
    return Reason(
        "slower",
        f"statements of this size are expected to take {least:.0f} s or more in an incremental refresh, "
        f"a full one {full:.0f} s",
    )


def fastest_full(earlier: Sequence[RefreshTiming]) -> float | None:
    """The seconds of the fastest of the last full refreshes; ``None`` if none is known.

    :param earlier: earlier refreshes, newest first.
    """
    in_full = [one for one in earlier if one.strategy == "full"]
    # A late one includes the time of the failed attempt.
    early = [one for one in in_full if one.reason not in _LATE_REASONS]
    return min((one.seconds for one in (early or in_full)[:_RECENT]), default=None)


def _is_too_slow(earlier: Sequence[RefreshTiming], expected: float, full: float) -> bool:
    """Whether an incremental refresh takes too long, and another try could lose too much."""
    limit = _SLOWER * full if full >= _MIN_SECONDS else full + _MAX_EXTRA
    since = len(list(takewhile(lambda one: one.reason == "slower", earlier)))
    return expected > limit and expected - full > since * max(full, _SHORTEST) * _MAX_LOSS


def _scaled(one: RefreshTiming, changed: int | None) -> float:
    """The estimated duration of a refresh for this many changed rows."""
    if not one.changed or changed is None:
        return one.seconds
    return one.seconds * max(1.0, changed / one.changed)
