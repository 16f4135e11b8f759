"""PIVOT, UNPIVOT and generators outside of LATERAL VIEW, against queries that say the same without them."""

from __future__ import annotations

from collections import Counter

import pytest

from dbt_arctic.planner.delta.plan import analyse_query
from dbt_arctic.planner.reasons import CannotPlan
from tests.planner.oracle import Database, judge
from tests.planner.random_queries import Case
from tests.planner.random_tables import SCHEMAS

ROW = "SELECT t1.id AS o1, {} AS o2 FROM a AS t1"
WRITTEN = {
    "pivot": (
        "SELECT p.y AS o1, p.`1` AS o2, p.two AS o3 FROM (SELECT x, y, z FROM a AS t1) AS q "
        "PIVOT (sum(z) FOR x IN (1, 2 AS two)) AS p",
        "SELECT t1.y AS o1, sum(t1.z) FILTER (WHERE t1.x = 1) AS o2, sum(t1.z) FILTER (WHERE t1.x = 2) AS o3 "
        "FROM a AS t1 GROUP BY t1.y",
    ),
    "pivot of counts": (
        "SELECT p.y AS o1, p.one_n AS o2, p.one_s AS o3 FROM (SELECT x, y, z FROM a AS t1) "
        "PIVOT (count(z) AS n, sum(z) AS s FOR x IN (1 AS one)) AS p",
        "SELECT t1.y AS o1, CASE WHEN count(CASE WHEN t1.x = 1 THEN 1 END) > 0 "
        "THEN count(CASE WHEN t1.x = 1 THEN t1.z END) END AS o2, sum(CASE WHEN t1.x = 1 THEN t1.z END) AS o3 "
        "FROM a AS t1 GROUP BY t1.y",
    ),
    "unpivot": (
        "SELECT id AS o1, name AS o2, n AS o3 FROM (SELECT id, x, y FROM a AS t1) AS q "
        "UNPIVOT (n FOR name IN (x, y AS `why`))",
        "SELECT t1.id AS o1, 'x' AS o2, t1.x AS o3 FROM a AS t1 WHERE t1.x IS NOT NULL "
        "UNION ALL SELECT t1.id, 'why', t1.y FROM a AS t1 WHERE t1.y IS NOT NULL",
    ),
    "unpivot with NULLs": (
        "SELECT u.id AS o1, u.name AS o2, u.n AS o3 FROM (SELECT id, x, y FROM a AS t1) "
        "UNPIVOT INCLUDE NULLS (n FOR name IN (x, y)) AS u",
        "SELECT t1.id AS o1, 'x' AS o2, t1.x AS o3 FROM a AS t1 "
        "UNION ALL SELECT t1.id, 'y', t1.y FROM a AS t1",
    ),
    "explode in a select list": (
        "SELECT t1.id AS o1, explode(array(t1.x, t1.y)) AS o2 FROM a AS t1 WHERE t1.z > 0",
        f"{ROW.format('t1.x')} WHERE t1.z > 0 UNION ALL {ROW.format('t1.y')} WHERE t1.z > 0",
    ),
    "distinct explode": (
        "SELECT DISTINCT t1.x AS o1, explode(array(t1.x, t1.y)) AS o2 FROM a AS t1",
        "SELECT t1.x AS o1, t1.x AS o2 FROM a AS t1 UNION SELECT t1.x, t1.y FROM a AS t1",
    ),
    "posexplode in a select list": (
        "SELECT t1.id AS o1, posexplode(array(t1.x, t1.y)) AS (o2, o3) FROM a AS t1",
        "SELECT t1.id AS o1, 0 AS o2, t1.x AS o3 FROM a AS t1 UNION ALL SELECT t1.id, 1, t1.y FROM a AS t1",
    ),
    "lateral explode": (
        "SELECT t1.id AS o1, e.v AS o2 FROM a AS t1, LATERAL explode(array(t1.x, t1.y)) AS e(v) "
        "WHERE e.v > 1",
        f"{ROW.format('t1.x')} WHERE t1.x > 1 UNION ALL {ROW.format('t1.y')} WHERE t1.y > 1",
    ),
    "left join lateral explode": (
        "SELECT t1.id AS o1, e.v AS o2 FROM a AS t1 "
        "LEFT JOIN LATERAL explode(CASE WHEN t1.z > 0 THEN array(t1.x) END) AS e(v) ON true",
        ROW.format("CASE WHEN t1.z > 0 THEN t1.x END"),
    ),
    "explode in FROM": (
        "SELECT t1.id AS o1, e.v AS o2 FROM explode(array(1, 2)) AS e(v) JOIN a AS t1 ON t1.x = e.v",
        f"{ROW.format('t1.x')} WHERE t1.x IN (1, 2)",
    ),
}


@pytest.fixture(scope="module")
def database() -> Database:
    return Database()


@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_refreshed_like_the_query_without(name: str, database: Database) -> None:
    written, plain = WRITTEN[name]
    columns = tuple(f"o{place}" for place in (1, 2, 3) if f"o{place}" in written)
    found: Counter[str] = Counter()
    for seed in range(25):
        case = Case(seed, plain, columns, ("o1",), frozenset(), written=written)
        verdict = judge(database, case)
        assert verdict.outcome == "incremental", f"seed {seed}: {verdict.why}"
        found[str(verdict.changed)] += 1
    assert found["True"]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        # Spark compares as text what the column is, and not a number.
        ("SELECT * FROM (SELECT id, CAST(x AS STRING) AS s, z FROM a) PIVOT (sum(z) FOR s IN (1))", "PIVOT"),
        ("SELECT * FROM (SELECT id, x, z FROM a) PIVOT (sum(z) FOR x IN (1.5))", "PIVOT"),
        # The type of a count next to it depends on its type.
        ("SELECT * FROM (SELECT id, x, z FROM a) PIVOT (count(z) AS n, max(z) AS m FOR x IN (1))", "PIVOT"),
        ("SELECT * FROM (SELECT id, x, z FROM a) PIVOT (collect_list(z) FOR x IN (1))", "PIVOT"),
        ("SELECT id, X FROM (SELECT id, x, y FROM a) UNPIVOT (n FOR name IN (X, y))", "UNPIVOT"),
        ("SELECT id, explode(array(x, y)) FROM a", "select list"),
        ("SELECT id, explode(array(x, y)) AS e, sum(z) OVER () AS s FROM a", "select list"),
        ("SELECT id, posexplode(array(x, y)) AS (p, e), sum(z) OVER () AS s FROM a", "select list"),
        ("SELECT x, explode(collect_list(y)) AS e FROM a GROUP BY x", "select list"),
        ("SELECT a.id FROM a LEFT SEMI JOIN LATERAL explode(array(x)) AS e(v)", "LATERAL explode"),
        ("SELECT a.id FROM a NATURAL JOIN LATERAL explode(array(x)) AS e(y)", "LATERAL explode|NATURAL"),
    ],
)
def test_what_would_be_something_else_is_refused(sql: str, why: str) -> None:
    with pytest.raises(CannotPlan, match=why):
        analyse_query(sql, SCHEMAS)
