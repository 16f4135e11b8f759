"""What earlier refreshes say of the next one."""

from __future__ import annotations

import pytest

from dbt_arctic.auto.timings import (
    RECOMPUTED,
    RECOMPUTED_AT_ONCE,
    RefreshTiming,
    Strategy,
    computes_at_once,
    expected_slower,
    finds_lost_extremes_first,
    late_full_refresh,
    note,
    slower,
    timings,
)
from dbt_arctic.catalog.api import Snapshot


def commit(at_ms: int, summary: dict[str, str]) -> Snapshot:
    return Snapshot(at_ms, None, at_ms, at_ms, "append", summary)


def test_a_history_contains_the_duration_of_each_refresh() -> None:
    history = [
        commit(20_000, note("incremental", 12_500, 40)),
        commit(10_000, {"arctic.txn": "7"}),
        commit(9_000, note("full", 1_000)),
        commit(500, note("full", 600)),  # a clock that went back took no time
    ]
    assert timings([commit(9_000, note("full", 1_000, 7, "guard"))]) == [
        RefreshTiming("full", 8.0, 7, "guard")
    ]
    # An unknown number is written in the format of versions before 0.2.0.
    assert '"changed": -1' in note("full", 1_000)["arctic.refresh"]
    assert timings(history) == [
        RefreshTiming("incremental", 7.5, 40),
        RefreshTiming("full", 8.0),
        RefreshTiming("full", 0.0),
    ]


def runs(strategy: Strategy, *seconds: float, changed: int | None = 100) -> list[RefreshTiming]:
    return [RefreshTiming(strategy, one, changed) for one in seconds]


@pytest.mark.parametrize(
    ("earlier", "changed", "expected"),
    [
        ([], 100, False),
        (runs("incremental", 20), 100, False),  # never refreshed in full
        (runs("full", 10), 100, False),  # never incrementally
        (runs("incremental", 20) + runs("full", 10), 100, True),
        (runs("incremental", 13) + runs("full", 10), 100, False),  # within the margin
        (runs("incremental", 20, 9) + runs("full", 10), 100, False),  # one was slow, another was not
        (runs("incremental", 20) + runs("full", 10, 30), 100, True),
        # A short full refresh is compared by seconds.
        (runs("incremental", 20) + runs("full", 4), 100, True),
        (runs("incremental", 5.9) + runs("full", 4), 100, False),
        (runs("incremental", 6.1) + runs("full", 4), 100, True),
        (runs("incremental", 6.1, 6.2) + runs("full", 4), 100, True),
        (runs("incremental", 5.9, 20) + runs("full", 4), 100, False),
        (runs("incremental", 2.4, 2.4) + runs("full", 0.5), 100, False),
        (runs("incremental", 2.6, 2.6) + runs("full", 0.5), 100, True),
        (runs("incremental", 8) + runs("full", 10), 200, True),  # twice as many rows
        (runs("incremental", 20) + runs("full", 10), 1, True),  # few rows are no promise
        (runs("incremental", 8) + runs("full", 10), None, False),
        (runs("incremental", 8, changed=None) + runs("full", 10), 10_000, False),
        (runs("incremental", *[20.0] * 5, 1) + runs("full", 10), 100, True),  # long ago
        # Ten times as many rows need not take ten times as long: it is tried.
        (runs("incremental", 8, changed=10) + runs("full", 10), 100, False),
        (
            runs("incremental", 20, changed=10) + runs("full", 10),
            100,
            True,
        ),  # fewer rows took too long
        (
            runs("incremental", 20) + runs("incremental", 1, changed=10) + runs("full", 10),
            100,
            True,
        ),
        # A late one took as long as its attempt and the refresh together.
        (
            [
                *runs("incremental", 20),
                RefreshTiming("full", 30, 100, "guard"),
                RefreshTiming("full", 10),
            ],
            100,
            True,
        ),
        ([*runs("incremental", 20), RefreshTiming("full", 18, 100, "guard")], 100, False),
    ],
)
def test_what_was_slower_is_refreshed_in_full(
    earlier: list[RefreshTiming], changed: int, expected: bool
) -> None:
    reason = slower(earlier, changed)
    assert (reason is not None) == expected
    assert reason is None or reason.code == "slower"


