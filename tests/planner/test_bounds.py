"""Where rows are looked for between bounds."""

from __future__ import annotations

import pytest

from dbt_arctic.keyed.value_range import ValueRange
from dbt_arctic.planner.algebra.operators import KeySemiJoin, Project, Scan, own_names
from dbt_arctic.planner.algebra.scalars import column
from dbt_arctic.planner.delta.bounds import fitting, is_ordered_as

NUMBERS, TEXTS = ValueRange("9", "10"), ValueRange("'10'", "'9'")
DAYS = ValueRange("DATE '2026-01-01'", "DATE '2026-01-02'")


@pytest.mark.parametrize(
    ("bounds", "type_", "is_ordered"),
    [
        (NUMBERS, "bigint", True),
        (NUMBERS, None, True),
        (DAYS, "timestamp", True),
        (TEXTS, "string", True),
        (TEXTS, "bigint", False),
        (TEXTS, None, False),
    ],
)
def test_texts_have_an_order_of_their_own(bounds: ValueRange, type_: str | None, is_ordered: bool) -> None:
    assert is_ordered_as(bounds, type_) is is_ordered


def test_bounds_that_do_not_fit_one_column_are_left_out() -> None:
    keys = Scan("keys", "new", own_names(["key_0", "key_1"]))
    rows = Scan("rows", "new", own_names(["id", "name"]))
    pairs = ((column("id"), "key_0"), (column("name"), "key_1"))
    node = Project(KeySemiJoin(rows, keys, pairs), (("name", column("name")),))
    types = {"id": "bigint", "name": "string"}
    assert fitting({"key_0": NUMBERS, "key_1": TEXTS}, [node], types) == {"key_0": NUMBERS, "key_1": TEXTS}
    assert fitting({"key_0": TEXTS, "key_1": TEXTS}, [node], types) == {"key_1": TEXTS}
    assert fitting({"key_1": TEXTS}, [node], {}) == {}
