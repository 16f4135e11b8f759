"""Each planner that is wrong on purpose is caught by a random case."""

from __future__ import annotations

import pytest

from tests.planner.mutants import MUTANTS, case_for
from tests.planner.oracle import Database, judge

CATCHING = {}
"""For each mutant seeds that catch it. After a change of the random queries: ``tests.planner.mutants``."""


@pytest.fixture(scope="module")
def database() -> Database:
    return Database()


def test_each_mutant_has_seeds() -> None:
    assert CATCHING.keys() == MUTANTS.keys()
    assert all(CATCHING.values())


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_planner_is_caught(name: str, database: Database) -> None:
    cases = [case_for(name, seed) for seed in CATCHING[name]]
    with MUTANTS[name]() as sources:
        assert [judge(database, case, sources).outcome for case in cases] == ["wrong"] * len(cases)
    # The rule itself is right, and is back in its place.
    assert "wrong" not in [judge(database, case).outcome for case in cases]
