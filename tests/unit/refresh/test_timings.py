"""What earlier refreshes say of the next one."""

from __future__ import annotations

import pytest

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.refresh.timings import Strategy, Took, is_slower, note, timings


def commit(at_ms: int, summary: dict[str, str]) -> Snapshot:
    return Snapshot(at_ms, None, at_ms, at_ms, "append", summary)


def test_a_history_tells_how_long_each_refresh_took() -> None:
    history = [
        commit(20_000, note("incremental", 12_500, 40)),
        commit(10_000, {"arctic.txn": "7"}),
        commit(9_000, note("full", 1_000)),
        commit(500, note("full", 600)),  # a clock that went back took no time
    ]
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
def test_what_is_slower_going_by_earlier_refreshes(earlier: list[Took], changed: int, slower: bool) -> None:
    reason = is_slower(earlier, changed)
    assert (reason is not None) == slower
    assert reason is None or reason.code == "slower"


def test_the_reason_tells_the_times() -> None:
    reason = is_slower([Took("incremental", 20, 100), Took("full", 10)], 200)
    assert reason is not None
    assert "40 s or more" in reason.what
    assert "a full one 10 s" in reason.what
