"""The estimated size of a query's rows, from Spark's text, and the number of buckets that follows from it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt_arctic.errors import StatementError
from dbt_arctic.refresh.size_estimate import estimate_output_bytes, estimate_stored_bytes

MIB = 1024 * 1024
LOOKUP = """== Optimized Logical Plan ==
Project [id#1L, name#9, '
 a text, with a line' AS note#4], Statistics(sizeInBytes=2.0 TiB)
+- Join Inner, (customer#2L = id#8L), Statistics(sizeInBytes=4.0 TiB)
   :- Project [id#1L, customer#2L], Statistics(sizeInBytes=20.0 MiB)
   :  +- Filter isnotnull(customer#2L), Statistics(sizeInBytes=40.0 MiB)
   :     +- RelationV2[id#1L, customer#2L] lake.orders, Statistics(sizeInBytes=40.0 MiB, rowCount=3.00E+6)
   +- RelationV2[id#8L, name#9] lake.customers, Statistics(sizeInBytes=4.0 MiB, rowCount=8)

== Physical Plan ==
Scan, Statistics(sizeInBytes=1.0 GiB)
"""


def test_joined_tables_are_added_and_narrower_rows_count() -> None:
    assert estimate_output_bytes(LOOKUP) == pytest.approx((20 + 4) / 2 * MIB)


@pytest.mark.parametrize(
    ("plan", "size"),
    [
        ("LocalRelation [id#1], Statistics(sizeInBytes=80.0 B, rowCount=5)", 80),
        ("Range (0, 5), Statistics(sizeInBytes=7.92E+28 B)", 7.92e28),
        (
            "Union false, false, Statistics(sizeInBytes=3.0 KiB)\n"
            ":- Range (0, 5), Statistics(sizeInBytes=1024.0 B)\n"
            "+- Range (0, 5), Statistics(sizeInBytes=2.0 KiB)",
            3072,
        ),
        (
            "GlobalLimit 5, Statistics(sizeInBytes=40.0 B, rowCount=5)\n"
            "+- Range (0, 500000), Statistics(sizeInBytes=3.8 MiB)",
            40,
        ),
        ("Filter false, Statistics(sizeInBytes=7.0 B)\n+- Range (0, 0), Statistics(sizeInBytes=0.0 B)", 7),
    ],
    ids=["rows", "more than a long holds", "union", "limit", "nothing"],
)
def test_sizes_of_a_plan(plan: str, size: float) -> None:
    assert estimate_output_bytes(f"== Optimized Logical Plan ==\n{plan}\n\n== Physical Plan ==\n") == (
        pytest.approx(size)
    )


def context(query: Any) -> Any:
    return SimpleNamespace(query=query)


def test_stored_rows_take_half_of_it() -> None:
    asked: list[str] = []

    def query(sql: str) -> list[tuple[str]]:
        asked.append(sql)
        return [(LOOKUP,)]

    assert estimate_stored_bytes(context(query), "SELECT 1") == 6 * MIB
    assert asked == ["EXPLAIN COST\nSELECT 1"]


def test_without_statistics_there_is_no_estimate() -> None:
    assert estimate_stored_bytes(context(lambda sql: []), "SELECT 1") is None
    assert estimate_output_bytes("== Optimized Logical Plan ==\n\n== Physical Plan ==\n") is None


def test_a_query_that_cannot_be_explained_fails_where_it_is_run() -> None:
    def query(sql: str) -> Any:
        raise StatementError("division by zero", where="orders")

    assert estimate_stored_bytes(context(query), "SELECT 1 / 0") is None
