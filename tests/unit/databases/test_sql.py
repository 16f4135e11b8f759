"""SQL for databases: a window has the rows of its rule, and every name is quoted. DuckDB runs it."""

from __future__ import annotations

import itertools

import duckdb
import pytest

from dbt_arctic.databases import sql
from dbt_arctic.databases.api import Column, KeyRange, RowQuery, SelectedColumn, Window
from dbt_arctic.databases.mariadb_types import MariaDialect
from dbt_arctic.databases.postgres_types import PostgresDialect
from dbt_arctic.sources.database_plan import divided

AT = Column('at"', "bigint", "integer", "BIGINT")
ID = Column("id", "bigint", "integer", "BIGINT")
POSTGRES = PostgresDialect()


@pytest.fixture(scope="module")
def table() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute('CREATE TABLE "t" (id BIGINT, "at""" BIGINT)')
    made.executemany('INSERT INTO "t" VALUES (?, ?)', [(at, None if at == 9 else at % 5) for at in range(10)])
    return made


def test_a_window_has_the_rows_of_its_rule(table: duckdb.DuckDBPyConnection) -> None:
    rows = table.execute("SELECT * FROM t").fetchall()
    for low, includes, high, with_null in itertools.product(
        (None, 1, 2), (True, False), (None, 2, 3), (True, False)
    ):
        window = Window(
            AT, None if low is None else str(low), includes, None if high is None else str(high), with_null
        )
        expected = [
            (key, at)
            for key, at in rows
            if (with_null if at is None else False)
            or (
                at is not None
                and high is not None
                and at <= high
                and (low is None or at > low or (includes and at == low))
            )
        ]
        query = RowQuery([SelectedColumn(ID), SelectedColumn(AT)], window)
        found = table.execute(f"SELECT c0, c1 FROM {sql.rows(POSTGRES, query, 't')}").fetchall()
        assert sorted(found, key=str) == sorted(expected, key=str), window
        ((count,),) = table.execute(sql.count(POSTGRES, window, "t")).fetchall()
        assert count == len(expected)
        # With all keys, a row outside of the window has its key only.
        query = RowQuery([SelectedColumn(ID), SelectedColumn(AT)], window, ["id"])
        marked = table.execute(f"SELECT c0, c1, is_new FROM {sql.rows(POSTGRES, query, 't')}").fetchall()
        assert sorted(((key, at) for key, at, new in marked if new), key=str) == sorted(expected, key=str)
        assert sorted(key for key, *_ in marked) == [key for key, _ in sorted(rows)]
        assert all(at is None for _, at, new in marked if not new)


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 100])
def test_ranges_have_each_row_once(table: duckdb.DuckDBPyConnection, parts: int) -> None:
    ranges = divided((0, 4), parts)
    assert len(ranges) <= parts
    query = RowQuery([SelectedColumn(ID)], None, (), ranges, AT)
    rows = sql.rows(POSTGRES, query, "t")
    conditions = sql.predicates(ranges) if len(ranges) > 1 else ["true"]
    found = [
        key for one in conditions for (key,) in table.execute(f"SELECT c0 FROM {rows} WHERE {one}").fetchall()
    ]
    assert sorted(found) == list(range(10))


def test_names_and_values_are_quoted() -> None:
    odd = Column('a"`b', "timestamp with time zone", "timestamptz", "TIMESTAMP")
    assert POSTGRES.quote(odd.name) == '"a""`b"'
    assert MariaDialect().quote(odd.name) == '`a"``b`'
    window = Window(odd, "2026-01-01 00:00:00.5", True, "2026-01-02 00:00:00")
    assert sql.condition(POSTGRES, window) == (
        '("a""`b" >= TIMESTAMP WITH TIME ZONE \'2026-01-01 00:00:00.5+00\' '
        'AND "a""`b" <= TIMESTAMP WITH TIME ZONE \'2026-01-02 00:00:00+00\')'
    )
    with pytest.raises(AssertionError):
        sql.condition(POSTGRES, Window(odd, None, True, "1' OR 1=1"))
    assert sql.predicates([KeyRange(None, 4), KeyRange(4, None)]) == [
        "(range_of_row < 4 OR range_of_row IS NULL)",
        "range_of_row >= 4",
    ]
