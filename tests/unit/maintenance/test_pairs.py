"""Which base belongs to which change snapshot, according to the logs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt_arctic.catalog.api import Snapshot
from dbt_arctic.maintenance.pairs import base_for
from tests.unit.maintenance.conftest import commits


def newest_first(snapshots: tuple[Snapshot, ...]) -> list[Snapshot]:
    return list(reversed(snapshots))


@pytest.mark.parametrize(
    ("change_snapshot", "base_snapshot"),
    [(1, 1), (2, 2), (3, 2), (4, 4), (5, 4)],
    ids=["empty", "first, merged later", "not merged by then", "all", "after a trim"],
)
def test_a_base_belongs_to_a_commit_while_it_has_merged_nothing_later(
    change_snapshot: int, base_snapshot: int
) -> None:
    change = newest_first(commits("b", "a10", "a20", "a30", "d"))
    base = newest_first(commits("b", "m10", "m20,30", "r"))
    assert base_for(base, change, change_snapshot) == base_snapshot


def test_nothing_belongs_to_a_commit_that_is_not_on_main() -> None:
    assert base_for(newest_first(commits("b")), newest_first(commits("b")), 99) is None


def test_where_the_base_of_a_time_was_expired_there_is_none() -> None:
    change = newest_first(commits("b", "a10", "a20"))
    assert base_for(newest_first(commits(".", "m10,20", "r")), change, 1) is None
    # What an expired commit merged is not recorded; its timestamp shows that it was later.
    assert base_for(newest_first(commits(".", ".", "r", first_ms=3000)), change, 1) is None
    assert base_for(newest_first(commits(".", "r", first_ms=500)), change, 1) == 2
    assert base_for(newest_first(commits(".", "m10,20", "r")), change, 3) == 3


@given(st.lists(st.sampled_from("acd"), min_size=1, max_size=12))
def test_every_pair_keeps_trimmed_in_merged_in_history(steps: list[str]) -> None:
    """Upserts, compactions and trims in any order, with clocks that say nothing."""
    change, base = ["b"], ["b"]
    pending: list[int] = []
    unmerged: list[int] = []
    history: list[set[int]] = [set()]
    trimmed: list[set[int]] = [set()]
    merged: list[set[int]] = [set()]
    for number, step in enumerate(steps, 1):
        if step == "a":
            change.append(f"a{number}")
            pending.append(number)
            unmerged.append(number)
            history.append(history[-1] | {number})
            trimmed.append(trimmed[-1])
        elif step == "c" and unmerged:
            base.append("m" + ",".join(map(str, unmerged)))
            merged.append(merged[-1] | set(unmerged))
            unmerged.clear()
        elif step == "d":
            gone = {txn for txn in pending if txn not in unmerged}
            pending = [txn for txn in pending if txn not in gone]
            change.append("d")
            history.append(history[-1])
            trimmed.append(trimmed[-1] | gone)
    changes, bases = newest_first(commits(*change)), newest_first(commits(*base, first_ms=10**6))
    for snapshot in range(1, len(change) + 1):
        found = base_for(bases, changes, snapshot)
        assert found is not None
        assert trimmed[snapshot - 1] <= merged[found - 1] <= history[snapshot - 1]
