"""With the settings that a session starts with, tables bucketed alike are joined where they lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Sql = Callable[..., list[tuple[Any, ...]]]


@pytest.mark.parametrize(
    ("buckets", "others", "condition"),
    [
        (4, 4, "a.k = b.k"),
        (4, 8, "a.k = b.k"),
        (4, 4, "a.k = b.k AND a.d = b.d"),
    ],
)
def test_a_join_on_the_bucket_column_shuffles_nothing(
    sql: Sql, schema: str, buckets: int, others: int, condition: str
) -> None:
    for name, count in (("a", buckets), ("b", others)):
        table = f"lake.{schema}.{name}"
        sql(f"CREATE TABLE {table} (k BIGINT, d BIGINT) USING iceberg PARTITIONED BY (bucket({count}, k))")
        sql(f"INSERT INTO {table} SELECT id, id % 3 FROM range(1000)")
    sql("SET spark.sql.autoBroadcastJoinThreshold = -1")
    query = f"SELECT a.k, b.d FROM lake.{schema}.a a JOIN lake.{schema}.b b ON {condition}"
    ((plan,),) = sql(f"EXPLAIN {query}")
    assert "Join" in plan
    assert "Exchange" not in plan
    assert sorted(sql(query)) == [(key, key % 3) for key in range(1000)]


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
