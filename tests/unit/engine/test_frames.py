"""What Arrow data becomes in Spark: the same values in types that Spark has, or an error."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dbt_arctic.adapter import append
from dbt_arctic.engine import frames
from dbt_arctic.errors import ConfigError, PythonModelFailed

NS, US = pa.timestamp("ns"), pa.timestamp("us")
ONE_NANOSECOND = [
    pa.array([1], NS),
    pa.array([None, 1001], pa.timestamp("ns", "Europe/Berlin")),
    pa.array([1], pa.duration("ns")),
    pa.array([[1000, 1]], pa.list_(NS)),
    pa.array([[1000, 1]], pa.large_list(NS)),
    pa.array([[1000, 1]], pa.list_(NS, 2)),
    pa.array([{"a": {"b": [1]}}], pa.struct([("a", pa.struct([("b", pa.list_(NS))]))])),
    pa.array([[("k", 1)]], pa.map_(pa.string(), NS)),
    pa.array([[(1, "v")]], pa.map_(NS, pa.string())),
    pa.array([1], NS).dictionary_encode(),
]


def stored(table: Any) -> Any:
    """The Arrow table that Spark gets."""
    session = SimpleNamespace(createDataFrame=lambda given: given)
    return frames._to_spark(session, table, "m")


@pytest.mark.parametrize("values", ONE_NANOSECOND, ids=lambda values: str(values.type))
def test_nanoseconds_are_never_cut_off(values: Any) -> None:
    with pytest.raises(PythonModelFailed) as error:
        stored(pa.table({"id": [1] * len(values), "x": values}))
    assert "the column x " in error.value.what
    assert "[ns" in error.value.why
    assert "[us" in error.value.why
    assert "microseconds" in error.value.fix


@pytest.mark.parametrize("values", ONE_NANOSECOND, ids=lambda values: str(values.type))
def test_a_type_with_nanoseconds_may_have_values_without(values: Any) -> None:
    if pa.types.is_dictionary(values.type):
        values = pa.array([5000], NS).dictionary_encode()
    elif pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        values = pa.array([5000, None], values.type)
    else:
        values = values.filter(pa.array([False] * len(values)))
    found = stored(pa.table({"x": values}))
    assert "[ns" not in str(found.schema)
    if len(values):
        assert found["x"].to_pylist()[0] in (
            dt.timedelta(microseconds=5),
            dt.datetime(1970, 1, 1, microsecond=5),
            dt.datetime(1970, 1, 1, microsecond=5, tzinfo=dt.UTC),
        )


def test_a_time_that_is_too_late_for_spark_is_no_other_time() -> None:
    with pytest.raises(PythonModelFailed, match="the column x "):
        stored(pa.table({"x": pa.array([2**60], pa.timestamp("s"))}))


def test_times_of_pandas_are_exact_or_refused() -> None:
    exact = pd.DataFrame(
        {"at": pd.to_datetime(["2024-01-01 00:00:00.123456", None]).astype("datetime64[ns]")}
    )
    assert stored(exact)["at"].to_pylist() == [dt.datetime(2024, 1, 1, 0, 0, 0, 123456), None]
    with pytest.raises(PythonModelFailed, match="the column at "):
        stored(exact + pd.Timedelta(1, "ns"))


def test_types_that_spark_lacks_are_replaced_at_every_depth() -> None:
    type_ = pa.struct([("n", pa.list_(pa.uint64())), ("m", pa.map_(pa.uint8(), pa.float16()))])
    found = stored(pa.table({"x": pa.array([{"n": [2**64 - 1], "m": [(255, 0.5)]}], type_)}))
    assert found["x"].to_pylist() == [{"n": [Decimal(2**64 - 1)], "m": [(255, 0.5)]}]


def test_appended_rows_with_nanoseconds_are_refused_with_the_column() -> None:
    with pytest.raises(ConfigError) as error:
        append._register(
            SimpleNamespace(createDataFrame=None), "v", pa.table({"at": pa.array([1], NS)}), "orders"
        )
    assert "the column at " in error.value.what
    assert error.value.where == "append to orders"
    assert "timestamp[ns] in the DataFrame and timestamp[us] in Spark" in error.value.why
    assert "microseconds" in error.value.fix


def test_nan_is_missing_in_pandas_and_a_value_in_arrow() -> None:
    nan = float("nan")
    assert stored(pd.DataFrame({"x": [1.5, nan, None]}))["x"].to_pylist() == [1.5, None, None]
    kept = stored(pa.table({"x": pa.array([1.5, nan, None])}))["x"].to_pylist()
    assert [str(value) for value in kept] == ["1.5", "nan", "None"]
