"""Conditions that compare rows with one value: only rows between its old and its new value are recomputed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dbt_arctic.planner.delta.plan import analyse_query, plan_incremental
from dbt_arctic.planner.delta.rules import condition, project
from dbt_arctic.planner.properties.facts import Facts, UpstreamFacts
from tests.extent import extent
from tests.planner.oracle import Database, judge
from tests.planner.random_queries import Case
from tests.planner.random_tables import KEYS, SCHEMAS
from tests.planner.tally import tally

CHANGES = extent(12, 60)
CASES = extent(40, 300)
QUERIES = {
    "one value": "SELECT t1.id AS o1, t1.x AS o2 FROM a AS t1 WHERE t1.x >= (SELECT avg(t2.v) FROM b AS t2)",
    "equality": "SELECT t1.id AS o1, t1.x AS o2 FROM a AS t1 WHERE t1.x = (SELECT max(t2.v) FROM b AS t2)",
    "the value of its own table": (
        "SELECT t1.id AS o1, t1.y AS o2 FROM a AS t1 WHERE t1.y < (SELECT avg(t3.y) FROM a AS t3) AND x > 0"
    ),
    "two values": (
        "SELECT t1.id AS o1, t1.x AS o2 FROM a AS t1 WHERE t1.x BETWEEN (SELECT min(t2.v) FROM b AS t2) "
        "AND (SELECT max(t3.m) FROM c AS t3)"
    ),
    "no value, or NULL": (
        "SELECT t1.id AS o1, t1.x AS o2 FROM a AS t1 "
        "WHERE NOT t1.x > (SELECT avg(t2.v) FROM b AS t2 WHERE t2.v > 2) OR t1.y IS NULL"
    ),
    "over a join": (
        "SELECT t1.id AS o1, t2.id AS o2, t2.w AS o3 FROM a AS t1 JOIN b AS t2 ON t2.aid = t1.id "
        "WHERE t1.x + t2.w > (SELECT avg(t3.m) FROM c AS t3)"
    ),
    "in one branch": (
        "SELECT 1 AS o1, t1.id AS o2 FROM a AS t1 WHERE t1.x > (SELECT avg(t2.w) FROM b AS t2) "
        "UNION ALL SELECT 2 AS o1, t3.id AS o2 FROM b AS t3"
    ),
    "with a correlated subquery": (
        "SELECT t1.id AS o1, t1.x AS o2 FROM a AS t1 WHERE t1.x > (SELECT avg(t2.w) FROM b AS t2) "
        "OR EXISTS (SELECT 1 FROM c AS t3 WHERE t3.k = t1.y)"
    ),
    "in a select list": (
        "SELECT t1.id AS o1, CASE WHEN t1.x >= (SELECT avg(t2.v) FROM b AS t2) THEN t1.y ELSE 9 END AS o2, "
        "t1.y > (SELECT max(t3.m) FROM c AS t3) AS o3 FROM a AS t1"
    ),
    "in a select list over a filter": (
        "SELECT t1.id AS o1, coalesce(t1.x < (SELECT min(t2.v) FROM b AS t2 WHERE t2.w > 1), true) AS o2 "
        "FROM a AS t1 WHERE t1.y > (SELECT avg(t3.m) FROM c AS t3)"
    ),
    "inside a subquery": (
        "SELECT t1.id AS o1, t1.x AS o2 FROM a AS t1 WHERE t1.x IN (SELECT t2.v FROM b AS t2 "
        "WHERE t2.w > (SELECT avg(t3.m) FROM c AS t3))"
    ),
}
IN_FULL = {
    "a group": "SELECT t1.x AS o1, count(*) AS o2 FROM a AS t1 "
    "WHERE t1.y > (SELECT avg(t2.v) FROM b AS t2) GROUP BY t1.x",
    "a selected value": "SELECT t1.id AS o1, t1.x - (SELECT max(t2.v) FROM b AS t2) AS o2 FROM a AS t1",
    "a selected and compared value": "SELECT t1.id AS o1, CASE WHEN t1.x > (SELECT max(t2.v) FROM b AS t2) "
    "THEN (SELECT min(t2.v) FROM b AS t2) END AS o2 FROM a AS t1",
    "a value that all rows compare": "SELECT t1.id AS o1, CASE WHEN (SELECT max(t2.v) FROM b AS t2) > 1 "
    "THEN t1.x END AS o2 FROM a AS t1",
    "a value of an aggregate": "SELECT q.x AS o1, q.n AS o2 FROM (SELECT t1.x, count(*) AS n FROM a AS t1 "
    "GROUP BY t1.x) AS q WHERE q.n > (SELECT avg(t2.v) FROM b AS t2)",
    "whether there are rows": "SELECT t1.id AS o1 FROM a AS t1 WHERE EXISTS (SELECT 1 FROM b AS t2)",
}


@pytest.fixture(scope="module")
def database() -> Database:
    return Database()


def verdict_counts(database: Database, sql: str) -> Counter[str]:
    """How often what became of random changes."""
    columns = tuple(f"o{place}" for place in range(1, 4) if f" AS o{place}" in sql)
    key = ("o1", "o2") if "t2.id AS o2" in sql or "t3.id AS o2" in sql else ("o1",)
    found: Counter[str] = Counter()
    for seed in range(CHANGES):
        verdict = judge(database, Case(seed, sql, columns, key, frozenset()))
        found["moved" if "moved value" in verdict.met else verdict.outcome] += 1
    return found


@pytest.mark.parametrize("name", QUERIES)
def test_rows_between_two_values_are_recomputed(name: str, database: Database) -> None:
    found = verdict_counts(database, QUERIES[name])
    assert found.keys() <= {"moved", "incremental"}, found
    assert found["moved"] > 0


def test_random_comparisons_are_those_of_the_full_query() -> None:
    compared = tally(range(CASES), "compared values")
    assert not compared.wrong, "\n\n".join(compared.wrong[:3])
    assert compared.incremental >= 0.8 * CASES
    assert compared.operators["moved value"] > 0.2 * CASES


@pytest.mark.parametrize("name", IN_FULL)
def test_values_that_move_many_rows_are_guards(name: str) -> None:
    facts = Facts({source: UpstreamFacts(True, KEYS[source]) for source in SCHEMAS})
    plan = plan_incremental(analyse_query(IN_FULL[name], SCHEMAS), ["o1"], facts)
    assert plan.guards
    assert plan.with_changed_scalars is None


def leaving_only(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, facts: (found := right(node, facts)) and (found[0], found[0])


def entering_only(right: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, facts: (found := right(node, facts)) and (found[1], found[1])


@pytest.mark.parametrize("wrong", [leaving_only, entering_only, lambda right: lambda node, facts: None])
def test_a_plan_without_some_of_these_rows_is_wrong(
    wrong: Callable[[Any], Any], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condition, "leaving_and_entering_rows", wrong(condition.leaving_and_entering_rows))
    found = verdict_counts(database, QUERIES["one value"]) + verdict_counts(database, QUERIES["two values"])
    assert found["wrong"] > 0


def test_a_plan_without_rows_of_another_value_is_wrong(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project, "rows_with_changed_values", lambda node, facts: None)
    assert verdict_counts(database, QUERIES["in a select list"])["wrong"] > 0


def test_a_plan_of_too_many_operators_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbt_arctic.planner.delta.plan.LARGEST", 8)
    facts = Facts({source: UpstreamFacts(source == "b", KEYS[source]) for source in SCHEMAS})
    plan = plan_incremental(analyse_query(QUERIES["one value"], SCHEMAS), ["o1"], facts)
    assert plan.guards
    assert plan.with_changed_scalars is None
