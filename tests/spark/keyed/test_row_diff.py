"""Rows of two queries are compared as Spark compares them, and floats with a tolerance if requested."""

from __future__ import annotations

from dbt_arctic.keyed.row_diff import count_differing, differing_keys
from tests.spark.conftest import Sql

KEY, EXACT, NEAR = [("id", "int")], [("id", "int"), ("name", "string")], [("x", "double")]


PAIRS = [
    ("1, 'a', 100D", "1, 'a', 100D", 0),
    ("1, 'a', 100D", "1, 'a', 100.00000001D", 0),
    ("1, 'a', -1e-20D", "1, 'a', -1.0000000001e-20D", 0),
    ("1, 'a', 100D", "1, 'a', 100.001D", 1),
    ("1, 'a', 100D", "1, 'b', 100D", 1),
    ("1, 'a', 100D", "2, 'a', 100D", 2),
    ("1, 'a', 100D", "1, NULL, 100D", 1),
    ("1, NULL, CAST(NULL AS DOUBLE)", "1, NULL, CAST(NULL AS DOUBLE)", 0),
    ("1, 'a', CAST(NULL AS DOUBLE)", "1, 'a', 0D", 1),
    ("1, 'a', double('NaN')", "1, 'a', double('NaN')", 0),
    ("1, 'a', double('NaN')", "1, 'a', 1D", 1),
    ("1, 'a', double('Infinity')", "1, 'a', double('Infinity')", 0),
    ("1, 'a', double('Infinity')", "1, 'a', 1D", 1),
    ("1, 'a', double('Infinity')", "1, 'a', double('-Infinity')", 1),
]
"""Two rows, and how many keys differ between them."""


def test_floats_that_are_near_are_alike_and_nothing_else(sql: Sql) -> None:
    counts = []
    for number, (one, other, _) in enumerate(PAIRS):
        left, right = (f"SELECT * FROM VALUES ({values}) AS t(id, name, x)" for values in (one, other))
        counts.append(f"SELECT {number}, count(*) FROM (\n{differing_keys(left, right, KEY, EXACT, NEAR)}\n)")
    found = sql("\nUNION ALL\n".join(counts))
    assert sorted(found) == [(number, apart) for number, (_, _, apart) in enumerate(PAIRS)]


def test_rows_differ_as_often_as_they_are_missing(sql: Sql) -> None:
    left = (
        "SELECT 1 AS id, map('a', 1) AS m UNION ALL SELECT 1, map('a', 1) UNION ALL SELECT 2, NULL "
        "UNION ALL SELECT 3, NULL UNION ALL SELECT 3, NULL"
    )
    right = "SELECT 1 AS id, map('a', 1) AS m UNION ALL SELECT 2, map('b', 1)"
    id_, values = ("id", "int"), ("m", "map<string,int>")
    # 1 once of twice, both versions of 2, and 3 twice: with the number of rows of the first query.
    assert sql(count_differing(left, right, [id_, values])) == [(5, 5)]
    assert sql(count_differing(right, left, [id_, values])) == [(5, 2)]
    assert sql(count_differing(left, right, [id_])) == [(3, 5)]
    assert sql(count_differing(left, left, [id_, values])) == [(0, 5)]
    assert sql(count_differing(f"{left} LIMIT 0", f"{right} LIMIT 0", [id_])) == [(0, 0)]
