"""Keys that a reader asks for: every form, and values that are not of the key's type."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pandas
import pyarrow
import pytest

from dbt_arctic.errors import ConfigError, NullKey
from dbt_arctic.maintenance.lookup_keys import wanted_keys

TYPES = pyarrow.schema(
    [
        ("id", pyarrow.int64()),
        ("shop", pyarrow.large_string()),
        ("day", pyarrow.date32()),
        ("price", pyarrow.decimal128(12, 2)),
        ("small", pyarrow.int32()),
        ("at", pyarrow.timestamp("us", "UTC")),
        ("local", pyarrow.timestamp("us")),
        ("code", pyarrow.large_binary()),
    ]
)


NOON = datetime(2026, 1, 5, 12)


def rows_of_keys(keys: Any, *key: str) -> list[dict[str, Any]]:
    return wanted_keys(keys, key, TYPES, "lake.dev.orders").to_pylist()


@pytest.mark.parametrize(
    "keys",
    [
        [1, 2],
        (1, 2),
        iter([1, 2]),
        [(1,), (2,)],
        [{"id": 1}, {"ID": 2}],
        pyarrow.table({"ID": pyarrow.array([1, 2], pyarrow.int32()), "other": ["a", "b"]}),
    ],
)
def test_every_form_of_keys(keys: Any) -> None:
    assert rows_of_keys(keys, "id") == [{"id": 1}, {"id": 2}]


def test_one_key_needs_no_list() -> None:
    assert rows_of_keys(7, "id") == rows_of_keys({"id": 7}, "id") == [{"id": 7}]
    assert rows_of_keys("oslo", "shop") == [{"shop": "oslo"}]


def test_a_key_of_several_columns_is_a_tuple_in_its_order() -> None:
    rows = [{"shop": "oslo", "day": date(2026, 1, 5)}]
    assert rows_of_keys([("oslo", date(2026, 1, 5))], "shop", "day") == rows
    assert rows_of_keys([{"day": date(2026, 1, 5), "shop": "oslo"}], "shop", "day") == rows


def test_no_keys() -> None:
    assert rows_of_keys([], "id") == []


def test_a_decimal_with_fewer_digits_is_the_same_number() -> None:
    assert rows_of_keys([Decimal("1.5"), 2], "price") == [
        {"price": Decimal("1.50")},
        {"price": Decimal("2.00")},
    ]


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        (["1"], ("id",)),
        ([1.5], ("id",)),
        ([2**31], ("small",)),
        ([1], ("shop",)),
        ([Decimal("1.005")], ("price",)),
        (["2026-01-05"], ("day",)),
        (pyarrow.table({"id": ["1"]}), ("id",)),
        (pyarrow.table({"shop": [1]}), ("shop",)),
        (pyarrow.table({"id": [1.5]}), ("id",)),
        (pyarrow.table({"id": [True]}), ("id",)),
        (pyarrow.table({"price": [1.005]}), ("price",)),
        (pyarrow.table({"day": [NOON]}), ("day",)),
        (pyarrow.table({"day": pyarrow.array([1], pyarrow.int32())}), ("day",)),
        (pyarrow.table({"local": pyarrow.array([NOON], pyarrow.timestamp("us", "UTC"))}), ("local",)),
        ([Decimal("1.5")], ("id",)),
        ([NOON], ("day",)),
        ([NOON.replace(hour=0, tzinfo=timezone.utc)], ("day",)),
        ([5], ("day",)),
        ([5], ("at",)),
        ([NOON.replace(tzinfo=timezone.utc)], ("local",)),
        ([pandas.Timestamp("2026-01-05 00:00:00.000000001")], ("at",)),
        ([b"oslo"], ("shop",)),
        (["\ud800"], ("shop",)),
        (["00"], ("code",)),
    ],
)
def test_a_value_of_another_type_is_no_key(keys: Any, key: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError, match=f"a value of {key[0]} is not of the type of the column"):
        rows_of_keys(keys, *key)


def test_a_key_lacks_a_column() -> None:
    with pytest.raises(ConfigError, match=r"\(1,\) is not a key of lake.dev.orders"):
        rows_of_keys([1], "id", "shop")
    with pytest.raises(ConfigError, match="the keys lack the column shop"):
        rows_of_keys([{"id": 1}], "id", "shop")


@pytest.mark.parametrize(
    "keys",
    [
        [None],
        [{"id": 1}, {"shop": "x"}],
        pyarrow.table({"id": [1, None]}),
        pyarrow.table({"id": [None]}),
        pandas.DataFrame({"id": [1, None]}),
        [float("nan")],
    ],
)
def test_no_key_is_null(keys: Any) -> None:
    with pytest.raises(NullKey):
        rows_of_keys(keys, "id")


def test_a_missing_date_of_pandas_is_null() -> None:
    with pytest.raises(NullKey):
        rows_of_keys([pandas.NaT], "day")


@pytest.mark.parametrize(
    "keys",
    [
        pyarrow.table({"shop": pyarrow.array(["oslo"], pyarrow.string_view())}),  # as Polars has it
        pandas.DataFrame({"shop": ["oslo"]}),
        pandas.DataFrame({"shop": pandas.Categorical(["oslo"], ["rome", "oslo"])}),
        pyarrow.table({"shop": pyarrow.chunked_array([["oslo"], []])}),
        pyarrow.chunked_array([["oslo"]]),
    ],
)
def test_text_of_any_library(keys: Any) -> None:
    assert rows_of_keys(keys, "shop") == [{"shop": "oslo"}]


@pytest.mark.parametrize("values", [[], pandas.Series([], dtype=object)])
def test_a_data_frame_without_rows_has_no_types(values: Any) -> None:
    assert rows_of_keys(pandas.DataFrame({"shop": values}), "shop") == []


def test_values_that_are_exact_in_another_type() -> None:
    day = [{"day": date(2026, 1, 5)}]
    assert rows_of_keys([NOON.replace(hour=0)], "day") == day
    assert rows_of_keys(pandas.DataFrame({"day": [NOON.replace(hour=0)]}), "day") == day
    assert rows_of_keys(pandas.DataFrame({"id": [1.0, 2.0]}), "id") == [{"id": 1}, {"id": 2}]
    assert rows_of_keys([NOON], "at") == rows_of_keys(pandas.DataFrame({"at": [NOON]}), "at")
    assert rows_of_keys(pyarrow.table({"price": [2]}), "price") == [{"price": Decimal("2.00")}]