@pytest.mark.parametrize(
    ("seconds", "since", "expected"),
    [(20, 0, True), (20, 9, True), (20, 10, False), (14, 4, False), (200, 100, True)],
)
def test_what_was_slower_is_tried_again_when_it_may_lose_little(
    seconds: float, since: int, expected: bool
) -> None:
    earlier = [
        *[RefreshTiming("full", 10, 100, "slower")] * since,
        *runs("incremental", seconds),
        RefreshTiming("full", 10),
    ]
    assert (slower(earlier, 100) is not None) == expected


@pytest.mark.parametrize(("since", "expected"), [(0, True), (99, True), (100, False)])
def test_what_takes_no_time_in_full_is_tried_again_as_well(since: int, expected: bool) -> None:
    earlier = [
        *[RefreshTiming("full", 0, 100, "slower")] * since,
        *runs("incremental", 10),
        RefreshTiming("full", 0),
    ]
    assert (slower(earlier, 100) is not None) == expected


def test_the_reason_contains_the_durations() -> None:
    reason = slower([RefreshTiming("incremental", 20, 100), RefreshTiming("full", 10)], 200)
    assert reason is not None
    assert "40 s or more" in reason.what
    assert "a full one 10 s" in reason.what


FULL_OF_TEN = [RefreshTiming("full", 10)]


@pytest.mark.parametrize(
    ("earlier", "least", "reading", "expected"),
    [
        ([], 100, 0, False),  # never refreshed in full
        (FULL_OF_TEN, 12.9, 0, False),
        (FULL_OF_TEN, 13.1, 0, True),
        (runs("full", 4), 5.9, 0, False),
        (runs("full", 4), 6.1, 0, True),
        (FULL_OF_TEN, 20, 16, False),  # the table has grown since
        (runs("incremental", 8) + FULL_OF_TEN, 20, 0, False),  # it has been tried
        # It is tried once this may lose little.
        ([*[RefreshTiming("full", 10, 100, "slower")] * 9, *FULL_OF_TEN], 20, 0, True),
        ([*[RefreshTiming("full", 10, 100, "slower")] * 10, *FULL_OF_TEN], 20, 0, False),
    ],
)
def test_what_is_expected_to_be_slower_is_not_tried_first(
    earlier: list[RefreshTiming], least: float, reading: float, expected: bool
) -> None:
    reason = expected_slower(earlier, least, reading)
    assert (reason is not None) == expected
    assert reason is None or reason.code == "slower"


def ended(*reasons: str, seconds: float = 10) -> list[RefreshTiming]:
    """Newest first; an empty reason is an incremental refresh."""
    return [RefreshTiming("full" if one else "incremental", seconds, 100, one) for one in reasons]


@pytest.mark.parametrize(
    ("earlier", "full"),
    [
        (ended(), False),
        (ended("guard"), False),  # may be chance
        (ended("guard", "guard"), True),
        (ended("many-keys", "failed"), True),
        (ended("guard", "guard", seconds=4), False),  # too cheap to matter
        ([*ended("guard"), *ended("guard", seconds=4)], False),
        # It was cheap when the table was small.
        ([*ended(*["guard"] * 5), *ended("guard", seconds=1)], True),
        (ended("", "guard", "guard"), False),  # it has worked since
        (ended("guard", "", "guard", "guard"), False),
        (ended("found-late", "guard", "", "guard", "guard"), False),
        (ended("changed-sql", "guard", "guard"), False),  # another query
        (ended("changed-sql"), False),  # a reason that was known before
        (
            ended("many-changes", "guard", "history-gone", "guard"),
            True,
        ),  # known before, and nothing new
        (ended("found-late", "guard", "guard"), False),  # to try again
        (ended("guard", "found-late", "guard", "guard"), True),
        (ended(*["found-late"] * 2, "guard", "found-late", "guard", "guard"), True),
        (ended(*["found-late"] * 3, "guard", "found-late", "guard", "guard"), False),
        (ended(*["found-late"] * 6, *["guard"] * 4), True),
        (ended(*["found-late"] * 7, *["guard"] * 4), False),
        (ended(*["found-late"] * 14, *["guard"] * 9), True),
        (ended(*["found-late"] * 15, *["guard"] * 9), False),
    ],
)
def test_what_has_ended_as_a_full_refresh_is_tried_again_less_and_less(
    earlier: list[RefreshTiming], full: bool
) -> None:
    reason = late_full_refresh(earlier, 100, guarded=True)
    assert (reason is not None) == full
    assert reason is None or reason.code == "found-late"


