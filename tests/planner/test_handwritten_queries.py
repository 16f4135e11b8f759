"""Queries that random ones do not draw, each with many random changes, judged as those are."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.extent import extent, first
from tests.planner.oracle import Database, judge
from tests.planner.random_queries import Case

CHANGES = extent(20, 40)
FIRST = "(SELECT t1.*, row_number() OVER (PARTITION BY t1.x ORDER BY t1.id) AS rn FROM a AS t1) AS q"

QUERIES = {
    # A global aggregate has a row, whether or not its condition leaves any.
    "count beside a join": (
        "SELECT t1.id AS o1, t3.m AS o2, s.n AS o3 FROM a AS t1 "
        "CROSS JOIN (SELECT count(*) AS n FROM b AS t2 WHERE t2.v > 5) AS s JOIN c AS t3 ON t3.k = t1.x",
        "o1 o2",
    ),
    "count under a window": (
        "SELECT t1.id AS o1, sum(t1.y + s.n) OVER (PARTITION BY t1.x) AS o2 FROM a AS t1 "
        "CROSS JOIN (SELECT count(*) AS n FROM b AS t2 WHERE t2.v > 2) AS s",
        "o1",
    ),
    # What is compared by IN need not be a column.
    "conditions in IN": (
        "SELECT q.id AS o1, q.f AS o2 FROM (SELECT t1.id, t1.x, t1.y > 1 AS f FROM a AS t1) AS q "
        "WHERE q.f IN (SELECT r.f AND r.g "
        "FROM (SELECT t3.v, t3.w > 1 AS f, t3.aid > 1 AS g FROM b AS t3) AS r WHERE r.v = q.x)",
        "o1",
    ),
    "having without groups": ("SELECT 1 AS o1, 2 AS o2 FROM a AS t1 HAVING 1 > 0", "o1"),
    "having a count": ("SELECT 1 AS o1, count(*) AS o2 FROM a AS t1 HAVING count(*) > 5", "o1"),
    # A LIMIT in a part of a union is that part's.
    "limit in a union": (
        "SELECT 0 AS o1, count(*) AS o2 FROM (SELECT t1.x AS z FROM a AS t1 "
        "UNION ALL (SELECT t2.v AS z FROM b AS t2 ORDER BY t2.id LIMIT 3)) AS q",
        "o1",
    ),
    "limit in a value": (
        "SELECT t1.id AS o1, t1.x AS o2 FROM a AS t1 "
        "WHERE t1.x >= (SELECT t2.v FROM b AS t2 ORDER BY t2.id LIMIT 1)",
        "o1",
    ),
    "no rows of a part": (
        "SELECT q.z AS o1, count(*) AS o2, s.n AS o3 FROM (SELECT t1.x AS z FROM a AS t1 "
        "UNION ALL (SELECT t2.v FROM b AS t2 LIMIT 0)) AS q CROSS JOIN (SELECT count(*) AS n FROM "
        "(SELECT t3.k FROM c AS t3 ORDER BY t3.m LIMIT 0 OFFSET 1) AS r) AS s GROUP BY q.z, s.n",
        "o1",
    ),
    "names with numbers": (
        "SELECT q.v AS o1, r.v AS o2, s.v__2 AS o3 FROM (SELECT t1.x AS v, t1.y AS j FROM a AS t1) AS q "
        "JOIN (SELECT t2.v, t2.w AS j FROM b AS t2) AS r ON q.j = r.j "
        "JOIN (SELECT t3.k AS v__2, t3.m AS j FROM c AS t3) AS s ON s.j = q.j",
        "o1",
    ),
    "unknown in a larger condition": (
        "SELECT t1.x AS o1, count(*) AS o2 FROM a AS t1 "
        "WHERE NOT (t1.x IN (SELECT t2.v FROM b AS t2 WHERE t2.w = 2) AND t1.y > 0) GROUP BY t1.x",
        "o1",
    ),
    # Rows that have a key though no table gives it.
    "the first of its kind": (
        f"SELECT q.x AS o1, q.y AS o2, lag(q.y) OVER (ORDER BY q.y, q.x) AS o3 FROM {FIRST} WHERE q.rn = 1",
        "o1",
    ),
    "the first of its kind by QUALIFY": (
        "SELECT q.x AS o1, q.y AS o2, lag(q.y) OVER (ORDER BY q.y, q.x) AS o3 FROM (SELECT * FROM a AS t1 "
        "QUALIFY row_number() OVER (PARTITION BY t1.x ORDER BY t1.id) = 1) AS q",
        "o1",
    ),
    "joined with the first of its kind": (
        f"SELECT t3.k AS o1, t3.m AS o2, q.y AS o3 FROM c AS t3 JOIN {FIRST} ON q.x = t3.m WHERE q.rn < 2",
        "o1 o2",
    ),
    "sums of the first of its kind": (
        f"SELECT q.y AS o1, count(*) AS o2, sum(t2.v) AS o3 FROM {FIRST} JOIN b AS t2 ON t2.aid = q.x "
        "WHERE q.rn = 1 GROUP BY q.y",
        "o1",
    ),
    "groups by more than a key": (
        "SELECT g.id AS o1, g.x AS o2, row_number() OVER (PARTITION BY g.x ORDER BY g.s, g.id) AS o3 FROM ("
        "SELECT t1.id, t1.x, t1.y + 1 AS y, sum(t2.v) AS s FROM a AS t1 JOIN b AS t2 ON t2.aid = t1.id "
        "GROUP BY t1.id, t1.x, t1.y + 1) AS g WHERE g.y > 0",
        "o1",
    ),
    "groups of groups by more than a key": (
        "SELECT g.x AS o1, sum(g.s) AS o2, count(*) AS o3 FROM (SELECT t1.id, t1.x, sum(t2.v) AS s "
        "FROM a AS t1 LEFT JOIN b AS t2 ON t2.aid = t1.id GROUP BY t1.id, t1.x) AS g GROUP BY g.x",
        "o1",
    ),
    # A change has a sign, which is no column of the query, whatever that calls its own.
    "a column called like ours": (
        "WITH q AS (SELECT t1.id, t1.y - 2 AS _sign, t1.z AS _rows FROM a AS t1) "
        "SELECT q.id AS o1, q._sign + 1 AS o2, q._rows AS o3 FROM q WHERE q._sign < 1",
        "o1",
    ),
    # The second t2 is called t2_2 in our text.
    "an alias called like ours": (
        "SELECT t2.id AS o1, 1 AS o2 FROM a AS t2 WHERE t2.x > 1 "
        "UNION ALL SELECT t2.id, 2 FROM a AS t2 "
        "WHERE EXISTS (SELECT 1 FROM a AS t2_2 WHERE t2_2.x = t2.id)",
        "o1 o2",
    ),
    "a subquery called like ours": (
        "SELECT q.y AS o1, count(*) AS o2 FROM (SELECT t1.x, t1.y FROM a AS t1 WHERE t1.z > 0 "
        "UNION ALL SELECT t2.v, t2.w FROM b AS t2) AS q "
        "WHERE EXISTS (SELECT 1 FROM c AS q_2 WHERE q_2.k = q.x) GROUP BY q.y",
        "o1",
    ),
    # Of the values that b touches, those matter that c has with such an m: unless c has changed, too.
    "values of one kind": (
        "SELECT t2.id AS o1, t2.w AS o2, t3.m AS o3 FROM b AS t2 JOIN c AS t3 ON t3.k = t2.v "
        "WHERE t3.m > 1 AND t2.w <= (SELECT max(t4.w) - 1 FROM b AS t4 WHERE t4.v = t3.k)",
        "o1",
    ),
    "a number joined with a text": (
        "SELECT t1.x AS o1, count(*) AS o2 FROM a AS t1 JOIN ("
        "SELECT t2.v, CASE WHEN t2.w > 1 THEN '0' ELSE '' END || CAST(t2.v AS STRING) AS k FROM b AS t2"
        ") AS q ON t1.x = q.k GROUP BY t1.x",
        "o1",
    ),
    # LATERAL subqueries become joins, and scalar subqueries.
    "lateral sums": (
        "SELECT t1.id AS o1, q.s AS o2, q.n AS o3 FROM a AS t1, "
        "LATERAL (SELECT sum(t2.w) AS s, count(*) AS n FROM b AS t2 WHERE t2.aid = t1.x) AS q",
        "o1",
    ),
    "lateral sums with a condition": (
        "SELECT t1.id AS o1, q.n AS o2 FROM a AS t1 JOIN LATERAL (SELECT count(*) AS n FROM b AS t2 "
        "WHERE t2.aid = t1.x AND t2.v > t1.y) AS q ON q.n <> 1",
        "o1",
    ),
    "lateral rows": (
        "SELECT t1.id AS o1, q.u AS o2 FROM a AS t1 LEFT JOIN LATERAL (SELECT t2.v + 1 AS u FROM b AS t2 "
        "WHERE t2.aid = t1.x AND t2.w > t1.y AND t2.v > 0) AS q ON q.u < 4",
        "o1",
    ),
    "lateral first rows": (
        "SELECT t1.id AS o1, q.u AS o2, q.n AS o3 FROM a AS t1 LEFT JOIN LATERAL (SELECT t2.v AS u, "
        "t2.id AS n FROM b AS t2 WHERE t2.aid = t1.x ORDER BY u DESC, n LIMIT 2) AS q ON TRUE",
        "o1",
    ),
    "lateral first rows by two values": (
        "SELECT t1.id AS o1, q.u AS o2 FROM a AS t1 CROSS JOIN LATERAL (SELECT t2.id FROM b AS t2 "
        "JOIN c AS t3 ON t3.k = t2.v WHERE t1.x = t2.aid AND t3.m = t1.y ORDER BY t2.id, t3.k, t3.m LIMIT 1) "
        "AS q(u)",
        "o1",
    ),
    "lateral groups": (
        "SELECT t1.id AS o1, q.v AS o2, q.n AS o3 FROM a AS t1 LEFT JOIN LATERAL (SELECT t2.v, count(*) AS n "
        "FROM b AS t2 WHERE t2.aid = t1.x GROUP BY t2.v) AS q ON TRUE",
        "o1",
    ),
    "lateral groups with a condition": (
        "SELECT t1.id AS o1, q.v AS o2, q.n AS o3 FROM a AS t1 JOIN LATERAL (SELECT t2.v, count(*) AS n "
        "FROM b AS t2 WHERE t2.aid = t1.x GROUP BY t2.v HAVING count(*) > 1) AS q ON TRUE",
        "o1",
    ),
    "lateral distinct rows": (
        "SELECT t1.id AS o1, q.v AS o2 FROM a AS t1 LEFT JOIN LATERAL (SELECT DISTINCT t2.v "
        "FROM b AS t2 WHERE t2.aid = t1.x AND t2.w > 0) AS q ON TRUE",
        "o1",
    ),
    "lateral values of both rows": (
        "SELECT t1.id AS o1, q.u AS o2, q.w AS o3 FROM a AS t1 JOIN LATERAL (SELECT t2.v + t1.y AS u, t2.w "
        "FROM b AS t2 WHERE t2.aid = t1.x ORDER BY t2.id LIMIT 2) AS q ON q.u > 1",
        "o1",
    ),
    "lateral values": (
        "SELECT t1.id AS o1, q.u AS o2 FROM a AS t1, LATERAL (SELECT t1.x + t1.y AS u) AS q WHERE q.u > 1",
        "o1",
    ),
}


@pytest.fixture(scope="module")
def database() -> Database:
    return Database()


@pytest.mark.parametrize("name", first(10, QUERIES))
def test_a_query_with_random_changes(name: str, database: Database) -> None:
    sql, key = QUERIES[name]
    columns = tuple(f"o{place}" for place in range(1, 4) if f" AS o{place}" in sql)
    told: Counter[str] = Counter()
    for seed in range(CHANGES):
        verdict = judge(database, Case(seed, sql, columns, tuple(key.split()), frozenset()))
        assert verdict.outcome in ("incremental", "full"), f"seed {seed}: {verdict.why}"
        told[verdict.outcome] += 1
    assert told["incremental"] > 0
