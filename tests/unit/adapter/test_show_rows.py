"""Arrow tables as the rows that commands print."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow
import pytest

from dbt_arctic.adapter.show_rows import rows_of

LIST = pyarrow.large_list(pyarrow.int32())
KEY = pyarrow.struct([("a", pyarrow.int32())])


@pytest.mark.parametrize(
    ("type_", "value", "cell", "in_json"),
    [
        (pyarrow.decimal128(10, 2), Decimal("1.5"), Decimal("1.50"), Decimal("1.50")),
        (pyarrow.large_binary(), b"\x00\xff", "00FF", b"\x00\xff"),
        (pyarrow.float64(), float("inf"), "Infinity", float("inf")),
        (pyarrow.date32(), date(2026, 1, 5), date(2026, 1, 5), date(2026, 1, 5)),
        (pyarrow.large_list(pyarrow.int32()), [1, None], "[1, null]", [1, None]),
        (pyarrow.struct([("x y", pyarrow.large_string())]), {"x y": 'a"'}, '{"x y": "a\\""}', {"x y": 'a"'}),
        (pyarrow.map_(pyarrow.int32(), pyarrow.date32()), [(7, None)], '{"7": null}', {7: None}),
        (pyarrow.map_(KEY, pyarrow.int32()), [({"a": 1}, 2)], '{"{\\"a\\": 1}": 2}', [({"a": 1}, 2)]),
        (pyarrow.map_(LIST, pyarrow.int32()), [([1, 2], 3)], '{"[1, 2]": 3}', [([1, 2], 3)]),
        (pyarrow.large_list(KEY), None, None, None),
    ],
    ids=str,
)
def test_values_are_those_of_a_query(type_: pyarrow.DataType, value: Any, cell: Any, in_json: Any) -> None:
    table = pyarrow.table({"v": pyarrow.array([value], type_)})
    assert rows_of(table, as_cells=True) == [(cell,)]
    ((found,),) = rows_of(table, as_cells=False)
    assert (
        list(found.items()) if isinstance(in_json, list) and isinstance(found, dict) else found
    ) == in_json


def test_a_year_that_python_does_not_have() -> None:
    days = pyarrow.array([2_932_897, 0], pyarrow.int32()).cast(pyarrow.date32())
    assert rows_of(pyarrow.table({"day": days}), as_cells=True) == [("10000-01-01",), ("1970-01-01",)]


def test_a_year_that_python_does_not_have_inside_of_another_value() -> None:
    days = pyarrow.array([2_932_897], pyarrow.int32()).cast(pyarrow.date32())
    lists = pyarrow.LargeListArray.from_arrays([0, 1], days)
    maps = pyarrow.MapArray.from_arrays([0, 1], days, lists)
    structs = pyarrow.StructArray.from_arrays([maps, pyarrow.array([1])], ["m", "n"])
    cell = '{"m": {"10000-01-01": ["10000-01-01"]}, "n": 1}'
    assert rows_of(pyarrow.table({"v": structs}), as_cells=True) == [(cell,)]


def test_no_columns_and_no_rows() -> None:
    assert rows_of(pyarrow.table({}), as_cells=True) == []
    assert rows_of(pyarrow.table({"a": pyarrow.array([], pyarrow.int32())}), as_cells=True) == []
