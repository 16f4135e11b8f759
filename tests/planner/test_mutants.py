"""Each planner that is wrong on purpose is caught by a random case."""

from __future__ import annotations

import pytest

from tests.extent import extent
from tests.planner.mutants import MUTANTS, case_for
from tests.planner.oracle import Database, judge

CATCHING = {
    "after_images_only": (0, 2, 6),
    "current_state_for_the_old_one": (0, 3, 5),
    "either_without_what_is_gone": (63, 133, 186),
    "scan_without_new_rows": (0, 5, 6),
    "project_without_its_subqueries": (0, 1, 2),
    "filter_without_its_subqueries": (12, 56, 84),
    "subquery_of_the_new_state_only": (56, 84, 161),
    "outer_join_without_its_null_side": (6, 41, 62),
    "full_join_without_its_null_sides": (166, 458),
    "outer_join_without_its_kept_side": (6, 44, 55),
    "inner_join_of_the_left_side_only": (28, 48, 78),
    "outer_join_restricted_on_its_kept_side": (28, 48, 107),
    "logged_rows_for_keys_of_others": (1, 2, 3),
    "logged_rows_for_keys_of_several": (1, 5, 7),
    "group_of_the_new_state_only": (0, 2, 3),
    "grouping_sets_restricted_as_groups": (0, 43, 57),
    "window_of_the_changed_rows_only": (133, 135, 160),
    "window_restricted_to_some_of_a_partition": (2, 36, 37),
    "windows_over_each_other_by_the_partition_of_one": (7, 18, 24),
    "union_of_the_first_part_only": (0, 63, 75),
    "set_operation_of_the_left_side_only": (71, 298),
    "project_restricted_by_plain_columns_only": (0, 2, 28),
    "filter_restricted_without_its_conditions": (6, 11, 16),
    "union_restricted_in_its_first_part_only": (0, 82, 142),
    "set_operation_restricted_on_its_right_side_only": (44, 54, 68),
    "lateral_view_restricted_without_its_own_columns": (203, 301),
    "lateral_view_of_the_new_state_only": (30, 42, 72),
    "limit_as_a_filter": (7, 11, 12),
    "no_guards": (101, 324, 524),
    "in_restricted_where_unknown_counts": (6, 10, 24),
    "conditions_of_subqueries_kept_for_changed_rows": (143, 256, 384),
    "settled_though_it_has_changed": (256, 384, 427),
    "signs_without_lost_rows": (0, 2, 18),
    "signs_of_a_join_with_one_state": (67, 190, 239),
    "signs_past_a_subquery_that_changed": (56, 84, 114),
    "signs_of_groups_without_the_old_ones": (0, 5, 6),
    "signs_of_the_first_part_of_a_union": (0, 97, 107),
    "signs_of_a_lateral_view_that_only_gains": (42, 47, 67),
    "shared_lookup_without_those_that_were_lost": (6, 7, 10),
    "shared_lookup_of_both_states": (6, 7, 10),
    "values_confined_by_what_has_changed": (32, 44, 53),
    "rest_joined_without_what_links_it_to_the_changed": (559, 1139, 1799),
    "rest_joined_with_one_changed_relation_only": (67, 190, 238),
    "range_of_the_first_part_only": (28, 38, 49),
    "met_by_the_first_of_several": (195, 233, 256),
    "met_by_any_rows": (256, 264, 409),
    "parts_excluded_though_asked_for": (0, 2, 3),
    "columns_equal_that_are_compared": (14, 28, 33),
    "rows_beside_a_changed_row_left_out": (5, 12, 16),
    "groups_of_the_first_set_only": (1, 3, 5),
    "lateral_rows_numbered_together": (3, 4, 30),
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
    cases = [case_for(name, seed) for seed in CATCHING[name][: extent(1, None)]]
    with MUTANTS[name]() as sources:
        assert [judge(database, case, sources).outcome for case in cases] == ["wrong"] * len(cases)
    # The rule itself is right, and is back in its place.
    assert "wrong" not in [judge(database, case).outcome for case in cases]
