"""Each planner that is wrong on purpose is caught by a random case."""

from __future__ import annotations

import pytest

from tests.planner.mutants import MUTANTS, case_for
from tests.planner.oracle import Database, judge

CATCHING = {
    "after_images_only": (
        2,
        6,
        11,
    ),
    "current_state_for_the_old_one": (
        13,
        22,
        30,
    ),
    "either_without_what_is_gone": (
        133,
        178,
        297,
    ),
    "scan_without_new_rows": (
        5,
        11,
        12,
    ),
    "project_without_its_subqueries": (
        232,
        417,
        498,
    ),
    "filter_without_its_subqueries": (
        12,
        84,
        114,
    ),
    "subquery_of_the_new_state_only": (
        84,
        154,
        232,
    ),
    "outer_join_without_its_null_side": (
        6,
        107,
        113,
    ),
    "full_join_without_its_null_sides": (
        136,
        181,
        260,
    ),
    "outer_join_without_its_kept_side": (
        55,
        63,
        70,
    ),
    "inner_join_of_the_left_side_only": (
        17,
        28,
        48,
    ),
    "outer_join_restricted_on_its_kept_side": (
        17,
        28,
        48,
    ),
    "logged_rows_for_keys_of_others": (
        10,
        114,
        333,
    ),
    "logged_rows_for_keys_of_several": (1403,),
    "group_of_the_new_state_only": (
        2,
        11,
        13,
    ),
    "grouping_sets_restricted_as_groups": (
        57,
        62,
    ),
    "window_of_the_changed_rows_only": (
        133,
        160,
        220,
    ),
    "window_restricted_to_some_of_a_partition": (
        2,
        36,
        37,
    ),
    "union_of_the_first_part_only": (
        128,
        138,
        150,
    ),
    "set_operation_of_the_left_side_only": (
        295,
        435,
    ),
    "lateral_view_of_the_new_state_only": (
        42,
        63,
        304,
    ),
    "limit_as_a_filter": (
        7,
        11,
        12,
    ),
    "no_guards": (101,),
    "in_restricted_where_unknown_counts": (6, 10, 24),
    "conditions_of_subqueries_kept_for_changed_rows": (
        107,
        143,
    ),
    "settled_though_it_has_changed": (
        577,
        578,
        717,
    ),
    "signs_without_lost_rows": (2, 18, 27),
    "signs_of_a_join_with_one_state": (67, 181, 190),
    "signs_past_a_subquery_that_changed": (84, 114, 180),
    "signs_of_groups_without_the_old_ones": (5, 6, 7),
    "gathered_rows_without_those_that_were_lost": (
        6,
        7,
        10,
    ),
    "gathered_rows_of_both_states": (
        6,
        7,
        10,
    ),
    "values_confined_by_what_has_changed": (32, 44, 53),
    "rest_joined_without_what_links_it_to_the_changed": (559, 1139, 1799),
    "rest_joined_with_one_changed_relation_only": (67, 190, 238),
    "range_of_the_first_part_only": (1869,),
    "met_by_the_first_of_several": (10, 114, 256),
    "met_by_any_rows": (10, 114, 181),
}
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