def sums_with_reasons(*reasons: str) -> list[RefreshTiming]:
    """Newest first; an empty reason is a refresh for which the stored sums have sufficed."""
    return [RefreshTiming("incremental", 1, 100, one) for one in reasons]


@pytest.mark.parametrize(
    ("earlier", "at_once"),
    [
        (sums_with_reasons(), False),
        (sums_with_reasons("", RECOMPUTED), False),
        (sums_with_reasons(RECOMPUTED), True),
        (sums_with_reasons(RECOMPUTED_AT_ONCE, RECOMPUTED), False),  # to try again
        (sums_with_reasons(RECOMPUTED, RECOMPUTED_AT_ONCE, RECOMPUTED), True),
        (sums_with_reasons(*[RECOMPUTED_AT_ONCE] * 2, RECOMPUTED, RECOMPUTED_AT_ONCE, RECOMPUTED), True),
        (sums_with_reasons(*[RECOMPUTED_AT_ONCE] * 3, RECOMPUTED, RECOMPUTED_AT_ONCE, RECOMPUTED), False),
        (sums_with_reasons(*[RECOMPUTED_AT_ONCE] * 14, *[RECOMPUTED] * 9), True),
        (sums_with_reasons(*[RECOMPUTED_AT_ONCE] * 15, *[RECOMPUTED] * 9), False),
        ([RefreshTiming("full", 1, 100, "many-changes"), *sums_with_reasons(RECOMPUTED, RECOMPUTED)], False),
    ],
)
def test_groups_are_computed_at_once_where_some_have_lost_their_extremes_before(
    earlier: list[RefreshTiming], at_once: bool
) -> None:
    assert computes_at_once(earlier) == at_once


@pytest.mark.parametrize(
    ("earlier", "first"),
    [
        (sums_with_reasons(), True),
        (sums_with_reasons("", ""), True),
        (sums_with_reasons("", "", "", RECOMPUTED), True),
        (sums_with_reasons("", "", "", "", RECOMPUTED), False),
        (sums_with_reasons(RECOMPUTED, "", "", "", ""), True),
        (sums_with_reasons(RECOMPUTED_AT_ONCE, "", "", "", ""), True),
        (sums_with_reasons("", "", "", ""), False),
        ([RefreshTiming("full", 1, 100, "many-changes"), *sums_with_reasons("", "", "", "")], False),
        (
            [
                *sums_with_reasons("", "", ""),
                RefreshTiming("full", 1, 100),
                *sums_with_reasons("", RECOMPUTED),
            ],
            False,
        ),
    ],
)
def test_it_is_looked_which_groups_have_lost_an_extreme_unless_none_has_lately(
    earlier: list[RefreshTiming], first: bool
) -> None:
    assert finds_lost_extremes_first(earlier) == first


def test_what_cannot_be_found_late_this_time_is_tried() -> None:
    guards, keys = ended("guard", "guard"), ended("many-keys", "many-keys")
    assert late_full_refresh(guards, 100, guarded=True) is not None
    assert late_full_refresh(guards, 100, guarded=False) is None
    assert late_full_refresh(keys, 100, guarded=False) is not None
    assert late_full_refresh(keys, 99, guarded=False) is None  # fewer rows have fewer keys
    assert late_full_refresh(keys, None, guarded=False) is not None


def test_the_reason_contains_what_was_found() -> None:
    reason = late_full_refresh(ended("guard", "many-keys"), 100, guarded=True)
    assert reason is not None
    assert "the last 2" in reason.what
    assert "(guard)" in reason.what
