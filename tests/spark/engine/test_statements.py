"""Statements on real Spark: results, numbers, and errors that surface."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbt_arctic.engine.api import ColumnInfo
from dbt_arctic.engine.session import SessionConnection
from dbt_arctic.errors import NullKey, StatementError

Sql = Callable[..., list[tuple[Any, ...]]]

MERGE_ON_READ = (
    "TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read', "
    "'write.update.mode'='merge-on-read', 'write.merge.mode'='merge-on-read')"
)
COPY_ON_WRITE = "TBLPROPERTIES ('format-version'='2')"


def rows_of(connection: SessionConnection, statement: str) -> int:
    cursor = connection.cursor()
    cursor.execute(statement)
    return cursor.rowcount


def test_a_query_gives_plain_python_values(connection: SessionConnection) -> None:
    cursor = connection.cursor()
    cursor.execute(
        "SELECT 1 AS i, 1.50BD AS d, 'x' AS s, CAST(NULL AS INT) AS n, X'61' AS b, "
        "TIMESTAMP '2024-01-02 03:04:05' AS t, TIMESTAMP_NTZ '2024-01-02 03:04:05' AS z, "
        "named_struct('a', 1, 'b', array(X'62')) AS r, map('k', DATE '2024-01-02') AS m"
    )
    moment = dt.datetime(2024, 1, 2, 3, 4, 5)
    assert cursor.fetchall() == [
        (
            1,
            Decimal("1.50"),
            "x",
            None,
            b"a",
            moment.replace(tzinfo=dt.timezone.utc),
            moment,
            {"a": 1, "b": [b"b"]},
            {"k": dt.date(2024, 1, 2)},
        )
    ]
    assert cursor.description is not None
    assert [column[0] for column in cursor.description] == list("idsnbtzrm")
    assert [column[1] for column in cursor.description] == [
        "int",
        "decimal(3,2)",
        "string",
        "int",
        "binary",
        "timestamp",
        "timestamp_ntz",
        "struct<a:int,b:array<binary>>",
        "map<string,date>",
    ]


def test_rows_are_fetched_one_by_one_or_some_at_a_time(connection: SessionConnection) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM range(5) ORDER BY id")
    assert cursor.rowcount == 5
    assert cursor.fetchone() == (0,)
    assert cursor.fetchmany(2) == [(1,), (2,)]
    assert cursor.fetchall() == [(3,), (4,)]
    assert cursor.fetchone() is None


def test_an_error_surfaces_from_inside_a_with_block(connection: SessionConnection) -> None:
    with pytest.raises(StatementError, match="UNRESOLVED_COLUMN"), connection.cursor() as cursor:
        cursor.execute("SELECT nope FROM range(1)")


def test_an_error_of_a_row_surfaces_although_nobody_fetches(connection: SessionConnection) -> None:
    with pytest.raises(StatementError, match="DIVIDE_BY_ZERO"):
        connection.cursor().execute("SELECT 1 / (id - 2) FROM range(5)")


def test_the_position_of_a_mistake_is_told_and_javas_stack_is_not(connection: SessionConnection) -> None:
    with pytest.raises(StatementError, match="the line: , nope FROM range") as caught:
        connection.cursor().execute("SELECT 1\n, nope FROM range(1)")
    assert "scala:" not in str(caught.value)


def test_an_error_raised_by_sql_is_the_error_it_names(sql: Sql) -> None:
    with pytest.raises(NullKey) as caught:
        sql("SELECT raise_error('AR-303|No key.|t.k|it is NULL|Set it.') FROM range(3)")
    assert (caught.value.what, caught.value.fix) == ("No key.", "Set it.")


def test_a_cursor_is_usable_after_an_error(connection: SessionConnection) -> None:
    cursor = connection.cursor()
    with pytest.raises(StatementError):
        cursor.execute("SELEC 1")
    cursor.execute("SELECT 1")
    assert cursor.fetchall() == [(1,)]


@pytest.mark.parametrize("properties", [MERGE_ON_READ, COPY_ON_WRITE], ids=["v3-mor", "v2-cow"])
def test_a_write_tells_how_many_rows_it_wrote(
    connection: SessionConnection, schema: str, properties: str
) -> None:
    table = f"lake.{schema}.t"

    def count(statement: str) -> int:
        return rows_of(connection, statement)

    comment = '/* {"app": "dbt"} DELETE */ '
    assert (
        count(f"CREATE TABLE {table} USING iceberg {properties} AS SELECT id, id % 5 AS k FROM range(100)")
        == 100
    )
    assert count(f"{comment}INSERT INTO {table} SELECT id, 1 FROM range(100, 107)") == 7
    assert count(f"INSERT INTO {table} VALUES (200, 1), (201, 1)") == 2
    assert count(f"{comment}DELETE FROM {table} WHERE id IN (1, 2, 3)") == 3
    assert count(f"DELETE FROM {table} WHERE id = -1") == 0
    updated = count(f"UPDATE {table} SET k = 9 WHERE id IN (10, 11)")
    assert updated == (2 if properties is MERGE_ON_READ else -1)
    merge = (
        f"MERGE INTO {table} t USING (SELECT id FROM range(203, 190, -1)) s ON t.id = s.id "
        "WHEN MATCHED AND t.id = 200 THEN DELETE WHEN MATCHED THEN UPDATE SET k = 0 "
        "WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 1)"
    )
    assert count(merge) == 13
    assert count(f"INSERT OVERWRITE {table} SELECT id, 1 FROM range(30)") == 30
    assert count(f"CREATE OR REPLACE TABLE {table} USING iceberg AS SELECT 1 AS id, 2 AS k") == 1
    assert count(f"ALTER TABLE {table} CREATE BRANCH b") == -1
    assert count(f"INSERT INTO {table}.branch_b SELECT 5, 5") == 1
    assert count(f"DELETE FROM {table} WHERE true") == 1
    assert count(f"INSERT INTO {table} SELECT 1, 1 WHERE false") == 0


def test_a_command_without_a_result_has_no_description(connection: SessionConnection, schema: str) -> None:
    cursor = connection.cursor()
    cursor.execute(f"CREATE TABLE lake.{schema}.t (id INT) USING iceberg")
    assert (cursor.description, cursor.fetchall(), cursor.rowcount) == (None, [], -1)


def test_jobs_are_counted(connection: SessionConnection, schema: str) -> None:
    cursor = connection.cursor()
    cursor.execute(f"CREATE TABLE lake.{schema}.t (id BIGINT) USING iceberg")
    assert cursor.job_count == 0
    cursor.execute(f"INSERT INTO lake.{schema}.t SELECT * FROM range(10)")
    assert cursor.job_count == 1
    first = cursor.statement_id
    cursor.execute("SHOW SCHEMAS IN lake")
    assert cursor.job_count == 0
    assert cursor.statement_id != first


def test_a_querys_columns_are_known_without_running_it(connection: SessionConnection, schema: str) -> None:
    assert connection.query_schema("SELECT raise_error('ran') AS a, 1.5BD AS b, array(1) AS c") == [
        ColumnInfo("a", "void"),
        ColumnInfo("b", "decimal(2,1)"),
        ColumnInfo("c", "array<int>"),
    ]
    with pytest.raises(StatementError, match="TABLE_OR_VIEW_NOT_FOUND"):
        connection.query_schema(f"SELECT * FROM lake.{schema}.nope")


def test_asking_for_the_columns_of_a_command_does_not_run_it(
    connection: SessionConnection, sql: Sql, schema: str
) -> None:
    connection.query_schema(f"CREATE TABLE lake.{schema}.t (id INT) USING iceberg")
    assert sql(f"SHOW TABLES IN lake.{schema}") == []


def test_a_view_over_literal_rows_is_all_strings(connection: SessionConnection, sql: Sql) -> None:
    connection.create_temp_view("my seed", ["a", "b c"], [["1", None], ["it's", "${x}"]])
    assert sql("SELECT * FROM `my seed` ORDER BY a") == [("1", None), ("it's", "${x}")]
    connection.create_temp_view("my seed", ["a"], [])
    assert sql("SELECT * FROM `my seed`") == []
    assert connection.query_schema("SELECT * FROM `my seed`") == [ColumnInfo("a", "string")]


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**63 - 1),
    st.floats(allow_nan=False),
    st.decimals(min_value=-(10**9), max_value=10**9, places=4),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=40),
    st.text("'\"\\`$%{}\n\r\t\0_su0;-/*", max_size=20),
    st.binary(max_size=20),
    st.dates(),
    st.datetimes(timezones=st.just(dt.timezone.utc), min_value=dt.datetime(1, 1, 2)),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(scalars, min_size=20, max_size=40))
def test_bound_values_come_back_as_they_were(connection: SessionConnection, values: list[Any]) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SELECT {', '.join(['%s'] * len(values))} /* %s */, '%s'", values)
    (row,) = cursor.fetchall()
    assert row == (*values, "%s")


def test_values_that_do_not_equal_themselves_come_back_too(sql: Sql) -> None:
    assert sql("SELECT isnan(%s), %s, %s", [float("nan"), float("inf"), float("-inf")]) == [
        (True, float("inf"), float("-inf"))
    ]


def test_a_naive_datetime_is_a_timestamp_of_the_session(sql: Sql) -> None:
    moment = dt.datetime(2024, 1, 2, 3, 4, 5, 678)
    assert sql("SELECT typeof(%s), %s", [moment, moment]) == [
        ("timestamp", moment.replace(tzinfo=dt.timezone.utc))
    ]


def test_bytes_of_opened_and_added_files_are_told(connection: SessionConnection, schema: str) -> None:
    cursor = connection.cursor()
    with connection.noting() as created:
        cursor.execute(f"CREATE TABLE lake.{schema}.t (id BIGINT) USING iceberg")
    assert connection.traffic(created) == (0, 0, 0)
    with connection.noting() as noted:
        cursor.execute(f"INSERT INTO lake.{schema}.t SELECT * FROM range(1000)")
        read, size, jobs = connection.traffic(noted) or (-1, -1, -1)
        assert (read, jobs) == (0, 1)
        assert size > 1000
        cursor.execute(f"SELECT id FROM lake.{schema}.t WHERE id = (SELECT max(id + 1) FROM lake.{schema}.t)")
    assert noted[1:] == [cursor.statement_id]
    queried = connection.traffic(noted[1:])
    assert queried is not None
    assert queried[:2] == (2 * size, 0)
    assert connection.traffic(noted) == (2 * size, size, queried.jobs + 1)
