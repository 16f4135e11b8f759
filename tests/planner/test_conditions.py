"""What a condition asks for in all cases is taken out of its alternatives, and means the same."""

from __future__ import annotations

import duckdb
import pytest

from dbt_arctic.planner.algebra.rewrite import conjuncts
from dbt_arctic.planner.frontend.parse import parse
from dbt_arctic.planner.spark.dialect import to_sql


def parts(condition: str) -> list[str]:
    return [
        to_sql(part) for part in conjuncts(parse(f"SELECT 1 FROM t WHERE {condition}").args["where"].this)
    ]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a AND b AND c", ["a", "b", "c"]),
        ("a OR b", ["a OR b"]),
        ("(a AND b) OR (a AND c)", ["a", "b OR c"]),
        ("(a AND b) OR (c AND a) OR (b AND c AND a)", ["a", "b OR c OR (b AND c)"]),
        ("(a AND b) OR a", ["a"]),
        ("c AND ((a AND b) OR (b AND a))", ["c", "a", "b"]),
        ("(a AND (b OR c)) OR (a AND ((b AND c) OR (b AND a)))", ["a", "b OR c OR (b AND (c OR a))"]),
        ("(a AND b) OR (c AND b AND a) OR b", ["b"]),
    ],
)
def test_common_parts(condition: str, expected: list[str]) -> None:
    found = parts(condition)
    assert [part.replace("(", "").replace(")", "") for part in found] == [
        part.replace("(", "").replace(")", "") for part in expected
    ]
    values = "(VALUES (true), (false), (NULL))"
    text = " AND ".join(f"({part})" for part in found)
    # Unknown differs from false below NOT and in a select list.
    wrong = duckdb.sql(
        f"SELECT a, b, c FROM {values} AS x(a), {values} AS y(b), {values} AS z(c) "
        f"WHERE ({condition}) IS DISTINCT FROM ({text})"
    ).fetchall()
    assert wrong == []


def test_alternatives_with_subqueries_stay() -> None:
    condition = "(a AND EXISTS (SELECT 1 FROM u)) OR (a AND b)"
    assert len(parts(condition)) == 1
