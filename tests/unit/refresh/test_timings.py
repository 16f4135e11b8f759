"""What earlier refreshes say of the next one."""

from __future__ import annotations

import pytest

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.refresh.timings import Strategy, Took, better_full, note, timings


def commit(at_ms: int, summary: dict[str, str]) -> Snapshot:
    return Snapshot(at_ms, None, at_ms, at_ms, "append", summary)


def test_a_history_tells_how_long_each_refresh_took() -> None:
    history = [
        commit(20_000, note("incremental", 12_500, 40)),
        commit(10_000, {"arctic.txn": "7"}),
        commit(9_000, note("full", 1_000)),
        commit(500, note("full", 600)),  # a clock that went back took no time
    ]
    assert timings([commit(9_000, note("full", 1_000, 7, "guard"))]) == [Took("full", 8.0, 7, "guard")]
    assert timings(history) == [Took("incremental", 7.5, 40), Took("full", 8.0), Took("full", 0.0)]


def took(strategy: Strategy, *seconds: float, changed: int = 100) -> list[Took]:
    return [Took(strategy, one, changed) for one in seconds]


@pytest.mark.parametrize(
    ("earlier", "changed", "slower"),
    [
        ([], 100, False),
        (took("incremental", 20), 100, False),  # never refreshed in full
        (took("full", 10), 100, False),  # never incrementally
        (took("incremental", 20) + took("full", 10), 100, True),
        (took("incremental", 13) + took("full", 10), 100, False),  # within the margin
        (took("incremental", 20, 9) + took("full", 10), 100, False),  # one was slow, another was not
        (took("incremental", 20) + took("full", 10, 30), 100, True),
        (took("incremental", 20) + took("full", 4), 100, False),  # too cheap to matter
        (took("incremental", 8) + took("full", 10), 200, True),  # twice as many rows
        (took("incremental", 20) + took("full", 10), 1, True),  # few rows are no promise
        (took("incremental", 8) + took("full", 10), -1, False),
        (took("incremental", 8, changed=-1) + took("full", 10), 10_000, False),
        (took("incremental", *[20.0] * 5, 1) + took("full", 10), 100, True),  # long ago
    ],
)
def test_what_better_full_going_by_earlier_refreshes(earlier: list[Took], changed: int, slower: bool) -> None:
    reason = better_full(earlier, changed)
    assert (reason is not None) == slower
    assert reason is None or reason.code == "slower"


def test_the_reason_tells_the_times() -> None:
    reason = better_full([Took("incremental", 20, 100), Took("full", 10)], 200)
    assert reason is not None
    assert "40 s or more" in reason.what
    assert "a full one 10 s" in reason.what


def found(*reasons: str, seconds: float = 10) -> list[Took]:
    """Newest first; an empty reason is an incremental refresh."""
    return [Took("full" if one else "incremental", seconds, 100, one) for one in reasons]


@pytest.mark.parametrize(
    ("earlier", "full"),
    [
        (found(), False),
        (found("guard"), True),
        (found("many-keys"), True),
        (found("guard", seconds=4), False),  # too cheap to matter
        (found("", "guard"), False),  # it has worked since
        (found("changed-sql"), False),  # a reason that was known before
        (found("found-late", "guard"), False),  # to try again
        (found("guard", "found-late", "guard"), True),
        (found("found-late", "found-late", "guard", "found-late", "guard"), True),
        (found("found-late", "found-late", "found-late", "guard", "found-late", "guard"), False),
        (found(*["found-late"] * 14, *["guard"] * 9), True),
        (found(*["found-late"] * 15, *["guard"] * 9), False),
        (found("guard", "", "guard", "guard"), True),
    ],
)
def test_what_has_ended_as_a_full_refresh_is_tried_again_less_and_less(
    earlier: list[Took], full: bool
) -> None:
    reason = better_full(earlier, 100)
    assert (reason is not None) == full
    if reason is not None:
        assert reason.code == "found-late"
        assert earlier[0].reason in reason.what or earlier[0].reason == "found-late"
