"""With the settings that a session starts with, tables of the same buckets are joined where they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.extent import first

Sql = Callable[..., list[tuple[Any, ...]]]


def bucketed(sql: Sql, table: str, buckets: int, rows: int) -> None:
    sql(
        f"CREATE TABLE {table} (k BIGINT NOT NULL, d BIGINT NOT NULL) USING iceberg "
        f"PARTITIONED BY (bucket({buckets}, k))"
    )
    sql(f"INSERT INTO {table} SELECT id, id % 3 FROM range({rows})")


@pytest.mark.parametrize(
    ("condition", "others", "shuffles"),
    first(2, [("a.k = b.k", 4, 0), ("a.k = b.k", 8, 2), ("a.k = b.k AND a.d = b.d", 4, 0)]),
)
def test_a_join_on_the_bucket_column_shuffles_nothing(
    sql: Sql, schema: str, condition: str, others: int, shuffles: int
) -> None:
    for name, count in (("a", 4), ("b", others)):
        bucketed(sql, f"lake.{schema}.{name}", count, 1000)
    sql("SET spark.sql.autoBroadcastJoinThreshold = -1")
    query = f"SELECT a.k, b.d FROM lake.{schema}.a a JOIN lake.{schema}.b b ON {condition}"
    ((plan,),) = sql(f"EXPLAIN {query}")
    assert "Join" in plan
    assert plan.count("Exchange") == shuffles
    assert sorted(sql(query)) == [(key, key % 3) for key in range(1000)]


@pytest.mark.parametrize("below", ["BROADCAST(c)", "MERGE(c)"])
@pytest.mark.parametrize("condition", first(1, ["", " AND c.d >= 0"]))
def test_a_join_in_place_loses_no_rows_of_tables_below_it(
    sql: Sql, schema: str, below: str, condition: str
) -> None:
    """With ``pushPartValues``, Spark 4.1.4 reads the buckets of the outer join from ``c`` only, or fails."""
    for name, buckets, rows in (("a", 4, 1000), ("b", 4, 1000), ("c", 16, 3)):
        bucketed(sql, f"lake.{schema}.{name}", buckets, rows)
    query = (
        f"SELECT /*+ {below}, MERGE(b) */ a.k FROM lake.{schema}.a a "
        f"JOIN lake.{schema}.c c ON a.d = c.k{condition} JOIN lake.{schema}.b b ON b.k = a.k"
    )
    assert sorted(sql(query)) == [(key,) for key in range(1000)]


def test_unions_of_bucketed_tables_are_joined_without_a_shuffle_either(sql: Sql, schema: str) -> None:
    for name in ("a", "b", "c", "d"):
        table = f"lake.{schema}.{name}"
        sql(f"CREATE TABLE {table} (k BIGINT, v STRING) USING iceberg PARTITIONED BY (bucket(4, k))")
        sql(f"INSERT INTO {table} SELECT id, '{name}' FROM range(100)")
    sql("SET spark.sql.autoBroadcastJoinThreshold = -1")
    first, second = (
        f"(SELECT * FROM lake.{schema}.{base} LEFT ANTI JOIN lake.{schema}.{change} USING (k) "
        f"UNION ALL SELECT * FROM lake.{schema}.{change})"
        for base, change in (("a", "b"), ("c", "d"))
    )
    query = f"SELECT x.k, x.v, y.v FROM {first} x JOIN {second} y ON x.k = y.k"
    ((plan,),) = sql(f"EXPLAIN {query}")
    assert "Exchange" not in plan
    assert sorted(sql(query)) == [(key, "b", "d") for key in range(100)]
