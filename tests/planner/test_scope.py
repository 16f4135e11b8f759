"""Names that the planner makes."""

from __future__ import annotations

import pytest

from dbt_arctic.planner.algebra.operators import SIGN_OF_ROW
from dbt_arctic.planner.auxiliary.auxiliary_view import ONE
from dbt_arctic.planner.auxiliary.state_columns import ROWS
from dbt_arctic.planner.delta.shared_lookups import SIDE
from dbt_arctic.planner.delta.weighted_delta import SIGN
from dbt_arctic.planner.spark.identifiers import Identifiers


@pytest.mark.parametrize(
    "ours", [SIGN_OF_ROW, SIDE, SIGN, ONE, ROWS, "_sum_1", "_COUNT_2", "_distinct_1", "_value"]
)
def test_no_column_of_a_query_is_called_as_one_that_we_add(ours: str) -> None:
    names = Identifiers()
    assert names(ours).lower() != ours.lower()
    assert names(ours) != names(ours)


def test_no_two_names_are_equal_whatever_their_case() -> None:
    names = Identifiers()
    made = [names(wish) for wish in ("a", "A", "a_2", "a", "b", "_signs")]
    assert len({name.lower() for name in made}) == len(made)
    assert (made[0], made[4], made[5]) == ("a", "b", "_signs")
