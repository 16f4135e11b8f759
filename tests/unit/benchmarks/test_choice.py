"""What the benchmark of the choice counts: its own arithmetic."""

from __future__ import annotations

import pytest
import sqlglot

from benchmarks.choice.queries import KEYS, QUERIES
from benchmarks.choice.verdict import Measured, Way, report, verdict_of


def measured(seconds: float, other: float, chosen: Way = "incremental", model: str = "m") -> Measured:
    return Measured(model, 1, chosen, "sums", seconds, other)


@pytest.mark.parametrize(
    ("seconds", "other", "is_right"),
    [(1.0, 2.0, True), (2.0, 2.0, True), (2.19, 2.0, True), (2.21, 2.0, False), (2.0, 1.0, False)],
)
def test_a_choice_is_right_if_the_other_way_is_not_faster(
    seconds: float, other: float, is_right: bool
) -> None:
    assert measured(seconds, other).is_right == is_right
    assert measured(seconds, other, "full").is_right == is_right


@pytest.mark.parametrize(
    ("seconds", "other", "is_broken"),
    [
        # A full refresh of at least five seconds: by a factor.
        (13.0, 10.0, False),
        (13.1, 10.0, True),
        (6.5, 5.0, False),
        (6.6, 5.0, True),
        # A shorter one: by seconds.
        (6.9, 4.9, False),
        (7.0, 4.9, True),
        (2.1, 0.2, False),
    ],
)
def test_the_bound_is_a_factor_for_long_refreshes_and_seconds_for_short_ones(
    seconds: float, other: float, is_broken: bool
) -> None:
    assert measured(seconds, other).breaks_the_bound == is_broken
    assert not measured(seconds, other, "full").breaks_the_bound, "a full refresh is no more than itself"


def test_the_verdict_counts_and_sorts_by_what_was_lost() -> None:
    found = verdict_of(
        [
            measured(1.0, 2.0, model="won"),
            measured(3.0, 2.0, model="lost a second"),
            measured(9.0, 2.0, model="lost seven"),
            measured(4.0, 1.0, "full", model="lost three"),
        ]
    )
    assert (found.choices, found.right) == (4, 1)
    assert [one.model for one in found.losses] == ["lost seven", "lost three", "lost a second"]
    assert [one.model for one in found.broken] == ["lost seven"]
    assert not found.holds
    lines = report(found, worst=2).splitlines()
    assert lines[0].startswith("lost seven, round 1: incremental (sums) in 9.00 s, the other way 2.00 s")
    assert lines[0].endswith("more than allowed")
    assert lines[1].startswith("lost three, round 1: full")
    assert lines[2] == "choice: 4 choices, 1 right (25.0%), 1 slower than allowed"


@pytest.mark.parametrize(("wrong", "holds"), [(1, True), (2, False)])
def test_five_percent_may_be_wrong(wrong: int, holds: bool) -> None:
    found = verdict_of([measured(1.0, 2.0)] * (20 - wrong) + [measured(3.0, 2.0)] * wrong)
    assert found.holds == holds


def test_nothing_to_choose_is_nothing_wrong() -> None:
    assert verdict_of([]).holds
    assert verdict_of([]).share == 1.0


@pytest.mark.parametrize("name", QUERIES)
def test_each_query_selects_its_key(name: str) -> None:
    selected = {one.lower() for one in sqlglot.parse_one(QUERIES[name], dialect="spark").named_selects}
    assert KEYS.keys() == QUERIES.keys()
    assert set(KEYS[name]) <= selected
