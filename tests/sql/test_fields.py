"""What a row reads as when the fields inside its columns change, on DuckDB against plain Python."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dbt_arctic.keyed.assignment import mismatches, stored_value
from dbt_arctic.keyed.columns_at import ColumnThen, projected, select_columns
from dbt_arctic.keyed.layout import Layout
from dbt_arctic.keyed.names import Name
from dbt_arctic.keyed.table import Column, Generation, KeyedTable
from tests.extent import extent
from tests.field_types import became, drifted, is_convertible, read_as, sql, text, types, values

RULES = [{"added"}, {"added", "widened"}, {"added", "widened", "removed"}]


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def run(connection: duckdb.DuckDBPyConnection, query: str) -> Any:
    (translated,) = sqlglot.transpile(query, read="spark", write="duckdb")
    row = connection.execute(translated).fetchone()
    assert row is not None
    return row[0]


@settings(deadline=None, max_examples=extent(60, 1000))
@given(st.data(), types)
def test_rows_before_and_after_a_change_of_fields(
    connection: duckdb.DuckDBPyConnection, data: st.DataObject, table: Any
) -> None:
    model = data.draw(drifted(table))
    assume(is_convertible(table, model))
    after = became(table, model, data.draw(st.sampled_from(RULES)))
    written = data.draw(values(model))
    refused = mismatches("c", text(model), text(after), fill=True)
    assert all((one.produced, one.stored) == ("double", "float") for one in refused), "all else fits"
    if not refused:
        value = stored_value("`c`", text(model), text(after))
        found = run(connection, f"SELECT {value} AS c FROM (SELECT {sql(written, model)} AS c)")
        assert found == read_as(written, after), "a new row"

    # The side has every field that either has, and the wider types: a reader sees those of before.
    both = became(table, model, {"added", "widened"})
    stored = data.draw(values(both))
    found = run(
        connection, f"SELECT {projected('`c`', text(table))} AS c FROM (SELECT {sql(stored, both)} AS c)"
    )
    assert found == read_as(stored, table), "while fields are changed"

    old = data.draw(values(table))
    keyed = KeyedTable(
        Name("lake", "s", "t"), Generation(1, "b", "c"), ("id",), Layout(1, "id"), (Column("c", text(after)),)
    )
    columns = select_columns(keyed, 7, {7: {"c": ColumnThen(text(table))}})
    found = run(connection, f"SELECT {columns} FROM (SELECT {sql(old, table)} AS c)")
    assert found == read_as(old, after), "an old version, read with the fields of today"
    found = run(connection, f"SELECT typeof(c) FROM (SELECT {columns} FROM (SELECT {sql(old, table)} AS c))")
    assert found == run(connection, f"SELECT typeof(CAST(NULL AS {text(after)}))")
