"""Rows of tables whose columns are being changed, with the types of the view."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow
import pytest

from dbt_arctic.maintenance.shown_fields import with_shown_fields

PAIR = pyarrow.struct([("New", pyarrow.large_string()), ("a", pyarrow.int64())])


@pytest.mark.parametrize(
    ("stored", "values", "shown", "expected"),
    [
        (pyarrow.int64(), [1, None], "int", [1, None]),
        (pyarrow.float64(), [0.5, None], "float", [0.5, None]),
        (pyarrow.decimal128(20, 2), [Decimal("1.50"), None], "decimal(5,2)", [Decimal("1.50"), None]),
        (PAIR, [{"New": "x", "a": 1}, None, {"a": None}], "struct<a:int>", [{"a": 1}, None, {"a": None}]),
        (
            pyarrow.large_list(PAIR),
            [[{"New": "x", "a": 1}, None], None, []],
            "array<struct<a:int>>",
            [[{"a": 1}, None], None, []],
        ),
        (
            pyarrow.map_(pyarrow.large_string(), PAIR),
            [[("k", {"New": "x", "a": 1}), ("l", None)], None, []],
            "map<string,struct<a:int>>",
            [[("k", {"a": 1}), ("l", None)], None, []],
        ),
        (pyarrow.large_string(), ["x"], "string", ["x"]),
        (pyarrow.large_string(), ["x"], "void", [None]),
        (
            pyarrow.large_list(PAIR),
            [[{"New": "x", "a": 1}, None], None],
            "array<struct<a:int,new:void,missing:void>>",
            [[{"a": 1, "new": None, "missing": None}, None], None],
        ),
    ],
)
def test_fields_and_types_are_those_of_the_view(
    stored: pyarrow.DataType, values: list[Any], shown: str, expected: list[Any]
) -> None:
    column = pyarrow.chunked_array([pyarrow.array(values, stored), pyarrow.array(values, stored)])
    rows = pyarrow.table({"id": pyarrow.chunked_array([[1] * len(values)] * 2), "v": column})
    types = {"id": "bigint", "v": shown}
    found = with_shown_fields(rows, types)
    assert found.column("v").to_pylist() == expected * 2
    assert found.column_names == ["id", "v"]
    assert with_shown_fields(rows.slice(1), types).column("v").to_pylist() == (expected * 2)[1:]
    nothing = with_shown_fields(rows.slice(0, 0), types)
    assert (nothing.num_rows, nothing.schema) == (0, found.schema)
